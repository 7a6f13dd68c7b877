package httpapi

import (
	"testing"
	"time"
)

// TestPacer: the first refusal goes out at once; a flood goes out at the pace;
// none is held longer than twice the bound, nor all as long; and a node that is left in peace owes
// nothing of it.
func TestPacer(t *testing.T) {
	var p pacer
	now := time.Now()
	for i := range int(maxRefusalHold/refusalEvery) + 1 {
		if got, want := p.hold(now), time.Duration(i)*refusalEvery; got != want {
			t.Fatalf("refusal %d is held %s, want %s", i, got, want)
		}
	}
	early := 0
	for range 10_000 {
		got := p.hold(now)
		if got < maxRefusalHold || got >= 2*maxRefusalHold {
			t.Fatalf("a refusal beyond the bound is held %s", got)
		}
		if got < maxRefusalHold*3/2 {
			early++
		}
	}
	if early < 4_000 || early > 6_000 {
		t.Errorf("%d of 10,000 go out in the first half of their time: they are not spread", early)
	}
	if got := p.hold(now.Add(2 * maxRefusalHold)); got != 0 {
		t.Errorf("after a rest a refusal is held %s", got)
	}
}
