package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencekv/fencekv/cluster"
	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/snapshot"
)

var (
	simSeeds  = flag.Int("sim.seeds", 6, "how many seeds TestSimulation runs")
	simSeed   = flag.Uint64("sim.seed", 0, "run this seed only")
	simLength = flag.Duration("sim.length", time.Minute, "simulated time of one seed")
)

// TestSimulation holds the promises of the store against partitions, crashes,
// leader changes, resends and lapsed leases. Workers take locks, sleep past
// their leases now and then, and write with whatever token they have; readers
// read on every node; a fault comes and goes every few simulated seconds. What
// each client was told is kept and checked against what the store then holds.
func TestSimulation(t *testing.T) {
	seeds := make([]uint64, *simSeeds)
	for i := range seeds {
		seeds[i] = uint64(i + 1)
	}
	if *simSeed != 0 {
		seeds = []uint64{*simSeed}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { simulate(t, seed) })
		})
	}
}

func simulate(t *testing.T, seed uint64) {
	net := newSimNet(t, seed, "n1", "n2", "n3")
	defer net.close()
	w := &simWorld{t: t, net: net, tokens: map[uint64]bool{}, begun: time.Now()}
	end := time.Now().Add(*simLength)
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() { w.worker(rand.New(rand.NewPCG(seed, uint64(100+i))), fmt.Sprintf("w%d", i), end) })
	}
	for i := range 2 {
		clients.Go(func() { w.reader(rand.New(rand.NewPCG(seed, uint64(200+i))), end) })
	}
	clients.Go(func() { w.watch(end) })
	w.faults(rand.New(rand.NewPCG(seed, 300)), end)
	clients.Wait()
	w.settle()
}

// simWorld is what the clients were told.
type simWorld struct {
	t     *testing.T
	net   *simNet
	begun time.Time

	mu     sync.Mutex
	writes []simWrite
	grants []simGrant
	tokens map[uint64]bool
	newest uint64 // highest revision acknowledged so far
	calls  int
}

type simWrite struct {
	key, id  string
	token    uint64
	revision uint64
	version  uint64
}

type simGrant struct {
	resource string
	token    uint64
	revision uint64
}

var simResources = []string{"app/a", "app/b", "app/"}

// worker is one client process under a lock.
func (w *simWorld) worker(rng *rand.Rand, name string, end time.Time) {
	for n := 0; time.Now().Before(end); n++ {
		resource := simResources[rng.IntN(len(simResources))]
		mode := fsm.Mode(rng.IntN(2))
		before := w.issued()
		grant, ok := w.send(rng, fmt.Sprintf("%s-lock-%d", name, n), func(lease string) fsm.Op {
			return &fsm.Acquire{
				Resource: resource, Holder: name, LeaseID: name + lease, TTLMs: 2_000,
				WaitMs: int64(rng.IntN(2)) * 1_000, Mode: mode,
			}
		})
		if !ok || grant.Code != fsm.Granted {
			time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
			continue
		}
		w.granted(resource, grant, before, mode)
		for k := range 1 + rng.IntN(5) {
			if rng.IntN(4) == 0 {
				time.Sleep(time.Duration(rng.IntN(5_000)) * time.Millisecond) // a pause that may outlive the lease
			}
			w.write(rng, fmt.Sprintf("%s-%d-%d", name, n, k), resource, grant.Token)
		}
		if rng.IntN(2) == 0 {
			w.send(rng, fmt.Sprintf("%s-free-%d", name, n), func(string) fsm.Op {
				return &fsm.Release{Resource: resource, LeaseID: grant.LeaseID}
			})
		}
	}
}

