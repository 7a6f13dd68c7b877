package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/fencekv/fencekv/fsm"
)

// value reads a value argument: - is all of stdin, @FILE the content of a file,
// anything else the value itself. The second result is how curl names the same.
func (a *app) value(arg string) (data []byte, curl string, err error) {
	file, named := strings.CutPrefix(arg, "@")
	switch {
	case arg == "-":
		data, err = readValue(a.stdin)
		return data, "@-", err
	case named:
		f, err := os.Open(file)
		if err != nil {
			return nil, "", fmt.Errorf("read value: %w", err)
		}
		defer f.Close()
		data, err = readValue(f)
		return data, arg, err
	}
	return []byte(arg), "", nil
}

// readValue stops at the first byte no store takes, so that the size of a value
// is refused before it fills the memory.
func readValue(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, fsm.MaxValueBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read value: %w", err)
	}
	if len(data) > fsm.MaxValueBytes {
		return nil, fmt.Errorf("read value: is longer than %d bytes, the most any store takes", fsm.MaxValueBytes)
	}
	return data, nil
}
