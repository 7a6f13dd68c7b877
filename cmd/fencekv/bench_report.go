package main

import (
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// benchReport is what a run prints. Times are milliseconds.
type benchReport struct {
	Work             string           `json:"work"`
	Nodes            []string         `json:"nodes"` // base URLs asked
	Clients          int              `json:"clients"`
	Rate             float64          `json:"rate,omitempty"` // due a second; absent for a closed loop
	ValueSize        int              `json:"valueSize"`      // bytes
	Keys             int64            `json:"keys"`
	Seconds          float64          `json:"seconds"`
	Operations       int64            `json:"operations"` // that succeeded
	PerSecond        float64          `json:"perSecond"`
	Latency          benchTimes       `json:"latency"`          // from the moment an operation was due
	Service          benchTimes       `json:"service"`          // from the moment it was sent
	Errors           map[string]int64 `json:"errors"`           // by code
	Missed           int64            `json:"missed"`           // due but never sent: the generator's own limit
	ClientCPUSeconds float64          `json:"clientCpuSeconds"` // of this process while it measured
	Histogram        []benchBar       `json:"histogram"`        // of latency
}

type benchTimes struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// benchBar counts the operations that took at most UpTo milliseconds, and more
// than the bar before.
type benchBar struct {
	UpTo  float64 `json:"upTo"`
	Count int64   `json:"count"`
}

func newBenchReport(cfg *benchConfig, nodes []*url.URL, f *findings) *benchReport {
	work := cfg.kind
	switch {
	case cfg.plain:
		work = "plain " + work
	case cfg.stale:
		work = "stale " + work
	}
	r := &benchReport{
		Work: work, Clients: cfg.clients, Rate: cfg.rate, ValueSize: cfg.size, Keys: cfg.keys,
		Seconds: f.elapsed.Seconds(), Operations: f.waited.TotalCount(),
		Latency: timesOf(f.waited), Service: timesOf(f.served), Errors: f.errors, Missed: f.missed,
		ClientCPUSeconds: f.cpu.Seconds(), Histogram: barsOf(f.waited),
	}
	r.PerSecond = float64(r.Operations) / r.Seconds
	for _, n := range nodes {
		r.Nodes = append(r.Nodes, n.String())
	}
	return r
}

func timesOf(h *hdrhistogram.Histogram) benchTimes {
	at := func(percentile float64) float64 { return float64(h.ValueAtPercentile(percentile)) / 1e3 }
	return benchTimes{Mean: math.Round(h.Mean()) / 1e3, P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: float64(h.Max()) / 1e3}
}

// barsOf sums the histogram up into bars whose bounds double.
func barsOf(h *hdrhistogram.Histogram) (bars []benchBar) {
	upTo := 0.125
	for _, bar := range h.Distribution() {
		if bar.Count == 0 {
			continue
		}
		for float64(bar.To)/1e3 > upTo {
			upTo *= 2
		}
		if n := len(bars); n == 0 || bars[n-1].UpTo != upTo {
			bars = append(bars, benchBar{UpTo: upTo})
		}
		bars[len(bars)-1].Count += bar.Count
	}
	return bars
}

// failed returns an error if any operation failed.
func (f *findings) failed() error {
	for code, n := range f.errors {
		return fmt.Errorf("%d operations failed: %s", n, code)
	}
	return nil
}

// sheet shows the report to a person.
func (r *benchReport) sheet() sheet {
	rows := [][]string{
		{"work", fmt.Sprintf("%s, %d clients, %d keys, values of %d bytes", r.Work, r.Clients, r.Keys, r.ValueSize)},
		{"nodes", strings.Join(r.Nodes, " ")},
		{"rate", mark(r.Rate > 0, fmt.Sprintf("%.0f due a second", r.Rate))},
		{"operations", fmt.Sprintf("%d in %.1fs, %.0f a second", r.Operations, r.Seconds, r.PerSecond)},
		{"latency", r.Latency.String()},
		{"service", mark(r.Rate > 0, r.Service.String())},
		{"missed", number(r.Missed)},
		{"client CPU", fmt.Sprintf("%.2fs", r.ClientCPUSeconds)},
	}
	for _, code := range slices.Sorted(maps.Keys(r.Errors)) {
		rows = append(rows, []string{"error " + code, number(r.Errors[code])})
	}
	const width = 50
	most := int64(1)
	for _, bar := range r.Histogram {
		most = max(most, bar.Count)
	}
	for _, bar := range r.Histogram {
		rows = append(rows, []string{"≤ " + milliseconds(bar.UpTo), fmt.Sprintf("%-8d %s", bar.Count, strings.Repeat("▇", int((bar.Count*width+most-1)/most)))})
	}
	return sheet{rows: rows}
}

// String lists the percentiles.
func (t benchTimes) String() string {
	return fmt.Sprintf("mean %s, p50 %s, p90 %s, p99 %s, p99.9 %s, max %s",
		milliseconds(t.Mean), milliseconds(t.P50), milliseconds(t.P90), milliseconds(t.P99), milliseconds(t.P999), milliseconds(t.Max))
}

func milliseconds(ms float64) string {
	return time.Duration(ms * float64(time.Millisecond)).Round(time.Microsecond).String()
}
