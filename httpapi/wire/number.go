package wire

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// MaxNumber is the largest token, revision, version or sequence number: fifteen
// digits, the bound of an integer in RFC 9651 and exact in every JSON reader.
const MaxNumber = 999_999_999_999_999

// ErrNumber is returned for anything but one canonical number.
var ErrNumber = errors.New("must be a decimal number of 1 to 15 digits without sign, spaces or leading zeros")

// ParseNumber reads a canonical decimal number from 0 to MaxNumber. One number
// has one spelling: 05, +5 and 5.0 are errors, not 5.
func ParseNumber(s string) (uint64, error) {
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil || v > MaxNumber || strconv.FormatUint(v, 10) != s {
		return 0, ErrNumber
	}
	return v, nil
}

// FormatNumber is the inverse of ParseNumber.
func FormatNumber(v uint64) string { return strconv.FormatUint(v, 10) }

// ErrETag is returned for anything but one strong tag around a revision.
var ErrETag = errors.New(`must be one revision in double quotes, like "12"`)

// FormatETag returns a revision as a strong entity tag (RFC 9110, 8.8.3).
func FormatETag(revision uint64) string { return `"` + FormatNumber(revision) + `"` }

// ParseETag reads one strong tag that FormatETag could have made. Weak tags and
// lists are errors: a write's precondition names one revision.
func ParseETag(s string) (uint64, error) {
	inner, quoted := strings.CutPrefix(s, `"`)
	inner, closed := strings.CutSuffix(inner, `"`)
	if !quoted || !closed {
		return 0, ErrETag
	}
	v, err := ParseNumber(inner)
	if err != nil {
		return 0, ErrETag
	}
	return v, nil
}

// FormatTime returns Unix milliseconds as RFC 3339 in UTC, and "" for 0.
func FormatTime(unixMs int64) string {
	if unixMs == 0 {
		return ""
	}
	return time.UnixMilli(unixMs).UTC().Format("2006-01-02T15:04:05.000Z")
}
