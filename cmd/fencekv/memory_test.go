package main

import "testing"

// Between two collections no more than the fixed amount of garbage piles up, nor
// more than as much as is live, whichever is larger, and never more than four
// times what is live.
func TestGrowthFor(t *testing.T) {
	for _, live := range []uint64{0, 1, 4 << 20, 63 << 20, 64 << 20, 65 << 20, 200 << 20, 256 << 20, 1 << 30, 1 << 40} {
		percent := uint64(growthFor(live))
		if percent < minGrowth || percent > maxGrowth {
			t.Errorf("%d bytes live: %d %%", live, percent)
		}
		if grown := live * percent / 100; grown > max(garbage, live) {
			t.Errorf("%d bytes live: grows by %d at %d %%", live, grown, percent)
		}
	}
	if small, large := growthFor(1<<20), growthFor(1<<30); small != maxGrowth || large != minGrowth {
		t.Errorf("little live: %d %%, much live: %d %%", small, large)
	}
}
