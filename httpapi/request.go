package httpapi

import (
	"net/http"
	"strconv"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/httpapi/wire"
)

// getRequest tells what became of a request.
func (h *Handler) getRequest(w http.ResponseWriter, c *call) error {
	scope, err := c.resource()
	if err != nil {
		return err
	}
	id, err := c.requestIDParam()
	if err != nil {
		return err
	}
	state, read, err := h.state(w, c)
	if err != nil {
		return err
	}
	if r := state.Record(scope, id); r != nil {
		d := r.Fate()
		fate := fateOf(&d, read)
		fate.RemainingMs = max(0, r.AtMs+state.Settings().RequestRetentionMs-state.ClockMs())
		writeOK(w, fate)
		return nil
	}
	if waiter := state.Waiter(scope, id); waiter != nil {
		writeOK(w, &wire.Fate{
			Scope: scope, RequestID: id, State: wire.RequestWaiting, Op: fsm.KindAcquire.String(),
			Fingerprint: fingerprint(waiter.Fingerprint), Holder: waiter.Holder,
			RemainingMs: waiter.DeadlineMs - state.ClockMs(), Read: read,
		})
		return nil
	}
	return &problem{
		code:   wire.CodeRequestNotFound,
		detail: "no record of " + strconv.Quote(id) + " in the scope " + strconv.Quote(scope),
		facts: wire.Facts{
			Resource: scope, RequestID: id, Horizon: state.Horizon(),
			Revision: state.Revision(), ClockMs: state.ClockMs(),
		},
	}
}

// seal makes sure that a request never takes effect, unless it has.
func (h *Handler) seal(w http.ResponseWriter, c *call) error {
	scope, err := c.resource()
	if err != nil {
		return err
	}
	if c.id, err = c.requestIDParam(); err != nil {
		return err
	}
	w.Header().Set(wire.HeaderIdempotencyKey, wire.FormatRequestID(c.id))
	if err := h.readNothing(w, c); err != nil {
		return err
	}
	return h.submit(w, c, &fsm.Seal{Scope: scope}, 0)
}

// fateOf turns a recorded verdict into what the caller may know of it.
func fateOf(d *fsm.Decision, read wire.Read) *wire.Fate {
	fate := &wire.Fate{
		Scope: d.Resource, RequestID: d.RequestID, State: wire.RequestApplied, Op: d.Op.String(),
		Fingerprint: fingerprint(d.Fingerprint), Revision: d.Revision, Version: d.Version, Created: d.Created,
		Versions: d.Versions, Token: d.Token, Holder: d.Holder, Key: d.Key, Read: read,
	}
	switch d.Code {
	case fsm.Sealed:
		fate.State = wire.RequestSealed
	case fsm.RevisionMismatch, fsm.KeyNotFound:
		fate.State, fate.Code, fate.Current = wire.RequestRefused, wire.Code(d.Code), &d.Current
	}
	return fate
}
