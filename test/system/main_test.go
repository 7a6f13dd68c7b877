//go:build linux

// Package system tests the shipped binary from outside: real processes, real
// HTTP, SIGKILL and SIGSTOP.
package system

import (
	"fmt"
	"os"
	"testing"

	"github.com/fencekv/fencekv/test/harness"
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "fencekv-system")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := harness.Build(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
