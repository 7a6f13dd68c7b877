package httpapi

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/httpapi/wire"
)

// maxRefusals bounds the refusals shown with one lock.
const maxRefusals = 20

// getLock describes one resource.
func (h *Handler) getLock(w http.ResponseWriter, c *call) error {
	resource, err := c.resource()
	if err != nil {
		return err
	}
	state, read, err := h.state(w, c)
	if err != nil {
		return err
	}
	fence := state.Fence(resource)
	waiters := waitersOf(state, resource)
	if fence == nil && len(waiters) == 0 {
		return &problem{
			code: wire.CodeLockNotFound, detail: "nothing was ever locked or fenced under " + strconv.Quote(resource),
			facts: wire.Facts{Resource: resource, Revision: state.Revision(), ClockMs: state.ClockMs()},
		}
	}
	if fence == nil {
		fence = &fsm.Fence{Resource: resource} // held up by an overlapping lock, never held itself
	}
	detail := &wire.LockDetail{
		Lock: lockOf(state, fence), Tokens: []wire.IssuedToken{}, Waiters: waiters,
		Refusals: refusalsOf(state, resource), Read: read,
	}
	for _, i := range fence.Issues {
		detail.Tokens = append(detail.Tokens, wire.IssuedToken{Token: i.Token, Holder: i.Holder, Retired: i.Retired})
	}
	writeOK(w, detail)
	return nil
}

// listLocks returns one page of the locks held under a prefix, or with ?all of
// all resources that were ever fenced.
func (h *Handler) listLocks(w http.ResponseWriter, c *call) error {
	prefix, after, limit, err := c.page()
	if err != nil {
		return err
	}
	all, err := c.flag("all")
	if err != nil {
		return err
	}
	state, read, err := h.state(w, c)
	if err != nil {
		return err
	}
	fences := state.Locks(prefix, after)
	if all {
		fences = state.Fences(prefix, after)
	}
	page := wire.Locks{Locks: []wire.Lock{}, Read: read}
	for f := range fences {
		if n := len(page.Locks); n == limit {
			page.Next = page.Locks[n-1].Resource
			break
		}
		page.Locks = append(page.Locks, lockOf(state, f))
	}
	writeOK(w, &page)
	return nil
}

func lockOf(state *fsm.State, f *fsm.Fence) wire.Lock {
	lock := wire.Lock{
		Resource: f.Resource, Issued: f.Issued, MaxToken: f.MaxToken, EnforcedBy: enforcement(f.Enforced),
		Issuer: "internal", Required: f.Required,
	}
	if f.External {
		lock.Issuer = "external"
	}
	for range state.Queue(f.Resource) {
		lock.Waiting++
	}
	if l := f.Lock; l != nil {
		lock.Held, lock.Holder, lock.Token, lock.Fence = true, l.Holder, l.Token, l.Mode.String()
		lock.TTLMs, lock.RemainingMs = l.TTLMs, l.DeadlineMs-state.ClockMs()
		lock.GrantedAt, lock.RequestID = wire.FormatTime(l.WallMs), l.RequestID
	}
	return lock
}

func waitersOf(state *fsm.State, resource string) []wire.Waiter {
	waiters := []wire.Waiter{}
	for w := range state.Queue(resource) {
		if len(waiters) == wire.MaxPage {
			break
		}
		waiters = append(waiters, wire.Waiter{
			Holder: w.Holder, RequestID: w.RequestID, TTLMs: w.TTLMs,
			RemainingMs: w.DeadlineMs - state.ClockMs(), Fence: w.Mode.String(), Node: w.Node,
		})
	}
	return waiters
}

// refusalsOf returns the newest refusals on resource, the newest first.
func refusalsOf(state *fsm.State, resource string) []wire.Decision {
	refusals := []wire.Decision{}
	for e := range state.Events(0) {
		if e.Decision.Outcome != fsm.OutcomeRefused || !concerns(e.Decision, resource) {
			continue
		}
		if len(refusals) == maxRefusals {
			refusals = refusals[1:]
		}
		refusals = append(refusals, decisionOf(e))
	}
	slices.Reverse(refusals)
	return refusals
}
