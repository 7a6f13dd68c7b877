package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// large is what a store does with many keys.
type large struct {
	Keys         int64
	Cold         time.Duration // start of three members on nothing to the first acknowledged write
	Load         float64       // writes a second while it was filled
	Longest      float64       // the slowest of those writes
	PerKey       float64       // resident memory of a member for each key with its request record
	AfterRestart float64       // the same, after the restart
	Restart      time.Duration // start of three members on those keys to the first acknowledged write
}

// largeStates fills each store with keys by fenced writes, kills all members, and
// starts them again.
func (m *measured) largeStates(ctx context.Context, o *options) error {
	f, err := newFencekv(o.fencekv, o.data, "--request-retention", "24h")
	if err != nil {
		return err
	}
	e, err := newEtcd(o.etcd, o.data)
	if err != nil {
		return err
	}
	for _, s := range []store{f, e} {
		found, err := largeState(ctx, s, o.keys)
		s.stop()
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s\n", newest(s.processes()[0].log))
			return fmt.Errorf("%s with %d keys: %w", s.name(), o.keys, err)
		}
		s.remove()
		fmt.Fprintf(os.Stderr, "%-8s %+v\n", s.name(), found)
		m.large[s.name()] = found
	}
	return nil
}

func largeState(ctx context.Context, s store, keys int64) (found large, err error) {
	begin := time.Now()
	if err := s.start(ctx); err != nil {
		return found, err
	}
	found.Keys, found.Cold = keys, time.Since(begin)
	empty, err := usageOf(s.processes())
	if err != nil {
		return found, err
	}
	filled, err := s.run(ctx, work{kind: fencedWrite, clients: 64, duration: time.Hour, count: keys, keys: keys, inOrder: true, size: 256})
	if err != nil {
		return found, err
	}
	if filled.Errors > 0 {
		return found, fmt.Errorf("%d writes failed", filled.Errors)
	}
	found.Load, found.Longest = filled.PerSecond, filled.Max
	full, err := usageOf(s.processes())
	if err != nil {
		return found, err
	}
	perKey := func(u usage) float64 { return float64(u.since(empty).resident) / 3 / float64(keys) }
	found.PerKey = perKey(full)
	s.stop()
	begin = time.Now()
	if err := s.start(ctx); err != nil {
		return found, err
	}
	found.Restart = time.Since(begin)
	again, err := usageOf(s.processes())
	if err != nil {
		return found, err
	}
	found.AfterRestart = perKey(again)
	return found, nil
}
