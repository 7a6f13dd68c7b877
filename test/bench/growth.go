package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// What Growth makes much of.
const (
	growthClients = 16
	growthRecords = 1_000_000
	growthLocks   = 10_000
	growthWaiters = 10_000 // the most one resource may have
)

// grown is what a write and a read cost in one state.
type grown struct {
	what        string
	size        int // bytes of a value
	write, read result
}

// growth measures whether what a store holds makes it slower.
func growth(ctx context.Context, o *options) error {
	var states []grown
	for _, run := range []func(context.Context, *options) ([]grown, error){manyKeys, manyOthers} {
		rows, err := run(ctx, o)
		if err != nil {
			return err
		}
		states = append(states, rows...)
	}
	sizes, err := valueSizes(ctx, o)
	if err != nil {
		return err
	}
	t := &table{}
	fmt.Fprintf(t, "%d clients in a closed loop for %s. %s\n\n", growthClients, o.duration, machine())
	head := func(first string) {
		t.head(first, "fenced writes a second", "p50 / p99 ms", "server CPU s/10k", "linearizable reads a second", "p50 / p99 ms", "server CPU s/10k")
	}
	head("what the store holds, values of 256 bytes")
	for _, g := range states {
		t.row(g.cells()...)
	}
	t.WriteString("\n")
	head("value of")
	for _, g := range sizes {
		t.row(g.cells()...)
	}
	os.Stdout.Write(t.Bytes())
	if o.docs == "" {
		return nil
	}
	if err := plotSizes(filepath.Join(o.docs, "performance"), sizes); err != nil {
		return err
	}
	return splice(o.docs, "growth", t.Bytes())
}

func (g grown) cells() []string {
	cells := []string{g.what}
	for _, r := range []result{g.write, g.read} {
		cells = append(cells, fmt.Sprintf("%.0f", r.PerSecond), fmt.Sprintf("%.2f / %.2f", r.P50, r.P99), fmt.Sprintf("%.2f", r.serverCPUPer10k()))
	}
	return cells
}

// withCluster runs do on a new cluster whose request records stay.
func withCluster(ctx context.Context, o *options, do func(s *fencekv) error) error {
	s, err := newFencekv(o.fencekv, o.data, "--request-retention", "24h", "--max-value", "1048576")
	if err != nil {
		return err
	}
	defer s.remove()
	defer s.stop()
	if err := s.start(ctx); err != nil {
		return err
	}
	return do(s)
}

func gauge(ctx context.Context, o *options, s *fencekv, what string, keys int64, size int) (grown, error) {
	g := grown{what: what, size: size}
	var err error
	w := work{kind: fencedWrite, clients: growthClients, duration: o.duration, keys: keys, size: size}
	if g.write, err = measure(ctx, s, w); err != nil {
		return g, err
	}
	w.kind = linearizable
	g.read, err = measure(ctx, s, w)
	fmt.Fprintf(os.Stderr, "%-40s write %7.0f/s  read %7.0f/s\n", what, g.write.PerSecond, g.read.PerSecond)
	return g, err
}

// fill writes each of keys, or count times keys in turn.
func fill(ctx context.Context, s *fencekv, keys, count int64) error {
	found, err := s.run(ctx, work{kind: fencedWrite, clients: 64, duration: time.Hour, count: count, keys: keys, inOrder: true, size: 256})
	if err == nil && found.Errors > 0 {
		err = fmt.Errorf("%d writes failed", found.Errors)
	}
	return err
}

func manyKeys(ctx context.Context, o *options) (rows []grown, err error) {
	err = withCluster(ctx, o, func(s *fencekv) error {
		for _, keys := range []int64{1_000, 100_000, 1_000_000} {
			if err := fill(ctx, s, keys, keys); err != nil {
				return err
			}
			g, err := gauge(ctx, o, s, fmt.Sprintf("%d keys, a record of each write", keys), keys, 256)
			if err != nil {
				return err
			}
			rows = append(rows, g)
		}
		return nil
	})
	return rows, err
}

