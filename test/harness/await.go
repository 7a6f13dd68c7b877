//go:build linux

package harness

import (
	"testing"
	"time"
)

// Patience is how long a test waits for what must come. It says nothing about
// how fast that is: two busy cores and a slow disk must not fail a test.
const Patience = 90 * time.Second

// Await looks until met holds and fails the test when it does not within
// Patience.
func Await(t testing.TB, what string, met func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !met(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %s for %s", Patience, what)
		}
	}
}
