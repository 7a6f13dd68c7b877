package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Overload offers three times what 256 clients in a closed loop got, on more
// connections than a node lets proposals wait.
const (
	overloadFactor  = 3
	overloadClients = 8192
)

// overload writes what becomes of a node that is offered more than it can do.
func overload(ctx context.Context, o *options) error {
	s, err := newFencekv(o.fencekv, o.data)
	if err != nil {
		return err
	}
	defer s.remove()
	defer s.stop()
	if err := s.start(ctx); err != nil {
		return err
	}
	usual, err := s.run(ctx, work{kind: fencedWrite, clients: 256, duration: 10 * time.Second, keys: 1000, size: 256})
	if err != nil {
		return err
	}
	_, term, err := s.leader(ctx)
	if err != nil {
		return err
	}
	before, err := usageOf(s.processes())
	if err != nil {
		return err
	}
	rate := overloadFactor * usual.PerSecond
	watching, stop := context.WithCancel(ctx)
	defer stop()
	most := make(chan int)
	go func() { most <- mostResident(watching, s) }()
	found, err := s.bench(ctx, "bench", "put", "--clients", strconv.Itoa(overloadClients), "--rate", fmt.Sprintf("%.0f", rate),
		"--warmup", "2s", "--duration", o.duration.String(), "-o", "json")
	if err != nil {
		return err
	}
	stop()
	peak := <-most
	_, now, err := s.leader(ctx)
	if err != nil {
		return err
	}
	after, err := s.run(ctx, work{kind: fencedWrite, clients: 256, duration: 10 * time.Second, keys: 1000, size: 256})
	if err != nil {
		return err
	}
	t := &table{}
	fmt.Fprintf(t, "%s of %.0f writes a second on %d connections. %s\n\n", o.duration, rate, overloadClients, machine())
	t.head("", "256 clients, closed loop", "overload", "256 clients, closed loop, after it")
	row := func(what string, of func(r result) string) { t.row(what, of(usual), of(found), of(after)) }
	row("acknowledged writes a second", func(r result) string { return fmt.Sprintf("%.0f", r.PerSecond) })
	row("p50 / p99 of those, from sending, ms", func(r result) string { return fmt.Sprintf("%.0f / %.0f", r.ServiceP50, r.ServiceP99) })
	row("others, a second", func(r result) string {
		var all []string
		for _, code := range slices.Sorted(maps.Keys(r.Codes)) {
			all = append(all, fmt.Sprintf("`%s` %.0f", code, float64(r.Codes[code])/r.Seconds))
		}
		return strings.Join(append(all, fmt.Sprintf("never sent %.0f", float64(r.Missed)/r.Seconds)), ", ")
	})
	fmt.Fprintf(t, "\nElections meanwhile: %d. Resident memory of the three nodes: %d MB before, at most %d MB meanwhile.\n",
		now-term, before.resident>>20, peak>>20)
	os.Stdout.Write(t.Bytes())
	if o.docs == "" {
		return nil
	}
	return splice(o.docs, "overload", t.Bytes())
}

// mostResident samples the memory of the members until ctx ends.
func mostResident(ctx context.Context, s *fencekv) (most int) {
	for tick := time.NewTicker(500 * time.Millisecond); ; {
		if u, err := usageOf(s.processes()); err == nil {
			most = max(most, u.resident)
		}
		select {
		case <-ctx.Done():
			tick.Stop()
			return most
		case <-tick.C:
		}
	}
}
