package httpapi

import (
	"net/http"

	"github.com/fencekv/fencekv/fsm"
)

// revoke shuts out whoever held a resource until now.
func (h *Handler) revoke(w http.ResponseWriter, c *call) error {
	resource, err := c.resource()
	if err != nil {
		return err
	}
	if err := h.readNothing(w, c); err != nil {
		return err
	}
	return h.submit(w, c, &fsm.Revoke{Resource: resource}, 0)
}

// require makes a resource refuse writes without a token before its first lock.
func (h *Handler) require(w http.ResponseWriter, c *call) error {
	resource, err := c.resource()
	if err != nil {
		return err
	}
	if err := h.readNothing(w, c); err != nil {
		return err
	}
	return h.submit(w, c, &fsm.Require{Resource: resource}, 0)
}

// purge drops the fences and tombstones of deleted, unlocked keys under a prefix.
func (h *Handler) purge(w http.ResponseWriter, c *call) error {
	if err := h.readNothing(w, c); err != nil {
		return err
	}
	return h.submit(w, c, &fsm.Purge{Prefix: c.query.Get("prefix")}, 0)
}