func (w *simWorld) write(rng *rand.Rand, id, resource string, token uint64) {
	key := resource
	if key == "app/" {
		key = []string{"app/a", "app/b"}[rng.IntN(2)]
	}
	value := []byte(id)
	d, ok := w.send(rng, id, func(string) fsm.Op { return &fsm.Put{Key: key, Value: value, Token: token} })
	if !ok || d.Outcome == fsm.OutcomeRefused {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes = append(w.writes, simWrite{key, id, token, d.Revision, d.Version})
	w.newest = max(w.newest, d.Revision)
}

// send carries one logical operation through: it tries node after node under
// one request ID until some node gives a decision, or until it gives up.
func (w *simWorld) send(rng *rand.Rand, id string, op func(attempt string) fsm.Op) (fsm.Decision, bool) {
	for attempt := range 30 {
		node := w.net.node(w.net.names[rng.IntN(3)])
		if node == nil {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		command := fsm.NewCommand(fsm.Request{ID: id}, op(fmt.Sprintf("-%s-%d", id, attempt)))
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		d, err := node.Propose(ctx, time.Minute, command)
		if err == nil && d.Outcome == fsm.OutcomeWaiting {
			d, err = node.Await(ctx, d.Resource, id)
		}
		cancel()
		w.mu.Lock()
		w.calls++
		w.mu.Unlock()
		if err == nil {
			return d, true
		}
		var known *cluster.Error
		if !errors.As(err, &known) {
			w.t.Errorf("%s: error without an outcome: %v", id, err)
			return fsm.Decision{}, false
		}
		time.Sleep(time.Duration(rng.IntN(100)) * time.Millisecond)
	}
	return fsm.Decision{}, false
}

func (w *simWorld) issued() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	var newest uint64
	for _, g := range w.grants {
		newest = max(newest, g.token)
	}
	return newest
}

// granted checks promise 2: tokens rise over everything that happened before.
func (w *simWorld) granted(resource string, d fsm.Decision, before uint64, mode fsm.Mode) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d.Token <= before {
		w.t.Errorf("token %d granted after %d was", d.Token, before)
	}
	if w.tokens[d.Token] {
		w.t.Errorf("token %d granted twice", d.Token)
	}
	w.tokens[d.Token] = true
	g := simGrant{resource: resource, token: d.Token}
	if mode == fsm.ModeIssue {
		g.revision = d.Revision
	}
	w.grants = append(w.grants, g)
}

// reader checks promise 5: a read holds whatever was acknowledged before it.
func (w *simWorld) reader(rng *rand.Rand, end time.Time) {
	for time.Now().Before(end) {
		time.Sleep(time.Duration(rng.IntN(200)) * time.Millisecond)
		node := w.net.node(w.net.names[rng.IntN(3)])
		if node == nil {
			continue
		}
		w.mu.Lock()
		newest := w.newest
		w.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		state, err := node.Read(ctx)
		cancel()
		if err == nil && state.Revision() < newest {
			w.t.Errorf("read revision %d after %d was acknowledged", state.Revision(), newest)
		}
	}
}

// watch looks at every node's state all the time: nothing falls, and equal
// indexes mean equal states.
func (w *simWorld) watch(end time.Time) {
	last := map[*cluster.Node]*fsm.State{}
	seen := map[uint64][]byte{}
	for time.Now().Before(end) {
		time.Sleep(20 * time.Millisecond)
		for _, name := range w.net.names {
			node := w.net.node(name)
			if node == nil {
				continue
			}
			state, _ := node.Stale()
			if before := last[node]; before != nil {
				w.monotone(name, before, state)
			}
			last[node] = state
			if state.Index()%16 != 0 {
				continue
			}
			image := w.image(state)
			if known := seen[state.Index()]; known != nil && !bytes.Equal(known, image) {
				w.t.Errorf("%s differs from another node at index %d", name, state.Index())
			}
			seen[state.Index()] = image
		}
	}
}

func (w *simWorld) image(state *fsm.State) []byte {
	var b bytes.Buffer
	if _, err := snapshot.Write(&b, state); err != nil {
		w.t.Errorf("snapshot: %v", err)
	}
	return b.Bytes()
}

func (w *simWorld) monotone(name string, a, b *fsm.State) {
	if b.Index() < a.Index() || b.Revision() < a.Revision() || b.Token() < a.Token() || b.ClockMs() < a.ClockMs() || b.EventSeq() < a.EventSeq() {
		w.t.Errorf("%s went back from index %d to %d", name, a.Index(), b.Index())
	}
	// The clock may never run ahead of real time: no lease ends early.
	if real := time.Since(w.begun).Milliseconds(); b.ClockMs() > real {
		w.t.Errorf("%s: clock %d ms is ahead of real time %d ms", name, b.ClockMs(), real)
	}
	for f := range a.Fences("", "") {
		if g := b.Fence(f.Resource); g == nil || g.MaxToken < f.MaxToken || g.Issued < f.Issued {
			w.t.Errorf("%s: the fence of %s went back", name, f.Resource)
		}
	}
}

