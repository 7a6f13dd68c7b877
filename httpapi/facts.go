package httpapi

import (
	"encoding/hex"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/httpapi/wire"
)

// factsOf puts the facts of a decision in the words of the wire: for a problem,
// and for a line of the evidence log. A lease ID is not among them.
func factsOf(d *fsm.Decision) wire.Facts {
	f := wire.Facts{
		Resource: d.Resource, Token: d.Token, MaxToken: d.MaxToken,
		EnforcedBy: enforcement(d.EnforcedBy), Issued: d.Issued,
		RequestID: d.RequestID, Fingerprint: fingerprint(d.Fingerprint),
		Holder: d.Holder, TTLMs: d.TTLMs, RemainingMs: d.RemainingMs, Ahead: d.Ahead, Continuity: d.Continuity,
		Expected: d.Expected, Horizon: d.Horizon, Limit: d.Limit, Bound: d.Bound,
		Count: d.Count, Remaining: d.Remaining,
		Version: d.Version, Revision: d.Revision, ClockMs: d.ClockMs, At: wire.FormatTime(d.WallMs),
	}
	if d.Key != d.Resource {
		f.Key = d.Key
	}
	if d.TTLMs != 0 {
		f.Fence = d.Mode.String()
	}
	if d.Applied != nil {
		f.Applied = &wire.AppliedAt{Revision: d.Applied.Revision, Version: d.Applied.Version, Token: d.Applied.Token}
	}
	if d.Code == fsm.RevisionMismatch {
		f.Current = &d.Current
	}
	if d.Op == fsm.KindTxn && d.Outcome == fsm.OutcomeRefused && (d.Key != "" || d.Limit != "") {
		f.FailedOp = &d.FailedOp
	}
	return f
}

func enforcement(e *fsm.Enforcement) *wire.Enforcement {
	if e == nil {
		return nil
	}
	return &wire.Enforcement{
		Resource: e.Resource, Holder: e.Holder, Token: e.Token, At: wire.FormatTime(e.WallMs),
		Revision: e.Revision, RequestID: e.RequestID, Cause: e.Cause.String(),
	}
}

func fingerprint(sum [32]byte) string {
	if sum == ([32]byte{}) {
		return ""
	}
	return hex.EncodeToString(sum[:])
}