func manyOthers(ctx context.Context, o *options) (rows []grown, err error) {
	const keys = 1_000
	err = withCluster(ctx, o, func(s *fencekv) error {
		for _, step := range []struct {
			what string
			do   func() error
		}{
			{"1000 keys, 1,000,000 request records", func() error { return fill(ctx, s, keys, growthRecords) }},
			{"… and 10,000 live locks", func() error { return s.holdLocks(ctx, growthLocks) }},
			{"… and 10,000 waiters of one more", func() error { return s.queueUp(ctx, growthWaiters) }},
		} {
			if err := step.do(); err != nil {
				return err
			}
			g, err := gauge(ctx, o, s, step.what, keys, 256)
			if err != nil {
				return err
			}
			rows = append(rows, g)
		}
		return nil
	})
	return rows, err
}

func valueSizes(ctx context.Context, o *options) (rows []grown, err error) {
	for _, size := range []int{16, 256, 4 << 10, 64 << 10, 256 << 10, 1 << 20} {
		err := withCluster(ctx, o, func(s *fencekv) error {
			const keys = 100 // eight earlier values of each are kept, up to 1 MiB of them
			if err := fill(ctx, s, keys, keys); err != nil {
				return err
			}
			g, err := gauge(ctx, o, s, fmt.Sprintf("%d bytes", size), keys, size)
			rows = append(rows, g)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// acquire asks the leader for a lock and returns the status.
func (s *fencekv) acquire(ctx context.Context, client *http.Client, leader, resource string, waitMs int) (int, error) {
	body := fmt.Sprintf(`{"holder":"growth","ttlMs":3600000,"waitMs":%d}`, waitMs)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, leader+"/v1/acquire/"+resource, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

func (s *fencekv) leaderURL(ctx context.Context) (string, error) {
	leader, _, err := s.leader(ctx)
	if err != nil {
		return "", err
	}
	for i, m := range s.members {
		if m == leader {
			return s.http[i], nil
		}
	}
	return "", errNoLeader
}

// holdLocks takes so many locks, for longer than the measurement.
func (s *fencekv) holdLocks(ctx context.Context, count int) error {
	leader, err := s.leaderURL(ctx)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	numbers, failed := make(chan int), make(chan error, 64)
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for i := range numbers {
				if status, err := s.acquire(ctx, client, leader, fmt.Sprintf("growth-%05d", i), 0); err != nil || status != http.StatusCreated {
					select {
					case failed <- fmt.Errorf("lock %d: status %d, %w", i, status, err):
					default:
					}
				}
			}
		})
	}
	for i := range count {
		numbers <- i
	}
	close(numbers)
	all.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// queueUp leaves so many callers waiting for one lock until ctx ends.
func (s *fencekv) queueUp(ctx context.Context, count int) error {
	leader, err := s.leaderURL(ctx)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{}}
	if _, err := s.acquire(ctx, client, leader, "growth-queue", 0); err != nil {
		return err
	}
	for i := range count {
		go func() { _, _ = s.acquire(ctx, client, leader, "growth-queue", 3_600_000) }()
		if i%64 == 63 { // not all of them dialing at once
			if err := s.waiting(ctx, leader, i+1-64); err != nil {
				return err
			}
		}
	}
	return s.waiting(ctx, leader, count)
}

// waiting returns once at least count callers stand in queues.
func (s *fencekv) waiting(ctx context.Context, base string, count int) error {
	return await(time.Minute, func() error {
		var status struct {
			Counts struct{ Waiters int } `json:"counts"`
		}
		if err := s.get(ctx, base+"/v1/status", &status); err != nil {
			return err
		}
		if status.Counts.Waiters < count {
			return fmt.Errorf("%d of %d wait", status.Counts.Waiters, count)
		}
		return nil
	})
}

// plotSizes draws what a write and a read cost by the size of the value.
func plotSizes(dir string, rows []grown) error {
	p := plot.New()
	p.Title.Text = "server CPU for 10,000 operations"
	p.X.Label.Text, p.Y.Label.Text = "bytes of a value", "seconds"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left = true, true
	var write, read plotter.XYs
	for _, g := range rows {
		write = append(write, plotter.XY{X: float64(g.size), Y: g.write.serverCPUPer10k()})
		read = append(read, plotter.XY{X: float64(g.size), Y: g.read.serverCPUPer10k()})
	}
	if err := plotutil.AddLinePoints(p, "fenced write", write, "linearizable read", read); err != nil {
		return err
	}
	return p.Save(14*vg.Centimeter, 8*vg.Centimeter, picture(dir, "value size"))
}
