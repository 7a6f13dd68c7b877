package httpapi

import (
	"net/http"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/httpapi/wire"
)

// renew moves the deadline of a lease.
func (h *Handler) renew(w http.ResponseWriter, c *call) error {
	resource, err := c.resource()
	if err != nil {
		return err
	}
	var body wire.Renew
	if err := h.readJSON(w, c, maxJSONBody, &body); err != nil {
		return err
	}
	return h.submit(w, c, &fsm.Renew{Resource: resource, LeaseID: body.LeaseID, TTLMs: body.TTLMs}, 0)
}

// release gives a lease up.
func (h *Handler) release(w http.ResponseWriter, c *call) error {
	resource, err := c.resource()
	if err != nil {
		return err
	}
	var body wire.Release
	if err := h.readJSON(w, c, maxJSONBody, &body); err != nil {
		return err
	}
	return h.submit(w, c, &fsm.Release{Resource: resource, LeaseID: body.LeaseID}, 0)
}
