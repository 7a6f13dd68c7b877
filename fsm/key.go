package fsm

import (
	"strings"
	"unicode/utf8"
)

// CheckKey reports what is wrong with a key, or "". A key is UTF-8 of 1 to
// MaxKeyBytes bytes without control characters; no segment between slashes is
// empty, "." or "..", so a key has one spelling only and no HTTP library or
// proxy can rewrite its path into another key's.
func CheckKey(key string) string {
	if strings.HasSuffix(key, "/") {
		return "a key does not end in a slash; a prefix does"
	}
	return CheckResource(key)
}

// CheckResource reports what is wrong with a resource, or "". A resource is a
// key, or a prefix: a key with one slash behind it.
func CheckResource(resource string) string {
	switch {
	case resource == "":
		return "is empty"
	case len(resource) > MaxKeyBytes:
		return "is longer than 512 bytes"
	case !utf8.ValidString(resource):
		return "is not valid UTF-8"
	case strings.ContainsFunc(resource, control):
		return "holds a control character"
	}
	for segment := range strings.SplitSeq(strings.TrimSuffix(resource, "/"), "/") {
		if segment == "" || segment == "." || segment == ".." {
			return `has an empty, "." or ".." segment`
		}
	}
	return ""
}

func control(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 }

// covering calls yield with each prefix that covers resource, shortest first,
// and with resource itself last: app/, app/db/, app/db/x.
func covering(resource string, yield func(string) bool) {
	for i := range len(resource) - 1 {
		if resource[i] == '/' && !yield(resource[:i+1]) {
			return
		}
	}
	yield(resource)
}

// isPrefix tells a resource that covers others from a key.
func isPrefix(resource string) bool { return strings.HasSuffix(resource, "/") }

// Covers reports whether resource a is b or a prefix of it.
func Covers(a, b string) bool {
	return a == b || isPrefix(a) && strings.HasPrefix(b, a)
}

// overlap reports whether two locks could guard the same key.
func overlap(a, b string) bool { return Covers(a, b) || Covers(b, a) }
