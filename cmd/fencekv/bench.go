package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/httpapi/wire"
)

// benchConfig is what `fencekv bench` was asked for.
type benchConfig struct {
	bench
	clients  int
	rate     float64
	warmup   time.Duration
	duration time.Duration
	count    int64
	to       string // leader, followers or all
}

// Where requests go.
const (
	toLeader    = "leader"
	toFollowers = "followers"
	toAll       = "all"
)

func (c *benchConfig) validate() error {
	switch {
	case c.clients < 1 || c.clients > 60_000:
		return fmt.Errorf("--clients %d must be 1 to 60000", c.clients)
	case c.rate < 0:
		return fmt.Errorf("--rate %g must not be negative", c.rate)
	case c.warmup < 0 || c.duration <= 0:
		return errors.New("--warmup must not be negative, and --duration must be above zero")
	case c.count < 0:
		return fmt.Errorf("--count %d must not be negative", c.count)
	case c.keys < 1:
		return fmt.Errorf("--keys %d must be at least 1", c.keys)
	case c.size < 0 || c.size > fsm.MaxValueBytes:
		return fmt.Errorf("--value-size %d must be 0 to %d", c.size, fsm.MaxValueBytes)
	case !slices.Contains([]string{toLeader, toFollowers, toAll}, c.to):
		return fmt.Errorf("--to %q must be leader, followers or all", c.to)
	case c.plain && c.kind != benchPut:
		return errors.New("--plain is about put")
	case c.stale && c.kind != benchGet:
		return errors.New("--stale is about get")
	}
	return nil
}

func (a *app) benchCommand() *cobra.Command {
	var cfg benchConfig
	kinds := []string{benchPut, benchGet, benchLock}
	cmd := &cobra.Command{
		Use:   "bench put|get|lock",
		Short: "Offer load to the cluster and measure what it answers",
		Long: `bench offers load to the cluster and prints what came of it: operations a second,
how long they took, and errors by code. The work is

  put   a write with fencing token, request ID and Request-Base, under a lock that
        the run holds; with --plain a write without any of them
  get   a linearizable read of keys it writes first, unless they are there;
        with --stale a read of the node's own state
  lock  acquire and release of a lock that nobody else wants, counted as one

Each of --clients has one connection and one operation under way. Without --rate
each sends its next operation when the last was answered. With --rate operations
are due at that many a second, whatever the answers do, and their time counts
from the moment they were due; one the generator itself is a second late for is
not sent but counted as missed.

The numbers are those of the store and the generator together if both share a
machine: the processor time of the generator is printed too.`,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: kinds,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg.kind = args[0]
			cfg.prefix = strings.Trim(cfg.prefix, "/")
			if err := cfg.validate(); err != nil {
				return err
			}
			return a.bench(cmd.Context(), &cfg)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.IntVar(&cfg.clients, "clients", 64, "`number` of connections")
	f.Float64Var(&cfg.rate, "rate", 0, "operations due a `second`; 0 for as many as the clients get answered")
	f.DurationVar(&cfg.duration, "duration", 10*time.Second, "how long to measure")
	f.DurationVar(&cfg.warmup, "warmup", 2*time.Second, "how long to run before that")
	f.Int64Var(&cfg.count, "count", 0, "stop after this `number` of operations; 0 for the duration alone")
	f.Int64Var(&cfg.keys, "keys", 1_000, "`number` of keys, chosen at random")
	f.BoolVar(&cfg.sequential, "sequential", false, "choose keys in order")
	f.IntVar(&cfg.size, "value-size", 256, "`bytes` of a value")
	f.BoolVar(&cfg.plain, "plain", false, "writes without token and request ID")
	f.BoolVar(&cfg.stale, "stale", false, "reads of the node's own state")
	f.StringVar(&cfg.to, "to", toLeader, "`nodes` to ask: leader, followers or all")
	f.StringVar(&cfg.prefix, "prefix", "bench", "scratch `prefix` of the keys and the lock on them; locks are below PREFIX-locks")
	return cmd
}

func (a *app) bench(ctx context.Context, cfg *benchConfig) error {
	c, err := a.caller()
	if err != nil {
		return err
	}
	nodes, err := benchTargets(ctx, c, cfg.to)
	if err != nil {
		return err
	}
	trust, err := a.flags.tlsConfig()
	if err != nil {
		return err
	}
	cfg.run = newRequestID()
	auth := c.authToken
	client := func(b *bench) func(int) operator {
		return func(id int) operator { return newWorker(b, id, nodes[id%len(nodes)], trust, auth, a.flags.timeout) }
	}
	lease := min(cfg.warmup+cfg.duration+time.Minute, fsm.MaxTTLMs*time.Millisecond)
	release, err := cfg.prepare(ctx, c, lease, func() error {
		filling := cfg.bench
		filling.kind, filling.plain, filling.sequential = benchPut, true, true
		return (&load{clients: 64, duration: time.Hour, count: cfg.keys, work: client(&filling)}).run(ctx).failed()
	})
	if err != nil {
		return err
	}
	defer release()
	found := (&load{
		clients: cfg.clients, rate: cfg.rate, warmup: cfg.warmup, duration: cfg.duration, count: cfg.count,
		work: client(&cfg.bench),
	}).run(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	report := newBenchReport(cfg, nodes, found)
	return a.showAs(report, report.sheet)
}

func newWorker(b *bench, id int, base *url.URL, trust *tls.Config, auth string, limit time.Duration) *worker {
	return &worker{
		bench: b, id: id, seen: b.since,
		conn:    &benchConn{base: base, trust: trust, limit: limit},
		request: requestBuilder{host: base.Host, auth: auth},
	}
}

// benchTargets asks the cluster for its members and returns those to send to. A
// cluster that has just been formed may not have their addresses on record yet.
func benchTargets(ctx context.Context, c *caller, to string) ([]*url.URL, error) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for deadline := time.Now().Add(5 * time.Second); ; {
		nodes, more, err := askTargets(ctx, c, to)
		if err == nil && more && time.Now().Before(deadline) && pause(ctx, timer, time.Now().Add(20*time.Millisecond)) {
			continue
		}
		if err == nil && len(nodes) == 0 {
			err = fmt.Errorf("the cluster has no node for --to %s", to)
		}
		return nodes, err
	}
}

// askTargets returns the nodes to send to that are on record; more if there are
// others that are not.
func askTargets(ctx context.Context, c *caller, to string) (nodes []*url.URL, more bool, err error) {
	answered, err := c.do(ctx, &operation{method: http.MethodGet, path: wire.RouteCluster})
	if err != nil {
		return nil, false, err
	}
	var cluster wire.Cluster
	if err := json.Unmarshal(answered.body, &cluster); err != nil {
		return nil, false, fmt.Errorf("read answer: %w", err)
	}
	for _, m := range cluster.Members {
		if to == toLeader && !m.Leader || to == toFollowers && m.Leader {
			continue
		}
		if m.HTTPAddress == "" {
			more = true
			continue
		}
		base, err := url.Parse(m.HTTPAddress)
		if err != nil {
			return nil, false, fmt.Errorf("address of %s: %w", m.Name, err)
		}
		nodes = append(nodes, base)
	}
	return nodes, more, nil
}
