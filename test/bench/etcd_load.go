package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// The value of the fence: the token of the lock whose owner writes.
const (
	fenceKey   = "fence/bench"
	fenceToken = "18446744073709551615"
)

// connectionChoices are the numbers of connections the calibration tries: gRPC
// carries many requests on one, but a connection has one reader and one writer.
var connectionChoices = []int{1, 4, 16}

// calibrate finds how etcd's client does best with each kind of work, so that the
// comparison is with that.
func (s *etcd) calibrate(ctx context.Context, w work) error {
	best := 0.0
	for _, connections := range connectionChoices {
		if connections > w.clients {
			continue
		}
		for _, leaderOnly := range []bool{true, false} {
			c := connecting{connections, leaderOnly}
			if w.kind == followersWrites {
				if !leaderOnly {
					continue
				}
			}
			found, err := s.runWith(ctx, w, c)
			if err != nil {
				return err
			}
			if found.PerSecond > best {
				best, s.tuned[w.cell()] = found.PerSecond, c
			}
		}
	}
	return nil
}

// cell names a kind of work with a number of clients.
func (w work) cell() string { return w.kind + " @ " + strconv.Itoa(w.clients) }

func (s *etcd) run(ctx context.Context, w work) (result, error) {
	c, ok := s.tuned[w.cell()]
	if !ok {
		c = connecting{Connections: min(16, w.clients), LeaderOnly: true}
	}
	return s.runWith(ctx, w, c)
}

func (s *etcd) runWith(ctx context.Context, w work, c connecting) (result, error) {
	endpoints, err := s.leaderFirst(ctx)
	if err != nil {
		return result{}, err
	}
	switch {
	case w.kind == followersWrites:
		endpoints = endpoints[1:]
	case c.LeaderOnly:
		endpoints = endpoints[:1]
	}
	l := &etcdLoad{work: w, value: strings.Repeat("v", w.size), id: strconv.FormatInt(time.Now().UnixNano(), 36)}
	for i := range c.Connections {
		// One endpoint for each connection: they spread over all of them evenly.
		client, err := s.connect(endpoints[i%len(endpoints)])
		if err != nil {
			return result{}, err
		}
		defer client.Close()
		l.connections = append(l.connections, client)
	}
	if err := l.prepare(ctx); err != nil {
		return result{}, err
	}
	return l.run(ctx)
}

// etcdLoad is a closed loop on etcd's own client.
type etcdLoad struct {
	work
	connections []*clientv3.Client
	value       string
	id          string // makes the request keys of this run its own

	next   atomic.Int64
	mu     sync.Mutex
	times  *hdrhistogram.Histogram // µs
	errors int64
}

// prepare writes the fence, or the keys that reads want.
func (l *etcdLoad) prepare(ctx context.Context) error {
	switch l.kind {
	case fencedWrite, followersWrites:
		_, err := l.connections[0].Put(ctx, fenceKey, fenceToken)
		return err
	case linearizable, staleRead:
		last, err := l.connections[0].Get(ctx, keyName(l.keys-1))
		if err != nil || len(last.Kvs) > 0 {
			return err
		}
		filling := &etcdLoad{work: work{
			kind: plainWrite, clients: 64, count: l.keys, keys: l.keys, inOrder: true, duration: time.Hour,
		}, value: l.value, connections: l.connections}
		_, err = filling.run(ctx)
		return err
	}
	return nil
}

func keyName(number int64) string { return "bench/" + strconv.FormatInt(number, 10) }

// session is one client's part of the load.
type session struct {
	client *clientv3.Client
	mutex  *concurrency.Mutex // of lock work
	lease  *concurrency.Session
	id     int
}

func (l *etcdLoad) run(ctx context.Context) (result, error) {
	l.times = hdrhistogram.New(1, (2 * time.Minute).Microseconds(), 3)
	clients := make([]*session, l.clients)
	for i := range clients {
		s := &session{client: l.connections[i%len(l.connections)], id: i}
		if l.kind == acquireRelease {
			var err error
			if s.lease, err = concurrency.NewSession(s.client, concurrency.WithTTL(60)); err != nil {
				return result{}, err
			}
			defer s.lease.Close()
			s.mutex = concurrency.NewMutex(s.lease, "bench-locks/"+strconv.Itoa(i))
		}
		clients[i] = s
	}
	cpu := cpuTime()
	start := time.Now()
	end := start.Add(l.duration)
	var all sync.WaitGroup
	for _, s := range clients {
		all.Go(func() { l.client(ctx, s, end) })
	}
	all.Wait()
	took := time.Since(start)
	found := result{
		Operations: l.times.TotalCount(), Seconds: took.Seconds(), Errors: l.errors,
		PerSecond: float64(l.times.TotalCount()) / took.Seconds(),
		P50:       float64(l.times.ValueAtPercentile(50)) / 1e3,
		P99:       float64(l.times.ValueAtPercentile(99)) / 1e3,
		Max:       float64(l.times.Max()) / 1e3,
		ClientCPU: (cpuTime() - cpu).Seconds(),
	}
	if found.Operations == 0 {
		return found, fmt.Errorf("etcd: nothing of %s worked, %d errors", l.kind, l.errors)
	}
	return found, ctx.Err()
}

func (l *etcdLoad) client(ctx context.Context, s *session, end time.Time) {
	random := rand.New(rand.NewPCG(uint64(s.id), uint64(end.UnixNano())))
	for {
		sequence := l.next.Add(1) - 1
		sent := time.Now()
		if l.count > 0 && sequence >= l.count || !sent.Before(end) || ctx.Err() != nil {
			return
		}
		number := sequence % l.keys
		if !l.inOrder {
			number = random.Int64N(l.keys)
		}
		err := l.operate(ctx, s, number, sequence)
		took := time.Since(sent)
		l.mu.Lock()
		if err != nil {
			l.errors++
		} else {
			_ = l.times.RecordValue(took.Microseconds())
		}
		l.mu.Unlock()
	}
}

func (l *etcdLoad) operate(ctx context.Context, s *session, number, sequence int64) error {
	key := keyName(number)
	switch l.kind {
	case fencedWrite, followersWrites:
		return l.fenced(ctx, s.client, key, sequence)
	case plainWrite:
		_, err := s.client.Put(ctx, key, l.value)
		return err
	case linearizable:
		_, err := s.client.Get(ctx, key)
		return err
	case staleRead:
		_, err := s.client.Get(ctx, key, clientv3.WithSerializable())
		return err
	case acquireRelease:
		if err := s.mutex.Lock(ctx); err != nil {
			return err
		}
		return s.mutex.Unlock(ctx)
	}
	return fmt.Errorf("unknown work %q", l.kind)
}

// fenced is one fenced, idempotent write as a careful user of etcd composes it:
// the fence still holds the writer's token, the request is not known yet; then the
// value and the record of the request. A record names its key and token, for what
// a resend has to be told.
func (l *etcdLoad) fenced(ctx context.Context, client *clientv3.Client, key string, sequence int64) error {
	request := "requests/" + l.id + "-" + strconv.FormatInt(sequence, 10)
	answer, err := client.Txn(ctx).
		If(clientv3.Compare(clientv3.Value(fenceKey), "=", fenceToken), clientv3.Compare(clientv3.CreateRevision(request), "=", 0)).
		Then(clientv3.OpPut(key, l.value), clientv3.OpPut(request, key+" "+fenceToken)).
		Commit()
	if err == nil && !answer.Succeeded {
		err = fmt.Errorf("request %s was refused", request)
	}
	return err
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
