package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// curlPrinter shows operations as curl lines that do the same. Its zero value
// shows nothing. It writes to stderr, so that the output stays what it is.
type curlPrinter struct {
	out               io.Writer
	cacert, cert, key string // files
}

func (p curlPrinter) print(c *caller, op *operation) {
	if p.out == nil {
		return
	}
	node := op.node
	if node == "" {
		node = c.target()
	}
	target := node + op.path
	if len(op.query) > 0 {
		target += "?" + op.query.Encode()
	}
	words := []string{"curl", "-sS", "-X", op.method, target}
	for _, name := range slices.Sorted(maps.Keys(op.header)) {
		words = append(words, "-H", name+": "+op.header.Get(name))
	}
	if c.authToken != "" {
		words = append(words, "-H", "Authorization: Bearer ***")
	}
	for _, file := range []struct{ flag, name string }{{"--cacert", p.cacert}, {"--cert", p.cert}, {"--key", p.key}} {
		if file.name != "" {
			words = append(words, file.flag, file.name)
		}
	}
	if op.body != nil && op.header.Get("Content-Type") == "" {
		words = append(words, "-H", "Content-Type:") // or curl says it is a form
	}
	switch {
	case op.bodyArg != "":
		words = append(words, "--data-binary", op.bodyArg)
	case op.body != nil:
		words = append(words, "--data-raw", string(op.body))
	}
	for i, word := range words {
		words[i] = shellWord(word)
	}
	fmt.Fprintln(p.out, strings.Join(words, " "))
}

// shellWord quotes a word for a POSIX shell where it needs that.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@,=", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
