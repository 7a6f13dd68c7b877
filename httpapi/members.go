package httpapi

import (
	"context"
	"net/http"

	"github.com/fencekv/fencekv/cluster"
	"github.com/fencekv/fencekv/httpapi/wire"
)

// getCluster lists the members as this node knows them.
func (h *Handler) getCluster(w http.ResponseWriter, _ *call) error {
	writeOK(w, h.cluster())
	return nil
}

func (h *Handler) cluster() *wire.Cluster {
	status := h.node.Status()
	answer := &wire.Cluster{ClusterID: status.ClusterID, Term: status.Term, Members: []wire.Member{}, Node: h.name}
	for _, m := range h.node.Members() {
		answer.Members = append(answer.Members, wire.Member(m))
		if m.Leader {
			answer.Leader = m.Name
		}
	}
	return answer
}

// joinMember admits a node.
func (h *Handler) joinMember(w http.ResponseWriter, c *call) error {
	var joiner cluster.Joiner
	if err := h.readJSON(w, c, maxJSONBody, &joiner); err != nil {
		return err
	}
	return h.change(w, c, func(ctx context.Context) (any, error) { return h.node.Join(ctx, joiner) })
}

// removeMember takes a node out of the cluster.
func (h *Handler) removeMember(w http.ResponseWriter, c *call) error {
	if c.arg == "" {
		return invalid("name", "is empty")
	}
	if err := h.readNothing(w, c); err != nil {
		return err
	}
	return h.change(w, c, func(ctx context.Context) (any, error) {
		if err := h.node.Remove(ctx, c.arg); err != nil {
			return nil, err
		}
		return h.cluster(), nil
	})
}

// transfer hands leadership over.
func (h *Handler) transfer(w http.ResponseWriter, c *call) error {
	var body wire.Transfer
	if err := h.readJSON(w, c, maxJSONBody, &body); err != nil {
		return err
	}
	return h.change(w, c, func(ctx context.Context) (any, error) {
		if err := h.node.Transfer(ctx, body.To); err != nil {
			return nil, err
		}
		return h.cluster(), nil
	})
}

// getPeer tells another node who this one is.
func (h *Handler) getPeer(w http.ResponseWriter, _ *call) error {
	writeOK(w, h.node.Hello())
	return nil
}
