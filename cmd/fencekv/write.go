package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencekv/fencekv/httpapi/wire"
)

// writeFlags are the flags put and delete share.
type writeFlags struct {
	requestID   string
	requestBase uint64
	sequence    uint64
	ifRevision  uint64
	reason      string
	noLock      bool
	wait        time.Duration
}

func (f *writeFlags) define(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.requestID, "request-id", "", "send under this `ID`, to repeat an earlier command; default a new one")
	flags.Uint64Var(&f.requestBase, "request-base", 0, "store `revision` seen when that ID was first sent")
	flags.Uint64Var(&f.sequence, "sequence", 0, "`number` of this write under its token, counted from 1")
	flags.Uint64Var(&f.ifRevision, "if-revision", 0, "only if the key is at this `revision`")
	flags.StringVar(&f.reason, "reason", "", "`text` kept in the history")
	flags.BoolVar(&f.noLock, "no-lock", false, "refuse a fenced key instead of taking its lock for the write")
	flags.DurationVar(&f.wait, "wait", 2*time.Second, "how long to wait for that lock")
	cmd.MarkFlagsMutuallyExclusive("no-lock", "wait")
}

// header returns the request headers the flags ask for.
func (f *writeFlags) header(cmd *cobra.Command, token uint64) (http.Header, error) {
	h := http.Header{}
	flags := cmd.Flags()
	if token > 0 {
		h.Set(wire.HeaderToken, wire.FormatNumber(token))
	}
	if flags.Changed("request-id") {
		if f.requestID == "" {
			return nil, errors.New("--request-id is empty")
		}
		h.Set(wire.HeaderIdempotencyKey, wire.FormatRequestID(f.requestID))
	}
	if flags.Changed("request-base") {
		if f.requestID == "" {
			return nil, errors.New("--request-base belongs to a --request-id")
		}
		h.Set(wire.HeaderRequestBase, wire.FormatNumber(f.requestBase))
	}
	if flags.Changed("sequence") {
		if token == 0 {
			return nil, errors.New("--sequence counts the writes under one token, so it needs --fence-token")
		}
		h.Set(wire.HeaderSequence, wire.FormatNumber(f.sequence))
	}
	if flags.Changed("if-revision") {
		if f.ifRevision == 0 {
			return nil, errors.New("--if-revision 0 is no revision; --if-absent asks for a key that does not exist")
		}
		h.Set(wire.HeaderIfMatch, wire.FormatETag(f.ifRevision))
	}
	if f.reason != "" {
		h.Set(wire.HeaderReason, f.reason)
	}
	return h, nil
}

// write sends a put or delete of key and shows what became of it. Where the key
// turns out to be fenced and there is no token to present, it takes the key's
// lock first and releases it behind.
func (a *app) write(cmd *cobra.Command, key string, op *operation, f *writeFlags) error {
	token := a.flags.token
	c, err := a.caller()
	if err != nil {
		return err
	}
	header, err := f.header(cmd, token)
	if err != nil {
		return err
	}
	for name := range op.header {
		header.Set(name, op.header.Get(name))
	}
	op.header, op.path = header, kvPathOf(key)
	// A numbered write is told apart by its number; a request record beside it
	// would only cost memory.
	op.identified = header.Get(wire.HeaderSequence) == ""
	answered, err := c.do(cmd.Context(), op)
	if p, ok := errors.AsType[*refusal](err); ok && p.Code == wire.CodeTokenRequired && token == 0 && !f.noLock {
		answered, err = a.writeLocked(cmd.Context(), c, key, op, f.wait)
	}
	if err != nil {
		return err
	}
	var w wire.Written
	return a.show(answered.body, &w, func() sheet {
		return sheet{
			head: []string{"key", "revision", "version", "token", "request", ""},
			rows: [][]string{{
				w.Key, number(w.Revision), number(w.Version), number(w.Token), w.RequestID,
				mark(w.Created, "created") + mark(w.Deleted, "deleted") + mark(w.Replayed, " replayed"),
			}},
		}
	})
}

// writeLocked sends op again, unchanged but for the token of a lock of its own.
// Its request ID is the same: the refusal for want of a token left no record.
func (a *app) writeLocked(ctx context.Context, c *caller, key string, op *operation, wait time.Duration) (*answer, error) {
	ttl := max(c.timeout+5*time.Second, time.Second)
	granted, _, err := c.acquire(ctx, key, wire.Acquire{
		Holder: defaultHolder(a), TTLMs: ttl.Milliseconds(), WaitMs: wait.Milliseconds(),
	}, "")
	if err != nil {
		return nil, fmt.Errorf("take the lock of %s: %w", key, err)
	}
	op.header.Set(wire.HeaderToken, wire.FormatNumber(granted.Token))
	answered, err := c.do(ctx, op)
	if _, failed := c.release(context.WithoutCancel(ctx), key, granted.LeaseID); failed != nil {
		fmt.Fprintf(a.stderr, "fencekv: the lock of %s was not released and ends in %s: %v\n", key, ttl, failed)
	}
	return answered, err
}

func kvPathOf(key string) string { return wire.RouteKV + "/" + wire.KeyPath(key) }
