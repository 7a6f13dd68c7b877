package wire

import (
	"errors"
	"strings"
)

// ErrRequestID is returned for a malformed request ID.
var ErrRequestID = errors.New("must be 1 to 128 visible ASCII characters, plain or as a quoted RFC 8941 string")

// ParseRequestID reads the value of Idempotency-Key: the ID itself, or the ID
// as an RFC 8941 string as the IETF draft of the header has it. Both spellings
// name the same ID.
func ParseRequestID(s string) (string, error) {
	id := s
	if strings.HasPrefix(s, `"`) {
		var ok bool
		if id, ok = unquote(s); !ok {
			return "", ErrRequestID
		}
	}
	if id == "" || len(id) > MaxRequestIDBytes {
		return "", ErrRequestID
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return "", ErrRequestID
		}
	}
	return id, nil
}

// FormatRequestID returns the header value for id: the ID itself, or, where
// that would be read as quoted, its quoted form.
func FormatRequestID(id string) string {
	if !strings.HasPrefix(id, `"`) {
		return id
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(id) + `"`
}

// unquote reads an RFC 8941 string; backslash escapes itself and the quote.
func unquote(s string) (string, bool) {
	var id strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return id.String(), i == len(s)-1
		case '\\':
			i++
			if i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", false
			}
		}
		id.WriteByte(s[i])
	}
	return "", false
}
