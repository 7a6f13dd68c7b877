package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/fencekv/fencekv/httpapi/wire"
)

// hold is a held lock with a command running under it.
//
//	renewal sent and answered                SIGTERM         SIGKILL
//	──┼───────────┼─────────────────────────────┼───────────────┼──
//	  │ a third   │ renew until it is answered  │     grace     │
//	  sent        renewAt()                     term()          end()
//
// All is counted from when the last answered request was sent, with what the
// store then said was left of the lease. The store counts from when it decided,
// which is later, so it never takes the lock away before end().
type hold struct {
	app     *app
	caller  *caller // used by one renewal at a time, and after the last by release
	cfg     lockConfig
	leaseID string
	counted
	lost   bool
	killed bool
	kill   *time.Timer
}

// counted is a lease as this machine's monotonic clock counts it.
type counted struct {
	sent time.Time
	left time.Duration
}

func (c counted) renewAt() time.Time { return c.sent.Add(c.left / 3) }
func (c counted) end() time.Time     { return c.sent.Add(c.left) }
func (h *hold) term() time.Time      { return h.end().Add(-h.cfg.grace) }

// retryPause is how long to wait before an unanswered renewal is tried again.
func (h *hold) retryPause() time.Duration { return min(h.cfg.ttl/20, time.Second) }

// leaseOver tells the one renewal failure that is certain. Any other says
// nothing about the lease: a lost answer is neither loss nor success.
func leaseOver(err error) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && (r.Code == wire.CodeNotHolder || r.Code == wire.CodeLockNotFound)
}

// renewOnce sends one renewal, under a request ID of its own: the answer to a
// resend under the old ID would tell of the end the first one set.
func (h *hold) renewOnce(ctx context.Context) (counted, error) {
	op, err := leaseOperation(wire.RouteRenew, h.cfg.name, wire.Renew{LeaseID: h.leaseID}, newRequestID())
	if err != nil {
		return counted{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, max(h.cfg.ttl/6, 250*time.Millisecond))
	defer cancel()
	node := h.caller.target()
	answered, err := h.caller.try(ctx, op, node)
	if err != nil {
		if !leaseOver(err) {
			h.caller.leave(node)
		}
		return counted{}, err
	}
	var r wire.Renewed
	if err := json.Unmarshal(answered.body, &r); err != nil {
		return counted{}, fmt.Errorf("read answer: %w", err)
	}
	return counted{answered.sent, time.Duration(r.RemainingMs) * time.Millisecond}, nil
}

// release gives the lock back and returns the refusal if the lease had ended.
func (h *hold) release() error {
	_, err := h.caller.release(context.Background(), h.cfg.name, h.leaseID)
	if err != nil && !leaseOver(err) {
		fmt.Fprintf(h.app.stderr, "fencekv: lock %s was not released and ends by itself: %v\n", h.cfg.name, err)
		return nil
	}
	return err
}

// forwarded are the signals that go on to the command. SIGTSTP is among them: a
// stopped fencekv would renew nothing while the command runs on.
func forwarded() []os.Signal {
	return []os.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGALRM, syscall.SIGCONT, syscall.SIGTSTP, syscall.SIGWINCH,
	}
}

// run starts the command and holds the lock until it ends. The first result is
// the exit code, also with an error.
func (h *hold) run(ctx context.Context, path string, env []string) (int, error) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, forwarded()...)
	defer signal.Stop(signals)
	if ctx.Err() != nil { // a signal came before there was anything to forward it to
		_ = h.release()
		return exitFailed, fmt.Errorf("lock %s: interrupted before the command began", h.cfg.name)
	}
	g, err := startGroup(h.app, path, h.cfg.argv, env)
	if err != nil {
		_ = h.release()
		return cannotRun(err), err
	}
	h.supervise(g, signals)
	code := g.exitCode()
	switch {
	case h.lost && h.cfg.onLost == onLostTerm:
		h.endGroup(g)
		return exitLeaseLost, nil
	case h.lost:
		return code, nil
	}
	if err := h.release(); err != nil && code == 0 {
		return exitLeaseLost, fmt.Errorf("lock %s: lost before the command ended: %w", h.cfg.name, err)
	}
	return code, nil
}

// supervise keeps the lease alive until the command ends, and ends the command
// when the lease is lost.
func (h *hold) supervise(g *group, signals <-chan os.Signal) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	type result struct {
		counted
		err error
	}
	answers := make(chan result, 1)
	renewing := false
	renew := time.NewTimer(time.Until(h.renewAt()))
	term := time.NewTimer(time.Until(h.term()))
	h.kill = time.NewTimer(time.Until(h.end()))
	h.kill.Stop()
	for {
		select {
		case <-g.ended:
			cancel()
			if renewing {
				<-answers // it uses the caller that release needs
			}
			return
		case s := <-signals:
			g.signal(s)
		case <-renew.C:
			if renewing = !h.lost; renewing {
				go func() {
					c, err := h.renewOnce(ctx)
					answers <- result{c, err}
				}()
			}
		case r := <-answers:
			renewing = false
			switch {
			case h.lost:
			case r.err == nil:
				h.counted = r.counted
				renew.Reset(time.Until(h.renewAt()))
				term.Reset(time.Until(h.term()))
			case leaseOver(r.err):
				h.lose(g, time.Now().Add(h.cfg.grace), r.err)
			default:
				renew.Reset(h.retryPause())
			}
		case <-term.C:
			if !h.lost {
				h.lose(g, h.end(), errors.New("no renewal was answered"))
			}
		case <-h.kill.C:
			h.killed = true
			g.signal(syscall.SIGKILL)
		}
	}
}

// lose begins the end of the command. SIGCONT goes with SIGTERM, or a stopped
// command would not see it.
func (h *hold) lose(g *group, kill time.Time, cause error) {
	h.lost = true
	fmt.Fprintf(h.app.stderr, "fencekv: lock %s: the lease is lost: %v\n", h.cfg.name, cause)
	if h.cfg.onLost == onLostKeep {
		return
	}
	g.signal(syscall.SIGTERM)
	g.signal(syscall.SIGCONT)
	h.kill.Reset(time.Until(kill))
}

// endGroup kills what a command that ended on SIGTERM has left behind, when the
// time for that has come.
func (h *hold) endGroup(g *group) {
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for !h.killed && g.alive() {
		select {
		case <-h.kill.C:
			h.killed = true
			g.signal(syscall.SIGKILL)
		case <-look.C:
		}
	}
}
