package httpapi

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/fencekv/fencekv/cluster"
	"github.com/fencekv/fencekv/fsm"
)

// submit brings op to a decision and answers with it. wait is how long an acquire
// may stand in its queue, which only the leader keeps: such a request is passed
// on whole, so that a caller who hangs up here hangs up there. Everything that
// needs no state was checked before, so a follower refuses bad input itself.
func (h *Handler) submit(w http.ResponseWriter, c *call, op fsm.Op, wait time.Duration) error {
	request, err := c.request()
	if err != nil {
		return err
	}
	command := fsm.NewCommand(request, op)
	if err := fsm.Validate(command); err != nil {
		return err
	}
	patience := wait + h.cfg.ProposeTimeout
	if wait > 0 && !h.node.IsLeader() {
		return h.forward(w, c, patience)
	}
	allowTime(w, patience)
	decision, err := h.propose(c.Context(), command, wait)
	if err != nil {
		return err
	}
	return h.answer(w, c, &decision)
}

func (h *Handler) propose(caller context.Context, command *fsm.Command, wait time.Duration) (fsm.Decision, error) {
	decision, err := h.node.Propose(caller, h.cfg.ProposeTimeout, command)
	if err == nil && decision.Outcome == fsm.OutcomeWaiting {
		ctx, cancel := context.WithTimeout(caller, wait+h.cfg.ProposeTimeout)
		defer cancel()
		decision, err = h.node.Await(ctx, decision.Resource, decision.RequestID)
	}
	return decision, undecided(err)
}

// undecided makes an error that does not say what became of the command an
// unknown outcome: it left this package, so nothing else may be claimed.
func undecided(err error) error {
	var bad *fsm.InvalidError
	var failed *cluster.Error
	if err == nil || errors.As(err, &bad) || errors.As(err, &failed) {
		return err
	}
	return &cluster.Error{Reason: cluster.Lost, Unknown: true, Err: err}
}

// allowTime moves the deadline of the answer behind a wait that may outlast the
// server's own. Deadlines are not supported in every test's ResponseWriter.
func allowTime(w http.ResponseWriter, patience time.Duration) {
	if patience <= writeTimeout/2 {
		return
	}
	http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience + writeTimeout))
}

// change runs a change of members here if this node leads, else at the leader.
func (h *Handler) change(w http.ResponseWriter, c *call, run func(ctx context.Context) (any, error)) error {
	if !h.node.IsLeader() {
		return h.forward(w, c, h.cfg.MemberTimeout)
	}
	allowTime(w, h.cfg.MemberTimeout)
	ctx, cancel := context.WithTimeout(c.Context(), h.cfg.MemberTimeout)
	defer cancel()
	body, err := run(ctx)
	if err != nil {
		return undecided(err)
	}
	accept(w, false)
	writeOK(w, body)
	return nil
}
