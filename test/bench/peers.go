package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// cells are the runs of one round: kinds of work, and numbers of clients.
var cells = []struct {
	kind    string
	clients []int
}{
	{fencedWrite, []int{1, 16, 64, 256}},
	{plainWrite, []int{1, 16, 64, 256}},
	{linearizable, []int{1, 16, 64, 256}},
	{staleRead, []int{1, 16, 64, 256}},
	{acquireRelease, []int{1, 16, 64, 256}},
	{followersWrites, []int{1, 16, 64, 256}},
}

// warmup is the part of a run that is dropped.
const warmup = time.Second

// measured holds the results of all rounds, by store and cell.
type measured struct {
	runs     map[string]map[string][]result
	failover map[string][]time.Duration // kill -9 of the leader to the next acknowledged write
	large    map[string]large
	tuned    map[string]connecting
}

// peers runs the same work on fencekv and etcd in turn.
func peers(ctx context.Context, o *options) error {
	f, err := newFencekv(o.fencekv, o.data)
	if err != nil {
		return err
	}
	defer f.remove()
	defer f.stop()
	e, err := newEtcd(o.etcd, o.data)
	if err != nil {
		return err
	}
	defer e.remove()
	defer e.stop()
	m := &measured{runs: map[string]map[string][]result{"fencekv": {}, "etcd": {}}, failover: map[string][]time.Duration{}, large: map[string]large{}}
	stores := []store{f, e}
	for _, s := range stores {
		if err := s.start(ctx); err != nil {
			return err
		}
	}
	if err := m.rounds(ctx, o, stores, e); err != nil {
		return err
	}
	m.tuned = e.tuned
	if err := m.failovers(ctx, o, stores); err != nil {
		return err
	}
	for _, s := range stores {
		s.stop()
		s.remove()
	}
	if !o.quick {
		if err := m.largeStates(ctx, o); err != nil {
			return err
		}
	}
	return m.report(o)
}

func (m *measured) rounds(ctx context.Context, o *options, stores []store, e *etcd) error {
	for round := range o.rounds {
		for _, cell := range cells {
			for _, clients := range cell.clients {
				w := work{kind: cell.kind, clients: clients, duration: o.duration, keys: 1000, size: 256}
				if !strings.Contains(w.cell(), o.only) {
					continue
				}
				if round == 0 && !o.quick {
					short := w
					short.duration = time.Second
					if err := e.calibrate(ctx, short); err != nil {
						return err
					}
				}
				for _, s := range stores {
					if err := m.add(ctx, s, w); err != nil {
						return fmt.Errorf("%s, %s: %w", s.name(), w.cell(), err)
					}
				}
				slices.Reverse(stores) // neither always runs after the other
			}
		}
	}
	return nil
}

func (m *measured) add(ctx context.Context, s store, w work) error {
	warm := w
	warm.duration = warmup
	if _, err := s.run(ctx, warm); err != nil {
		return err
	}
	found, err := measure(ctx, s, w)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%-8s %-32s %8.0f/s  p50 %7.2f ms  p99 %7.2f ms  server CPU %5.2f s/10k  client CPU %5.2f s/10k  %d errors  %d elections\n",
		s.name(), w.cell(), found.PerSecond, found.P50, found.P99, found.serverCPUPer10k(), found.clientCPUPer10k(), found.Errors, found.Elections)
	m.runs[s.name()][w.cell()] = append(m.runs[s.name()][w.cell()], found)
	return nil
}

// failovers kills the leader with SIGKILL and measures until the next write is
// acknowledged by one of the others.
func (m *measured) failovers(ctx context.Context, o *options, stores []store) error {
	if o.only != "" {
		return nil
	}
	for range 2*o.rounds + 1 {
		for _, s := range stores {
			took, err := failover(ctx, s)
			if err != nil {
				return fmt.Errorf("failover of %s: %w", s.name(), err)
			}
			fmt.Fprintf(os.Stderr, "%-8s failover %s\n", s.name(), took.Round(time.Millisecond))
			m.failover[s.name()] = append(m.failover[s.name()], took)
		}
	}
	return nil
}

func failover(ctx context.Context, s store) (time.Duration, error) {
	leader, _, err := s.leader(ctx)
	if err != nil {
		return 0, err
	}
	var others []int
	for i, p := range s.processes() {
		if p != leader {
			others = append(others, i)
		}
	}
	leader.kill()
	start := time.Now()
	took, err := nextWrite(ctx, s, others, start)
	if err != nil {
		return 0, err
	}
	if err := leader.start(); err != nil {
		return 0, err
	}
	// The cluster is whole again when the member that was killed takes writes.
	for i, p := range s.processes() {
		if p == leader {
			return took, await(time.Minute, func() error { return s.poke(ctx, []int{i}) })
		}
	}
	return took, nil
}

// nextWrite sends a write to every member every 20 ms, each try for itself, so that
// neither store's way of waiting for a leader hides how soon there is one.
func nextWrite(ctx context.Context, s store, members []int, start time.Time) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	worked := make(chan time.Duration, 1)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case took := <-worked:
			return took, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-tick.C:
			go func() {
				if s.poke(ctx, members) == nil {
					select {
					case worked <- time.Since(start):
					default:
					}
				}
			}()
		}
	}
}
