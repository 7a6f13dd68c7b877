package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fencekv/fencekv/httpapi/wire"
)

// withThrowAway runs tell against a cluster of three processes of its own.
func (d *drill) withThrowAway(tell func(*drill, *localCluster) error) error {
	dir, err := os.MkdirTemp("", "fencekv-drill-")
	if err != nil {
		return fmt.Errorf("make data directory: %w", err)
	}
	defer os.RemoveAll(dir)
	cluster, err := newLocalCluster(dir, 3, 0)
	if err != nil {
		return err
	}
	defer func() { _ = cluster.stop(10 * time.Second) }()
	starting, cancel := context.WithTimeout(d.ctx, time.Minute)
	defer cancel()
	if err := cluster.start(starting); err != nil {
		showLogs(cluster, d.stderr)
		return err
	}
	inner := &drill{
		ctx: d.ctx, client: d.client, stderr: d.stderr, story: d.story,
		cfg: drillConfig{Addrs: cluster.urls(), Prefix: d.cfg.Prefix, Kills: d.cfg.Kills},
	}
	err = tell(inner, cluster)
	d.rows = append(d.rows, inner.rows...)
	if err != nil {
		showLogs(cluster, d.stderr)
	}
	return err
}

// tellLeaderKilled is story g: the leader is killed again and again while
// workers write under locks; each worker keeps what it was told.
func tellLeaderKilled(d *drill) error {
	return d.withThrowAway(func(d *drill, c *localCluster) error {
		load := newCrashLoad(d, 4)
		load.start()
		kills, err := d.killLeaders(c, load)
		load.stop()
		if err != nil {
			return err
		}
		d.expect("kill -9 of the leader under load", fmt.Sprintf("%d times", d.cfg.Kills), fmt.Sprintf("%d times", kills),
			fmt.Sprintf("%d writes and %d locks acknowledged; %d answers lost and asked for again",
				load.acked.Load(), load.locks.Load(), load.unknown.Load()))
		return load.check()
	})
}

// killLeaders kills the leader, waits until writes go on, and starts it again.
func (d *drill) killLeaders(c *localCluster, load *crashLoad) (int, error) {
	for n := range d.cfg.Kills {
		if !d.until(30*time.Second, func() bool { return load.progressed(20) }) {
			return n, errors.New("writes do not go on")
		}
		status, err := d.status()
		if err != nil {
			return n, err
		}
		for _, node := range c.nodes {
			if node.name != status.LeaderName {
				continue
			}
			node.kill()
			load.mark()
			if !d.until(30*time.Second, func() bool { return load.progressed(1) }) {
				return n, errors.New("no write was acknowledged within 30 s of the kill")
			}
			if err := node.start(); err != nil {
				return n, err
			}
			ready, cancel := context.WithTimeout(d.ctx, 30*time.Second)
			err := node.ready(ready)
			cancel()
			if err != nil {
				return n, err
			}
		}
		load.mark()
	}
	return d.cfg.Kills, nil
}

// crashLoad is workers under locks. Each has a key of its own, so that its
// writes can be counted exactly.
type crashLoad struct {
	d       *drill
	workers []*crashWorker
	quit    chan struct{}
	done    sync.WaitGroup

	acked, locks, unknown atomic.Int64
	marked                int64
}

type crashWorker struct {
	load   *crashLoad
	key    string
	tokens []uint64
	writes []crashWrite
	failed error
}

type crashWrite struct{ id, position string }

func newCrashLoad(d *drill, workers int) *crashLoad {
	l := &crashLoad{d: d, quit: make(chan struct{})}
	for i := range workers {
		l.workers = append(l.workers, &crashWorker{load: l, key: d.key(fmt.Sprintf("crash-%d", i))})
	}
	return l
}

func (l *crashLoad) start() {
	for _, w := range l.workers {
		l.done.Go(w.run)
	}
}

func (l *crashLoad) stop() { close(l.quit); l.done.Wait() }

func (l *crashLoad) mark() { l.marked = l.acked.Load() }

func (l *crashLoad) progressed(by int64) bool { return l.acked.Load() >= l.marked+by }

// run writes under one lock after the other until told to stop. A write is sent
// under the same request ID until somebody decides on it.
func (w *crashWorker) run() {
	for n := 0; w.failed == nil; n++ {
		select {
		case <-w.load.quit:
			return
		default:
		}
		lease, err := w.lock(n)
		if err != nil {
			w.failed = err
			return
		}
		for k := range 25 {
			if w.failed = w.write(fmt.Sprintf("%d-%d", n, k), lease.Token); w.failed != nil {
				return
			}
		}
		w.failed = w.decided("release", func(addr string) (reply, error) {
			body := fmt.Sprintf(`{"leaseId":%q}`, lease.LeaseID)
			return w.load.d.callAt(addr, "POST", "/v1/release/"+escape(w.key), []byte(body),
				fields{wire.HeaderIdempotencyKey: fmt.Sprintf("free-%d", n), "Content-Type": wire.TypeJSON})
		}, func(r reply) error {
			if r.status == 200 || r.problem.Code == wire.CodeNotHolder { // it may have lapsed
				return nil
			}
			return &r.problem
		})
	}
}

func (w *crashWorker) lock(n int) (wire.Granted, error) {
	var lease wire.Granted
	body := `{"holder":"worker","ttlMs":20000,"waitMs":30000}`
	id := fields{wire.HeaderIdempotencyKey: fmt.Sprintf("lock-%d", n), "Content-Type": wire.TypeJSON}
	err := w.decided("acquire", func(addr string) (reply, error) {
		return w.load.d.callAt(addr, "POST", acquirePath(w.key), []byte(body), id)
	}, func(r reply) error { return r.decode(&lease) })
	if err == nil {
		w.tokens = append(w.tokens, lease.Token)
		w.load.locks.Add(1)
	}
	return lease, err
}

