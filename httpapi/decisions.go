package httpapi

import (
	"net/http"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/httpapi/wire"
)

// listDecisions returns one page of the evidence log, oldest first.
func (h *Handler) listDecisions(w http.ResponseWriter, c *call) error {
	resource, err := c.start("resource")
	if err != nil {
		return err
	}
	after, _, err := c.count("after")
	if err != nil {
		return err
	}
	limit, err := c.limit()
	if err != nil {
		return err
	}
	state, read, err := h.state(w, c)
	if err != nil {
		return err
	}
	code := fsm.Code(c.query.Get("code"))
	page := wire.Decisions{Decisions: []wire.Decision{}, Read: read}
	for e := range state.Events(0) {
		page.Oldest = e.Seq
		break
	}
	for e := range state.Events(after) {
		if code != "" && e.Decision.Code != code || resource != "" && !concerns(e.Decision, resource) {
			continue
		}
		if n := len(page.Decisions); n == limit {
			page.Next = page.Decisions[n-1].Seq
			break
		}
		page.Decisions = append(page.Decisions, decisionOf(e))
	}
	writeOK(w, &page)
	return nil
}

// concerns reports whether d is about resource, or about something under it.
func concerns(d *fsm.Decision, resource string) bool {
	return fsm.Covers(resource, d.Resource) || fsm.Covers(resource, d.Key)
}

func decisionOf(e *fsm.Event) wire.Decision {
	outcome := wire.Applied
	if e.Decision.Outcome == fsm.OutcomeRefused {
		outcome = wire.Refused
	}
	return wire.Decision{
		Seq: e.Seq, Index: e.Index, Op: e.Decision.Op.String(), Code: wire.Code(e.Decision.Code),
		Outcome: outcome, Facts: factsOf(e.Decision),
	}
}