// faults lets one fault come and go after the other.
func (w *simWorld) faults(rng *rand.Rand, end time.Time) {
	for time.Now().Before(end) {
		time.Sleep(time.Duration(500+rng.IntN(4_000)) * time.Millisecond)
		victim := w.net.names[rng.IntN(3)]
		if rng.IntN(2) == 0 {
			victim = w.leader()
		}
		switch rng.IntN(5) {
		case 0:
			w.net.crash(victim)
		case 1:
			w.net.isolate(victim)
		case 2:
			w.net.cutOneWay(victim, w.net.names[rng.IntN(3)])
		case 3:
			for _, name := range w.net.names {
				w.net.crash(name)
			}
		case 4:
			if node := w.net.node(victim); node != nil {
				ctx, cancel := context.WithTimeout(context.Background(), time.Second)
				_ = node.Transfer(ctx, "")
				cancel()
			}
		}
		time.Sleep(time.Duration(200+rng.IntN(4_000)) * time.Millisecond)
		w.recover()
	}
}

func (w *simWorld) recover() {
	w.net.heal()
	for _, name := range w.net.names {
		if w.net.node(name) == nil {
			w.net.start(name)
		}
	}
}

func (w *simWorld) leader() string {
	for _, name := range w.net.names {
		if node := w.net.node(name); node != nil && node.IsLeader() {
			return name
		}
	}
	return w.net.names[0]
}

// settle waits until all is well again and holds what the clients were told
// against what the store has.
func (w *simWorld) settle() {
	w.recover()
	var states []*fsm.State
	for range 200 {
		time.Sleep(100 * time.Millisecond)
		if states = w.agreed(); states != nil {
			break
		}
	}
	if states == nil {
		w.t.Fatal("the nodes did not agree within 20 simulated seconds after the last fault")
	}
	for _, state := range states[1:] {
		if !bytes.Equal(w.image(states[0]), w.image(state)) {
			w.t.Error("nodes at one index hold different states")
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls < 100 || len(w.grants) < 5 {
		w.t.Errorf("only %d calls and %d grants: the run proves nothing", w.calls, len(w.grants))
	}
	w.t.Logf("%d calls, %d acknowledged writes, %d grants; index %d", w.calls, len(w.writes), len(w.grants), states[0].Index())
	w.checkWrites(states[0])
	w.checkFences()
}

func (w *simWorld) agreed() []*fsm.State {
	var states []*fsm.State
	for _, name := range w.net.names {
		node := w.net.node(name)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		state, err := node.Read(ctx)
		cancel()
		if err != nil {
			return nil
		}
		states = append(states, state)
	}
	if states[0].Index() != states[1].Index() || states[0].Index() != states[2].Index() {
		return nil
	}
	return states
}

// checkWrites holds promises 3 and 4: every acknowledged write is there, once.
func (w *simWorld) checkWrites(state *fsm.State) {
	versions := map[string]map[uint64]string{}
	for _, one := range w.writes {
		r := state.Record(one.key, one.id)
		if r == nil || r.Verdict != fsm.VerdictApplied || r.Revision != one.revision || r.Version != one.version {
			w.t.Errorf("acknowledged write %s of %s (revision %d) is not on record: %+v", one.id, one.key, one.revision, r)
		}
		if versions[one.key] == nil {
			versions[one.key] = map[uint64]string{}
		}
		if other, taken := versions[one.key][one.version]; taken && other != one.id {
			w.t.Errorf("version %d of %s was given to %s and %s", one.version, one.key, other, one.id)
		}
		versions[one.key][one.version] = one.id
	}
	for key, e := range map[string]*fsm.Entry{"app/a": state.Entry("app/a"), "app/b": state.Entry("app/b")} {
		if e == nil {
			continue
		}
		applied := 0
		for r := range state.Records() {
			if r.Scope() == key && r.Op == fsm.KindPut && r.Verdict == fsm.VerdictApplied {
				applied++
			}
		}
		if uint64(applied) != e.Now.Version {
			w.t.Errorf("%s has version %d after %d applied requests", key, e.Now.Version, applied)
		}
	}
}

// checkFences holds promise 1: no write with an older token was applied after a
// newer one was enforced on the same resource.
func (w *simWorld) checkFences() {
	for _, write := range w.writes {
		later := slices.IndexFunc(w.grants, func(g simGrant) bool {
			return g.revision != 0 && fsm.Covers(g.resource, write.key) && g.token > write.token && g.revision < write.revision
		})
		if later >= 0 {
			w.t.Errorf("write %s with token %d applied at revision %d, after token %d was enforced at %d",
				write.id, write.token, write.revision, w.grants[later].token, w.grants[later].revision)
		}
	}
}
