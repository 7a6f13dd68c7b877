package httpapi

import (
	"testing"
	"time"
)

// TestPacer: the first refusal goes out at once; a flood goes out at the pace;
// none is held longer than the bound; and a node that is left in peace owes
// nothing of it.
func TestPacer(t *testing.T) {
	var p pacer
	now := time.Now()
	for i := range int(maxRefusalHold/refusalEvery) + 1 {
		if got, want := p.hold(now), time.Duration(i)*refusalEvery; got != want {
			t.Fatalf("refusal %d is held %s, want %s", i, got, want)
		}
	}
	for range 10_000 {
		if got := p.hold(now); got != maxRefusalHold {
			t.Fatalf("a refusal beyond the bound is held %s, want %s", got, maxRefusalHold)
		}
	}
	if got := p.hold(now.Add(2 * maxRefusalHold)); got != 0 {
		t.Errorf("after a rest a refusal is held %s", got)
	}
}
