package main

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Endurance keeps a cluster at its full rate, in so many parts.
const (
	enduranceParts = 12
	enduranceKeys  = 10_000
)

// sample is what a node holds at one moment, after a collection.
type sample struct {
	heap, goroutines int
}

// endurance writes at the full rate for o.duration and looks at what the members
// hold meanwhile.
func endurance(ctx context.Context, o *options) error {
	s, err := newFencekv(o.fencekv, o.data)
	if err != nil {
		return err
	}
	defer s.remove()
	defer s.stop()
	profiles, err := freeAddresses(len(s.members))
	if err != nil {
		return err
	}
	for i, m := range s.members {
		m.args = append(m.args, "--pprof", profiles[i])
	}
	if err := s.start(ctx); err != nil {
		return err
	}
	if err := fill(ctx, s, enduranceKeys, enduranceKeys); err != nil {
		return err
	}
	t := &table{}
	fmt.Fprintf(t, "%s of fenced writes with request IDs, 64 clients in a closed loop, %d keys, values of 256 bytes, default settings. The three nodes together. %s\n\n",
		o.duration, enduranceKeys, machine())
	t.head("after", "writes a second", "p99 ms", "request records", "heap, collected", "resident", "goroutines", "on disk")
	row := func(after time.Duration, r result) error {
		var sum sample
		for _, address := range profiles {
			one, err := sampleOf(address)
			if err != nil {
				return err
			}
			sum.heap += one.heap
			sum.goroutines += one.goroutines
		}
		used, err := usageOf(s.processes())
		if err != nil {
			return err
		}
		var status struct {
			Counts struct{ Requests int } `json:"counts"`
		}
		if err := s.get(ctx, s.http[0]+"/v1/status", &status); err != nil {
			return err
		}
		cells := []string{
			after.String(), fmt.Sprintf("%.0f", r.PerSecond), fmt.Sprintf("%.1f", r.P99), fmt.Sprint(status.Counts.Requests),
			fmt.Sprintf("%d MB", sum.heap>>20), fmt.Sprintf("%d MB", used.resident>>20), fmt.Sprint(sum.goroutines), fmt.Sprintf("%d MB", sizeOf(s.dir)>>20),
		}
		fmt.Fprintln(os.Stderr, strings.Join(cells, "  "))
		t.row(cells...)
		return nil
	}
	if err := row(0, result{}); err != nil {
		return err
	}
	part := o.duration / enduranceParts
	for i := range enduranceParts {
		r, err := measure(ctx, s, work{kind: fencedWrite, clients: 64, duration: part, keys: enduranceKeys, size: 256})
		if err != nil {
			return err
		}
		if r.Errors > 0 || r.Elections > 0 {
			fmt.Fprintf(os.Stderr, "%d failed, %d elections\n", r.Errors, r.Elections)
		}
		if err := row(part*time.Duration(i+1), r); err != nil {
			return err
		}
	}
	os.Stdout.Write(t.Bytes())
	if o.docs == "" {
		return nil
	}
	return splice(o.docs, "endurance", t.Bytes())
}

// sampleOf asks the profiles of a node for the size of its heap and the number of
// its goroutines.
func sampleOf(address string) (sample, error) {
	heap, err := profileNumber(address, "heap?debug=1&gc=1", "# HeapAlloc = ")
	if err != nil {
		return sample{}, err
	}
	goroutines, err := profileNumber(address, "goroutine?debug=1", "goroutine profile: total ")
	return sample{heap: heap, goroutines: goroutines}, err
}

func profileNumber(address, profile, label string) (int, error) {
	response, err := http.Get("http://" + address + "/debug/pprof/" + profile)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var n int
		if _, err := fmt.Sscanf(lines.Text(), label+"%d", &n); err == nil {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%s of %s has no %q: %w", profile, address, label, lines.Err())
}

// sizeOf returns the bytes of all files under dir.
func sizeOf(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			if info, err := entry.Info(); err == nil {
				sum += info.Size()
			}
		}
		return nil
	})
	return sum
}
