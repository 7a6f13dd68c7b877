package fsm

// MaxNumber is the largest token, revision, version or sequence number: fifteen
// digits, the limit of an RFC 9651 structured-field integer, and exact in a
// JSON number, in jq and in JavaScript.
const MaxNumber = 999_999_999_999_999

// EpochSize is the distance between the first numbers of two epochs. A token or
// revision is epoch × EpochSize + counter and is compared as a plain integer; a
// full counter carries into the next epoch's range, which is harmless because
// only order matters.
const EpochSize = 1_000_000_000

// MaxAdopted bounds the external token that an acquire with adopt continues
// from. The cluster's own tokens go on above it, so a forged 999999999999999
// must not be able to use up the number space of every other resource.
const MaxAdopted = 900_000_000_000_000
