package main

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/procfs"
)

// median of an odd or even number of values.
func median[N cmp.Ordered](values []N) N {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// each maps results to one of their numbers.
func each(all []result, of func(result) float64) (numbers []float64) {
	for _, r := range all {
		numbers = append(numbers, of(r))
	}
	return numbers
}

func perSecond(r result) float64 { return r.PerSecond }

// table writes Markdown.
type table struct{ bytes.Buffer }

func (t *table) row(cells ...string) {
	fmt.Fprintf(t, "| %s |\n", strings.Join(cells, " | "))
}

func (t *table) head(cells ...string) {
	t.row(cells...)
	t.row(slices.Repeat([]string{"---"}, len(cells))...)
}

// report prints the table, draws the plot and, if asked, puts both in the docs.
func (m *measured) report(o *options) error {
	t := &table{}
	fmt.Fprintf(t, "Medians of %d rounds of %s, the least and the most in brackets; ratio is fencekv / etcd. %s\n\n", o.rounds, o.duration, machine())
	t.head("work", "clients", "fencekv/s", "etcd/s", "ratio", "fencekv p50 / p99 ms", "etcd p50 / p99 ms", "server CPU s/10k", "CPU ratio", "client CPU s/10k")
	for _, cell := range cells {
		for _, clients := range cell.clients {
			w := work{kind: cell.kind, clients: clients}
			m.row(t, w)
		}
	}
	t.WriteString("\n")
	m.elections(t)
	if o.only == "" {
		m.followersShare(t)
		m.tail(t)
	}
	os.Stdout.Write(t.Bytes())
	if o.docs == "" {
		return nil
	}
	if err := m.plot(filepath.Join(o.docs, "performance")); err != nil {
		return err
	}
	return splice(o.docs, "peers", t.Bytes())
}

func (m *measured) row(t *table, w work) {
	f, e := m.runs["fencekv"][w.cell()], m.runs["etcd"][w.cell()]
	if len(f) == 0 || len(e) == 0 {
		return
	}
	speed := func(all []result) string {
		rates := each(all, perSecond)
		return fmt.Sprintf("%.0f (%.0f–%.0f)", median(rates), slices.Min(rates), slices.Max(rates))
	}
	times := func(all []result) string {
		return fmt.Sprintf("%.2f / %.2f",
			median(each(all, func(r result) float64 { return r.P50 })), median(each(all, func(r result) float64 { return r.P99 })))
	}
	server := func(all []result) float64 { return median(each(all, result.serverCPUPer10k)) }
	client := func(all []result) float64 { return median(each(all, result.clientCPUPer10k)) }
	t.row(w.kind, fmt.Sprint(w.clients), speed(f), speed(e),
		fmt.Sprintf("**%.2f**", median(each(f, perSecond))/median(each(e, perSecond))),
		times(f), times(e),
		fmt.Sprintf("%.2f / %.2f", server(f), server(e)), fmt.Sprintf("%.2f", server(f)/server(e)),
		fmt.Sprintf("%.2f / %.2f", client(f), client(e)))
}

func (m *measured) followersShare(t *table) {
	var parts []string
	for _, clients := range []int{64, 256} {
		to := func(name, kind string) float64 {
			return median(each(m.runs[name][work{kind: kind, clients: clients}.cell()], perSecond))
		}
		parts = append(parts, fmt.Sprintf("%.2f at %d clients (etcd %.2f)",
			to("fencekv", followersWrites)/to("fencekv", fencedWrite), clients, to("etcd", followersWrites)/to("etcd", fencedWrite)))
	}
	fmt.Fprintf(t, "Writes sent to followers, of those sent to the leader: %s.\n\n", strings.Join(parts, ", "))
}

func (m *measured) elections(t *table) {
	var parts []string
	for _, name := range []string{"fencekv", "etcd"} {
		elections, errors := uint64(0), int64(0)
		for _, all := range m.runs[name] {
			for _, r := range all {
				elections += r.Elections
				errors += r.Errors
			}
		}
		parts = append(parts, fmt.Sprintf("%s %d elections, %d failed operations", name, elections, errors))
	}
	fmt.Fprintf(t, "In all these runs: %s.\n\n", strings.Join(parts, "; "))
}

// tail is failover and the large state.
func (m *measured) tail(t *table) {
	t.head("", "fencekv", "etcd")
	spread := func(all []time.Duration) string {
		return fmt.Sprintf("%.2f s (%.2f–%.2f)", median(all).Seconds(), slices.Min(all).Seconds(), slices.Max(all).Seconds())
	}
	t.row(fmt.Sprintf("kill -9 of the leader to the next acknowledged write, median of %d", len(m.failover["etcd"])),
		spread(m.failover["fencekv"]), spread(m.failover["etcd"]))
	f, e := m.large["fencekv"], m.large["etcd"]
	if f.Keys > 0 {
		both := func(what string, of func(large) string) { t.row(what, of(f), of(e)) }
		both("cold start to the first acknowledged write", func(l large) string { return fmt.Sprintf("%.2f s", l.Cold.Seconds()) })
		both(fmt.Sprintf("%d keys written once each, fenced, 64 clients", f.Keys), func(l large) string { return fmt.Sprintf("%.0f/s", l.Load) })
		both("slowest of those writes", func(l large) string { return fmt.Sprintf("%.0f ms", l.Longest) })
		both("resident memory per 100,000 keys with request records, a member", func(l large) string { return fmt.Sprintf("%.0f MB", l.PerKey/10) })
		both("the same, after a restart", func(l large) string { return fmt.Sprintf("%.0f MB", l.AfterRestart/10) })
		both("restart with them to the first acknowledged write", func(l large) string { return fmt.Sprintf("%.2f s", l.Restart.Seconds()) })
	}
	t.WriteString("\n")
	if len(m.tuned) > 0 {
		t.WriteString("etcd's client did best with:")
		for _, cell := range slices.Sorted(keysOf(m.tuned)) {
			c := m.tuned[cell]
			where := "all members"
			if c.LeaderOnly {
				where = "the leader"
			}
			if strings.HasPrefix(cell, followersWrites) {
				where = "the followers"
			}
			fmt.Fprintf(t, " %s: %d connections to %s;", cell, c.Connections, where)
		}
		t.WriteString(" those were used.\n")
	}
}

func keysOf[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// machine says what the numbers were measured on.
func machine() string {
	model, memory, kernel := "unknown CPU", uint64(0), ""
	if fs, err := procfs.NewDefaultFS(); err == nil {
		if cpus, err := fs.CPUInfo(); err == nil && len(cpus) > 0 {
			model = cpus[0].ModelName
		}
		if info, err := fs.Meminfo(); err == nil && info.MemTotal != nil {
			memory = *info.MemTotal / 1024
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		kernel = strings.TrimSpace(string(text))
	}
	return fmt.Sprintf("Measured %s on %d × %s, %d MB of memory, Linux %s, %s; etcd v3.7.3.",
		time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), model, memory, kernel, runtime.Version())
}

// splice puts text between the marks of a part of performance.md.
func splice(docs, part string, text []byte) error {
	path := filepath.Join(docs, "performance.md")
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	begin, end := []byte("<!-- begin "+part+" -->\n"), []byte("<!-- end "+part+" -->")
	i, j := bytes.Index(page, begin), bytes.Index(page, end)
	if i < 0 || j < i {
		return fmt.Errorf("%s has no marks of %q", path, part)
	}
	i += len(begin)
	return os.WriteFile(path, slices.Concat(page[:i], text, page[j:]), 0o644)
}
