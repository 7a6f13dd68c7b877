package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is deeper than any body of the API nests.
const maxDepth = 8

// checkJSON refuses what encoding/json lets pass: a name given twice (it would
// take the last, a proxy or log before us the first), anything behind the
// value, and text that is no Unicode, which it would silently replace.
func checkJSON(body []byte) error {
	if !utf8.Valid(body) || !paired(body) {
		return invalid("body", "is not valid Unicode")
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := checkValue(decoder, 0); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return invalid("body", "goes on after the JSON value")
	}
	return nil
}

func checkValue(decoder *json.Decoder, depth int) error {
	if depth > maxDepth {
		return invalid("body", "nests deeper than %d", maxDepth)
	}
	token, err := decoder.Token()
	if err != nil {
		return invalid("body", "is not JSON")
	}
	open, nested := token.(json.Delim)
	if depth == 0 && open != '{' {
		return invalid("body", "must be a JSON object")
	}
	if !nested {
		return nil
	}
	seen := make(map[string]bool)
	for decoder.More() {
		if open == '{' {
			name, err := decoder.Token()
			if err != nil {
				return invalid("body", "is not JSON")
			}
			text, _ := name.(string)
			// encoding/json matches names whatever their case.
			folded := strings.ToLower(strings.ToUpper(text))
			if seen[folded] {
				return invalid(cut(text), "is given twice")
			}
			seen[folded] = true
		}
		if err := checkValue(decoder, depth+1); err != nil {
			return err
		}
	}
	if _, err := decoder.Token(); err != nil {
		return invalid("body", "is not JSON")
	}
	return nil
}

// paired reports whether every \u escape of a surrogate is half of a pair.
func paired(body []byte) bool {
	for i := 0; i < len(body); i++ {
		if body[i] != '\\' {
			continue
		}
		i++ // the escaped character
		first := surrogate(body[i:])
		if first == 0 {
			continue
		}
		if i+11 > len(body) || body[i+5] != '\\' ||
			utf16.DecodeRune(first, surrogate(body[i+6:])) == utf8.RuneError {
			return false
		}
		i += 10
	}
	return true
}

// surrogate returns the surrogate at the start of b, which follows a backslash,
// or 0.
func surrogate(b []byte) rune {
	if len(b) < 5 || b[0] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(b[1:5]), 16, 16)
	if err != nil || !utf16.IsSurrogate(rune(n)) {
		return 0
	}
	return rune(n)
}
