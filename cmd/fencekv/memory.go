package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The garbage collector runs when the heap has grown by a percentage of what is
// live. A store of few keys would collect many times a second at Go's own 100, and
// one of many keys would take five times the memory of its keys at 400: so the
// percentage allows a fixed amount of garbage, within bounds.
const (
	garbage   = 512 << 20 // bytes between two collections
	maxGrowth = 400       // percent, while little is live
	minGrowth = 50        // percent, however much is live
	paceEvery = time.Second
)

// growthFor returns the percentage for a number of live bytes.
func growthFor(live uint64) int {
	percent := uint64(garbage) * 100 / max(live, 1)
	return int(min(max(percent, minGrowth), maxGrowth))
}

// paceCollector keeps the percentage fit for the heap until ctx ends. An operator
// who sets GOGC has decided, and is left alone.
func paceCollector(ctx context.Context) {
	if os.Getenv("GOGC") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	current := 0
	for tick := time.NewTicker(paceEvery); ; {
		metrics.Read(live)
		if percent := growthFor(live[0].Value.Uint64()); percent != current {
			debug.SetGCPercent(percent)
			current = percent
		}
		select {
		case <-ctx.Done():
			tick.Stop()
			return
		case <-tick.C:
		}
	}
}
