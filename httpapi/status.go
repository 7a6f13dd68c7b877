package httpapi

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/httpapi/wire"
)

// readyWithin bounds the linearizable read that proves a node ready.
const readyWithin = 2 * time.Second

// getStatus tells what this node knows by itself.
func (h *Handler) getStatus(w http.ResponseWriter, _ *call) error {
	s := h.node.Status()
	state, _ := h.node.Stale()
	counts, settings := state.Counts(), state.Settings()
	floor, _ := state.Floor()
	writeOK(w, &wire.Status{
		Name: s.Name, ServerID: s.ServerID, ClusterID: s.ClusterID, Role: s.Role, Build: s.Build, LogStore: s.LogStore,
		Term: s.Term, AppliedIndex: s.AppliedIndex, CommitIndex: s.CommitIndex,
		LastContactMs: s.LastContact.Milliseconds(), LeaderName: s.Leader.Name, LeaderAddress: s.Leader.HTTPAddress,
		Revision: state.Revision(), Token: state.Token(), Floor: floor, Epoch: state.Epoch(),
		Horizon: state.Horizon(), ClockMs: state.ClockMs(),
		Counts: wire.Counts{
			Keys: counts.Keys, Tombstones: counts.Tombstones, Fences: counts.Fences, Locks: counts.Locks,
			Waiters: counts.Waiters, Requests: counts.Requests, Events: counts.Events,
		},
		Settings: wire.Settings(settings),
		Limits: wire.Limits{
			MaxKeyBytes: fsm.MaxKeyBytes, MaxValueBytes: fsm.MaxValueBytes,
			MaxTxnOps: fsm.MaxTxnOps, MaxTxnBytes: fsm.MaxTxnBytes,
			MaxReasonBytes: fsm.MaxReasonBytes, MaxHolderBytes: fsm.MaxHolderBytes,
			MinTTLMs: fsm.MinTTLMs, MaxTTLMs: fsm.MaxTTLMs, MaxWaitMs: fsm.MaxWaitMs, MaxPage: wire.MaxPage,
		},
	})
	return nil
}

// health says that the process answers, and nothing else.
func (h *Handler) health(w http.ResponseWriter, _ *call) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	io.WriteString(w, "ok\n")
	return nil
}

// ready says whether the node can serve a linearizable read now. That a process
// runs proves little: one with a hung disk or without a quorum runs too.
func (h *Handler) ready(w http.ResponseWriter, c *call) error {
	ctx, cancel := context.WithTimeout(c.Context(), readyWithin)
	defer cancel()
	if _, err := h.node.Read(ctx); err != nil {
		return refuse(wire.CodeNotReady)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	io.WriteString(w, "ready\n")
	return nil
}
