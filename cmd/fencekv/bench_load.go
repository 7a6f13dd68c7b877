package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// missedAfter is how late the generator may send a request of an open loop. One
// that is later was not offered to the store at the rate asked for, and is
// counted instead of sent.
const missedAfter = time.Second

// load is one run: how operations are offered, and for how long.
type load struct {
	clients  int           // each with one operation under way
	rate     float64       // arrivals per second of an open loop; 0 for a closed one
	warmup   time.Duration // not counted
	duration time.Duration // counted
	count    int64         // end after so many operations; 0 for duration alone
	work     func(client int) operator

	next                int64 // sequence number of the next operation
	start, counted, end time.Time
	found               findings
}

// operator is one client's work.
type operator interface {
	// operate does one operation; code is empty for a success.
	operate(ctx context.Context, r *rand.Rand, sequence int64) (code string)
	close()
}

// findings is what a run found.
type findings struct {
	mu      sync.Mutex
	elapsed time.Duration
	cpu     time.Duration           // of this process
	waited  *hdrhistogram.Histogram // µs from the moment an operation was due to its answer
	served  *hdrhistogram.Histogram // µs from the moment it was sent
	errors  map[string]int64        // by code
	missed  int64                   // arrivals the generator was too late for
}

// longest is the longest time a histogram tells apart.
const longest = 2 * time.Minute

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, longest.Microseconds(), 3) }

// run offers the load. A closed loop sends the next operation when the last was
// answered; an open one sends at the rate asked for whatever the answers do, and
// counts an operation's time from the moment it was due, so that a stall is felt
// by all that it delayed (coordinated omission).
func (l *load) run(ctx context.Context) *findings {
	l.found = findings{waited: newHistogram(), served: newHistogram(), errors: map[string]int64{}}
	l.start = time.Now()
	l.counted = l.start.Add(l.warmup)
	l.end = l.counted.Add(l.duration)
	var all sync.WaitGroup
	for i := range l.clients {
		all.Go(func() { l.client(ctx, i) })
	}
	pause(ctx, time.NewTimer(0), l.counted)
	before := cpuTime()
	all.Wait()
	l.found.elapsed, l.found.cpu = min(time.Since(l.counted), l.duration), cpuTime()-before
	return &l.found
}

func (l *load) client(ctx context.Context, id int) {
	work := l.work(id)
	defer work.close()
	random := rand.New(rand.NewPCG(uint64(l.start.UnixNano()), uint64(id)))
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		sequence := atomic.AddInt64(&l.next, 1) - 1
		due := time.Now()
		if l.rate > 0 {
			due = l.start.Add(time.Duration(float64(sequence) / l.rate * float64(time.Second)))
		}
		if l.count > 0 && sequence >= l.count || !due.Before(l.end) || !pause(ctx, timer, due) {
			return
		}
		sent := time.Now()
		if sent.Sub(due) > missedAfter {
			l.miss(due)
			continue
		}
		code := work.operate(ctx, random, sequence)
		if ctx.Err() != nil {
			return
		}
		l.note(code, due, sent, time.Now())
	}
}

// pause waits until a moment; false if ctx ends first.
func pause(ctx context.Context, timer *time.Timer, until time.Time) bool {
	wait := time.Until(until)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer.Reset(wait)
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (l *load) miss(due time.Time) {
	if due.Before(l.counted) {
		return
	}
	l.found.mu.Lock()
	defer l.found.mu.Unlock()
	l.found.missed++
}

// note counts an operation. In an open loop it belongs to the moment it was due;
// in a closed loop to that of its answer, so that operations under way at either
// end of the time counted even out.
func (l *load) note(code string, due, sent, done time.Time) {
	at := done
	if l.rate > 0 {
		at = due
	}
	if at.Before(l.counted) || !at.Before(l.end) {
		return
	}
	f := &l.found
	f.mu.Lock()
	defer f.mu.Unlock()
	if code != "" {
		f.errors[code]++
		return
	}
	_ = f.waited.RecordValue(min(done.Sub(due), longest).Microseconds())
	_ = f.served.RecordValue(min(done.Sub(sent), longest).Microseconds())
}

// cpuTime is the processor time this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