func (w *crashWorker) write(id string, t uint64) error {
	return w.decided("write", func(addr string) (reply, error) {
		return w.load.d.callAt(addr, "PUT", kvPath(w.key), []byte(id), token(t).with(wire.HeaderIdempotencyKey, id))
	}, func(r reply) error {
		if r.status/100 != 2 {
			return &r.problem
		}
		w.writes = append(w.writes, crashWrite{id, position(r)})
		w.load.acked.Add(1)
		return nil
	})
}

// decided sends one request to node after node until one decides on it.
func (w *crashWorker) decided(what string, send func(addr string) (reply, error), settle func(reply) error) error {
	l := w.load
	deadline := time.Now().Add(time.Minute)
	for n := 0; time.Now().Before(deadline); n++ {
		r, err := send(l.d.cfg.Addrs[n%len(l.d.cfg.Addrs)])
		if err == nil && r.status != 503 && r.status != 504 {
			if err := settle(r); err != nil {
				return fmt.Errorf("%s: %w", what, err)
			}
			return nil
		}
		if err != nil || r.status == 504 {
			l.unknown.Add(1)
		}
		if !l.d.pause(20 * time.Millisecond) {
			break
		}
	}
	return fmt.Errorf("%s: nobody decided within a minute", what)
}

// check holds what the workers were told against what the store has.
func (l *crashLoad) check() error {
	lost, twice, fell := 0, 0, 0
	var details []string
	seen := map[uint64]bool{}
	for _, w := range l.workers {
		if w.failed != nil {
			details = append(details, w.failed.Error())
		}
		entry, err := l.d.entry(w.key)
		if err != nil {
			return err
		}
		twice += int(entry.Version) - len(w.writes)
		for _, one := range w.writes[max(0, len(w.writes)-500):] {
			if !l.recorded(w.key, one) {
				lost++
			}
		}
		for i, t := range w.tokens {
			if seen[t] || i > 0 && t <= w.tokens[i-1] {
				fell++
			}
			seen[t] = true
		}
	}
	l.d.expect("no worker met an error", "none", seenIf(len(details) == 0, "none", strings.Join(details, "; ")), "")
	l.d.expect("acknowledged writes lost", "0", fmt.Sprint(lost), "each looked up by request ID, with its revision")
	l.d.expect("requests applied twice", "0", fmt.Sprint(twice), "version of each key against the writes of its worker")
	l.d.expect("tokens that did not rise", "0", fmt.Sprint(fell), fmt.Sprintf("%d tokens", len(seen)))
	return nil
}

func (l *crashLoad) recorded(key string, one crashWrite) bool {
	var fate wire.Fate
	r, err := l.d.call("GET", "/v1/requests/"+escape(key)+"?id="+one.id, nil, nil)
	if err != nil || r.decode(&fate) != nil {
		return false
	}
	return fate.State == wire.RequestApplied &&
		fmt.Sprintf("revision %d version %d", fate.Revision, fate.Version) == one.position
}

// tellAllKilled is story h: every node is killed at once and started again.
func tellAllKilled(d *drill) error {
	return d.withThrowAway(func(d *drill, c *localCluster) error {
		key := d.key("kept")
		lease, err := d.acquire(key, "A", 10*time.Minute, "issue")
		if err != nil {
			return err
		}
		for i := range 5 {
			id := token(lease.Token).with(wire.HeaderIdempotencyKey, fmt.Sprintf("save-%d", i))
			if _, err := d.put(key, fmt.Sprintf("value %d", i), id); err != nil {
				return err
			}
		}
		before, err := d.picture(key)
		if err != nil {
			return err
		}
		for _, node := range c.nodes {
			node.kill()
		}
		starting, cancel := context.WithTimeout(d.ctx, time.Minute)
		defer cancel()
		if err := c.start(starting); err != nil {
			return err
		}
		after, err := d.picture(key)
		if err != nil {
			return err
		}
		for i, row := range before {
			d.expect(row.what+" after kill -9 of all three", row.value, after[i].value, "")
		}
		again, err := d.put(key, "value 3", token(lease.Token).with(wire.HeaderIdempotencyKey, "save-3"))
		if err != nil {
			return err
		}
		d.expect("a resend from before", "200 replayed", again.verdict(), position(again))
		return nil
	})
}

type pictured struct{ what, value string }

// picture is what must be the same after a crash of all nodes.
func (d *drill) picture(key string) ([]pictured, error) {
	lock, err := d.lock(key)
	if err != nil {
		return nil, err
	}
	entry, err := d.entry(key)
	if err != nil {
		return nil, err
	}
	var fate wire.Fate
	r, err := d.call("GET", "/v1/requests/"+escape(key)+"?id=save-2", nil, nil)
	if err != nil {
		return nil, err
	}
	if err := r.decode(&fate); err != nil {
		return nil, err
	}
	history := make([]string, 0, len(entry.History))
	for _, v := range entry.History {
		history = append(history, fmt.Sprintf("v%d@%d", v.Version, v.Revision))
	}
	return []pictured{
		{"maxToken", fmt.Sprintf("%d, issued %d", lock.MaxToken, lock.Issued)},
		{"lease", fmt.Sprintf("%s, token %d", lock.Holder, lock.Token)},
		{"request record", fmt.Sprintf("%s, revision %d", fate.State, fate.Revision)},
		{"history", strings.Join(history, " ")},
		{"value", d.value(key)},
	}, nil
}
