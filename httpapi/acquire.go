package httpapi

import (
	"net/http"
	"time"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/httpapi/wire"
)

// acquire grants a lock, now or after a wait in its queue.
func (h *Handler) acquire(w http.ResponseWriter, c *call) error {
	resource, err := c.resource()
	if err != nil {
		return err
	}
	var body wire.Acquire
	if err := h.readJSON(w, c, maxJSONBody, &body); err != nil {
		return err
	}
	mode := fsm.ModeIssue
	switch body.Fence {
	case "", fsm.ModeIssue.String():
	case fsm.ModeWrite.String():
		mode = fsm.ModeWrite
	default:
		return invalid("fence", "must be issue or write")
	}
	if body.WaitMs < 0 || body.WaitMs > fsm.MaxWaitMs {
		return invalid("waitMs", "must be 0 to %d", fsm.MaxWaitMs)
	}
	return h.submit(w, c, &fsm.Acquire{
		Resource: resource, Holder: body.Holder, LeaseID: randomID(), Node: h.name,
		TTLMs: body.TTLMs, WaitMs: body.WaitMs, Mode: mode, Adopt: body.Adopt, IfToken: body.IfToken,
	}, time.Duration(body.WaitMs)*time.Millisecond)
}
