package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/httpapi/wire"
)

// Exit codes of lock, beside the command's own.
const (
	exitLeaseLost  = 123
	exitWaitOver   = 124
	exitFailed     = 125 // fencekv's own failure
	exitCannotRun  = 126
	exitNoCommand  = 127
	exitSignalBase = 128 // plus the signal that ended the command
)

// What to do with the command when the lease is lost.
const (
	onLostTerm = "term"
	onLostKeep = "keep"
)

// lockConfig is what `fencekv lock` was asked for.
type lockConfig struct {
	acquireFlags
	name   string
	argv   []string
	grace  time.Duration // between the request to end and the kill at the lease's end
	onLost string        // onLostTerm or onLostKeep
}

func (c lockConfig) validate() error {
	switch {
	case c.ttl < fsm.MinTTLMs*time.Millisecond || c.ttl > fsm.MaxTTLMs*time.Millisecond:
		return fmt.Errorf("--ttl %s must be 1s to 24h", c.ttl)
	case c.grace < 0 || c.grace > c.ttl/2:
		return fmt.Errorf("--grace %s must be at most half of --ttl %s, or nothing is left for a renewal that fails", c.grace, c.ttl)
	case c.wait < 0 || c.wait > fsm.MaxWaitMs*time.Millisecond:
		return fmt.Errorf("--wait %s must be 0 to 24h", c.wait)
	case !slices.Contains([]string{onLostTerm, onLostKeep}, c.onLost):
		return fmt.Errorf("--on-lost %q must be term or keep", c.onLost)
	}
	return nil
}

func (a *app) lockCommand() *cobra.Command {
	var cfg lockConfig
	cmd := &cobra.Command{
		Use:   "lock NAME -- COMMAND [ARG...]",
		Short: "Run a command under a lock",
		Long: `Take a lock, run a command while the lease is kept alive, release the lock.

The command runs without a shell, in a process group of its own, with this stdin
and these variables:
  FENCEKV_LOCK         the name of the lock
  FENCEKV_FENCE_TOKEN  its fencing token; fencekv commands send it by themselves
  FENCEKV_ADDR         the addresses of the nodes
Signals go on to the group. If no renewal is answered, the group gets SIGTERM
--grace before the lease ends, by this machine's monotonic clock and counted from
when the last answered renewal was sent, and SIGKILL when it ends. A lease that was
revoked gets the same at once. Whatever escapes is refused by the store. Processes
the command leaves behind when it ends by itself are left alone; their token is
retired.

Exit code: the command's own (128 + N if signal N ended it), else 123 lease lost,
124 wait over, 125 fencekv failed, 126 the command cannot run, 127 no such command.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 1 || len(args) < 2 {
				return exitWith(a, exitFailed, errors.New("usage: fencekv lock NAME [flags] -- COMMAND [ARG...]"))
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg.name, cfg.argv = args[0], args[1:]
			if !cmd.Flags().Changed("grace") {
				cfg.grace = min(cfg.grace, cfg.ttl/3)
			}
			return a.lock(cmd, cfg)
		},
	}
	cfg.define(cmd, time.Minute)
	cmd.Flags().DurationVar(&cfg.grace, "grace", 5*time.Second, "time between SIGTERM and the end of the lease; by default at most a third of it")
	cmd.Flags().StringVar(&cfg.onLost, "on-lost", onLostTerm, "end the command when the lease is lost (term), or let it run (keep)")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exitWith(a, exitFailed, err) })
	return cmd
}

// exitWith prints err and ends with code: the codes of this verb, unlike the
// others', must not be mistaken for the command's.
func exitWith(a *app, code int, err error) error {
	a.explain(err)
	return exitStatus(code)
}

func (a *app) lock(cmd *cobra.Command, cfg lockConfig) error {
	if err := cfg.validate(); err != nil {
		return exitWith(a, exitFailed, err)
	}
	c, err := a.caller()
	if err != nil {
		return exitWith(a, exitFailed, err)
	}
	path, err := exec.LookPath(cfg.argv[0])
	if err != nil {
		return exitWith(a, cannotRun(err), err)
	}
	ctx := cmd.Context()
	ask, id := cfg.ask(a), newRequestID()
	granted, answered, err := c.acquire(ctx, cfg.name, ask, id)
	if err != nil {
		if n, ok := errors.AsType[*noAnswer](err); ok && n.unknown {
			c.abandon(ctx, cfg.name, ask, id)
		}
		return exitWith(a, notAcquired(err), fmt.Errorf("lock %s: %w", cfg.name, err))
	}
	h := &hold{
		app: a, caller: c, cfg: cfg, leaseID: granted.LeaseID,
		counted: counted{answered.sent, time.Duration(granted.RemainingMs) * time.Millisecond},
	}
	code, err := h.begin(ctx)
	if err == nil {
		code, err = h.run(ctx, path, []string{
			envLock + "=" + cfg.name,
			envFenceToken + "=" + wire.FormatNumber(granted.Token),
			envAddr + "=" + strings.Join(c.endpoints, ","),
		})
	}
	if err != nil {
		return exitWith(a, code, err)
	}
	if code == 0 {
		return nil
	}
	return exitStatus(code)
}

// notAcquired returns the exit code for an acquire that failed.
func notAcquired(err error) int {
	if r, ok := errors.AsType[*refusal](err); ok && r.Code == wire.CodeLockHeld {
		return exitWaitOver
	}
	return exitFailed
}

// cannotRun returns the exit code for a command that could not be started.
func cannotRun(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return exitNoCommand
	}
	return exitCannotRun
}

// begin makes sure that the lease's end is known before the command starts. An
// acquire that waited was granted at some moment after it was sent, so its end
// lies an unknown time later than counted from there (etcd #11456): a renewal
// tells. A lease that was not waited for needs none.
func (h *hold) begin(ctx context.Context) (int, error) {
	received := time.Now()
	for received.After(h.renewAt()) {
		c, err := h.renewOnce(ctx)
		if err == nil {
			h.counted = c
			return 0, nil
		}
		if leaseOver(err) || time.Since(received) > h.cfg.ttl {
			return exitLeaseLost, fmt.Errorf("lock %s: lost before the command began: %w", h.cfg.name, err)
		}
		select {
		case <-ctx.Done():
			return 0, nil // run gives the lock back
		case <-time.After(h.retryPause()):
		}
	}
	return 0, nil
}
