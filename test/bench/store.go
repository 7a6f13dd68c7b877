package main

import (
	"context"
	"time"
)

// Work that both stores do.
const (
	fencedWrite     = "fenced write"
	plainWrite      = "plain write"
	linearizable    = "linearizable read"
	staleRead       = "stale read"
	acquireRelease  = "acquire + release"
	followersWrites = "fenced write to followers"
)

// store is a cluster of three processes.
type store interface {
	name() string
	// start starts the members on what their directories hold and waits for an
	// acknowledged write.
	start(ctx context.Context) error
	processes() []*process
	// stop kills all members; their directories stay until remove.
	stop()
	remove()
	leader(ctx context.Context) (*process, uint64, error) // and the term
	// run does work with a number of clients, and nothing else.
	run(ctx context.Context, w work) (result, error)
	// poke tries one write on the members given, each try with a limit of its own.
	poke(ctx context.Context, members []int) error
}

// work is one run.
type work struct {
	kind     string
	clients  int
	duration time.Duration
	count    int64 // stop after so many; 0 for the duration alone
	keys     int64
	inOrder  bool // keys one after the other, so that count of them are written once each
	size     int  // bytes of a value
}

// result is what a run found. Latencies are milliseconds.
type result struct {
	Operations int64
	Seconds    float64
	PerSecond  float64
	P50        float64
	P99        float64
	Max        float64
	Errors     int64
	ServiceP50 float64 // from sending: in an open loop not from when it was due
	ServiceP99 float64
	Missed     int64   // due, but the generator could not send them
	ClientCPU  float64 // of the generator, for the whole run
	ServerCPU  float64 // of the three members
	Elections  uint64  // terms that began

	Codes map[string]int64 // errors by code
}

// serverCPUPer10k is the members' processor time for 10,000 operations.
func (r result) serverCPUPer10k() float64 { return r.ServerCPU / float64(r.Operations) * 10_000 }

func (r result) clientCPUPer10k() float64 { return r.ClientCPU / float64(r.Operations) * 10_000 }

// measure runs work and adds what the members used for it.
func measure(ctx context.Context, s store, w work) (result, error) {
	_, term, err := s.leader(ctx)
	if err != nil {
		return result{}, err
	}
	before, err := usageOf(s.processes())
	if err != nil {
		return result{}, err
	}
	found, err := s.run(ctx, w)
	if err != nil {
		return result{}, err
	}
	after, err := usageOf(s.processes())
	if err != nil {
		return result{}, err
	}
	_, now, err := s.leader(ctx)
	if err != nil {
		return result{}, err
	}
	found.ServerCPU = after.since(before).cpu.Seconds()
	found.Elections = now - term
	return found, nil
}
