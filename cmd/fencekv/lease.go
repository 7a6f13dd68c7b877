package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencekv/fencekv/httpapi/wire"
)

// leaseOperation is a request about a lease, under an ID of its own. It has no
// Request-Base: what a lease ID may do, it may do twice.
func leaseOperation(route, resource string, body any, requestID string) (*operation, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	h := http.Header{}
	h.Set("Content-Type", wire.TypeJSON)
	h.Set(wire.HeaderIdempotencyKey, wire.FormatRequestID(requestID))
	return &operation{method: http.MethodPost, path: route + wire.KeyPath(resource), header: h, body: data}, nil
}

// acquire asks for a lock, under a new request ID if that is empty.
func (c *caller) acquire(ctx context.Context, resource string, ask wire.Acquire, requestID string) (wire.Granted, *answer, error) {
	var g wire.Granted
	if requestID == "" {
		requestID = newRequestID()
	}
	op, err := leaseOperation(wire.RouteAcquire, resource, ask, requestID)
	if err != nil {
		return g, nil, err
	}
	op.wait = time.Duration(ask.WaitMs) * time.Millisecond
	answered, err := c.do(ctx, op)
	if err != nil {
		return g, nil, err
	}
	if err := json.Unmarshal(answered.body, &g); err != nil {
		return g, nil, fmt.Errorf("read answer: %w", err)
	}
	return g, answered, nil
}

// abandon gives up an acquire whose answer nobody waits for any more: it asks
// again under the same ID without waiting, which leaves the queue, and gives
// back what that may bring. Without it a lock nobody knows of could stay held
// for a whole lease.
func (c *caller) abandon(ctx context.Context, resource string, ask wire.Acquire, requestID string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	ask.WaitMs = 0
	granted, _, err := c.acquire(ctx, resource, ask, requestID)
	if err == nil {
		_, err = c.release(ctx, resource, granted.LeaseID)
	}
	_ = err // the lease's own end is what is left
}

// release gives a lease up.
func (c *caller) release(ctx context.Context, resource, leaseID string) (*answer, error) {
	op, err := leaseOperation(wire.RouteRelease, resource, wire.Release{LeaseID: leaseID}, newRequestID())
	if err != nil {
		return nil, err
	}
	return c.do(ctx, op)
}

// acquireFlags are the terms of a lock.
type acquireFlags struct {
	ttl    time.Duration
	wait   time.Duration
	holder string
	fence  string
	adopt  bool
}

func (f *acquireFlags) define(cmd *cobra.Command, wait time.Duration) {
	flags := cmd.Flags()
	flags.DurationVar(&f.ttl, "ttl", 15*time.Second, "length of the lease, 1s to 24h")
	flags.DurationVar(&f.wait, "wait", wait, "how long to wait in the queue for it")
	flags.StringVar(&f.holder, "holder", "", "`name` shown to others (default user@host:pid)")
	flags.StringVar(&f.fence, "fence", "issue", "shut the previous holder out at the `moment` of issue, or of the first write")
	flags.BoolVar(&f.adopt, "adopt", false, "continue above the tokens of an external issuer")
}

func (f *acquireFlags) ask(a *app) wire.Acquire {
	holder := f.holder
	if holder == "" {
		holder = defaultHolder(a)
	}
	return wire.Acquire{
		Holder: holder, TTLMs: f.ttl.Milliseconds(), WaitMs: f.wait.Milliseconds(),
		Fence: f.fence, Adopt: f.adopt,
	}
}

// defaultHolder names this process to people: user@host:pid.
func defaultHolder(a *app) string {
	name := fmt.Sprintf(":%d", os.Getpid())
	if host, err := os.Hostname(); err == nil {
		name = host + name
	}
	if user := a.env("USER"); user != "" {
		name = user + "@" + name
	}
	return name
}

func (a *app) acquireCommand() *cobra.Command {
	var f acquireFlags
	var ifToken uint64
	var requestID string
	cmd := &cobra.Command{
		Use:   "acquire NAME",
		Short: "Take a lock and print its token and lease",
		Long: `Take the lock of a key, or of all keys under a prefix that ends in a slash. Renew
and release it with the lease ID that is printed. To run a command under a lock,
use fencekv lock, which does both.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.caller()
			if err != nil {
				return err
			}
			ask := f.ask(a)
			ask.IfToken = ifToken
			_, answered, err := c.acquire(cmd.Context(), args[0], ask, requestID)
			if err != nil {
				return err
			}
			var g wire.Granted
			return a.show(answered.body, &g, func() sheet { return grantedSheet(g) })
		},
	}
	f.define(cmd, 0)
	cmd.Flags().Uint64Var(&ifToken, "if-token", 0, "only if nobody held it since this `token`")
	cmd.Flags().StringVar(&requestID, "request-id", "", "send under this `ID`, to repeat an earlier command; default a new one")
	return cmd
}

func grantedSheet(g wire.Granted) sheet {
	return sheet{rows: [][]string{
		{"resource", g.Resource},
		{"token", number(g.Token)},
		{"lease ID", g.LeaseID},
		{"holder", g.Holder},
		{"ttl", duration(g.TTLMs)},
		{"remaining", duration(g.RemainingMs)},
		{"fence", g.Fence},
		{"max token", number(g.MaxToken)},
		{"continuity", mark(g.Continuity, "yes")},
		{"revision", number(g.Revision)},
		{"request", g.RequestID},
	}}
}

func (a *app) renewCommand() *cobra.Command {
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:               "renew NAME LEASE_ID",
		Short:             "Give a lease a new end",
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			op, err := leaseOperation(wire.RouteRenew, args[0], wire.Renew{LeaseID: args[1], TTLMs: ttl.Milliseconds()}, newRequestID())
			if err != nil {
				return err
			}
			var r wire.Renewed
			return a.ask(cmd, op, &r, func() sheet {
				return sheet{
					head: []string{"resource", "token", "holder", "ttl", "remaining"},
					rows: [][]string{{r.Resource, number(r.Token), r.Holder, duration(r.TTLMs), duration(r.RemainingMs)}},
				}
			})
		},
	}
	cmd.Flags().DurationVar(&ttl, "ttl", 0, "its new length; 0 for the one it has")
	return cmd
}

func (a *app) releaseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "release NAME LEASE_ID",
		Short: "Give a lock up and retire its token",
		Long: `Give a lock up and retire its token. Only the lease ID can do that: a name would
also free the lock of whoever holds it next.`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			op, err := leaseOperation(wire.RouteRelease, args[0], wire.Release{LeaseID: args[1]}, newRequestID())
			if err != nil {
				return err
			}
			return a.askChange(cmd, op)
		},
	}
}

// ask sends one operation and shows its answer.
func (a *app) ask(cmd *cobra.Command, op *operation, body any, view func() sheet) error {
	c, err := a.caller()
	if err != nil {
		return err
	}
	answered, err := c.do(cmd.Context(), op)
	if err != nil {
		return err
	}
	return a.show(answered.body, body, view)
}

// askChange is ask for release, revoke and require.
func (a *app) askChange(cmd *cobra.Command, op *operation) error {
	var ch wire.Changed
	return a.ask(cmd, op, &ch, func() sheet {
		return sheet{
			head: []string{"resource", "", "token", "holder", "max token", "revision"},
			rows: [][]string{{ch.Resource, ch.Code, number(ch.Token), ch.Holder, number(ch.MaxToken), number(ch.Revision)}},
		}
	})
}
