package httpapi

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/httpapi/wire"
)

// answer turns a decision into the answer: the only place that does.
func (h *Handler) answer(w http.ResponseWriter, c *call, d *fsm.Decision) error {
	header := w.Header()
	c.fields.setNumber(header, wire.HeaderRevision, d.Revision)
	if d.MaxToken != 0 {
		c.fields.setNumber(header, wire.HeaderMaxToken, d.MaxToken)
	}
	if c.id != "" {
		c.fields.setNumber(header, wire.HeaderRequestWindowMs, uint64(h.node.Settings().RequestRetentionMs))
	}
	if d.Outcome != fsm.OutcomeApplied && d.Outcome != fsm.OutcomeReplayed {
		header[wire.HeaderOutcome] = outcomes[wire.Refused]
		return refusal(d)
	}
	replayed := d.Outcome == fsm.OutcomeReplayed
	accept(w, replayed)
	header[wire.HeaderReplayed] = truths[replayed]
	if d.Version != 0 {
		c.fields.setNumber(header, wire.HeaderVersion, d.Version)
	}
	if d.Token != 0 {
		c.fields.setNumber(header, wire.HeaderToken, d.Token)
	}
	if d.Op == fsm.KindPut {
		c.fields.set(header, fieldETag, wire.FormatETag(d.Revision))
	}
	status := http.StatusOK
	if d.Op == fsm.KindAcquire || d.Op == fsm.KindPut && d.Created {
		status = http.StatusCreated
	}
	writeJSON(w, typeJSON, status, h.bodyOf(d))
	return nil
}

func accept(w http.ResponseWriter, replayed bool) {
	outcome := wire.Applied
	if replayed {
		outcome = wire.Replayed
	}
	w.Header()[wire.HeaderOutcome] = outcomes[outcome]
}

func (h *Handler) receipt(d *fsm.Decision) wire.Receipt {
	return wire.Receipt{
		Outcome: wire.Applied, Replayed: d.Outcome == fsm.OutcomeReplayed,
		RequestID: d.RequestID, Revision: d.Revision, ClockMs: d.ClockMs, At: wire.FormatTime(d.WallMs), Node: h.name,
	}
}

// bodyOf returns what an accepted operation answers.
func (h *Handler) bodyOf(d *fsm.Decision) any {
	r := h.receipt(d)
	switch d.Op {
	case fsm.KindPut, fsm.KindDelete:
		return &wire.Written{
			Key: d.Resource, Version: d.Version, Created: d.Created, Deleted: d.Op == fsm.KindDelete,
			Token: d.Token, MaxToken: d.MaxToken, Receipt: r,
		}
	case fsm.KindTxn:
		return &wire.Committed{Resource: d.Resource, Versions: d.Versions, Receipt: r}
	case fsm.KindAcquire:
		return &wire.Granted{
			Resource: d.Resource, Holder: d.Holder, Token: d.Token, LeaseID: d.LeaseID,
			TTLMs: d.TTLMs, RemainingMs: d.RemainingMs, Fence: d.Mode.String(),
			MaxToken: d.MaxToken, Continuity: d.Continuity, Receipt: r,
		}
	case fsm.KindRenew:
		return &wire.Renewed{
			Resource: d.Resource, Holder: d.Holder, Token: d.Token,
			TTLMs: d.TTLMs, RemainingMs: d.RemainingMs, MaxToken: d.MaxToken, Receipt: r,
		}
	case fsm.KindRelease, fsm.KindRevoke, fsm.KindRequire:
		return &wire.Changed{
			Resource: d.Resource, Code: string(d.Code), Holder: d.Holder,
			Token: d.Token, MaxToken: d.MaxToken, Receipt: r,
		}
	case fsm.KindPurge:
		return &wire.Purged{Prefix: d.Resource, Count: d.Count, Remaining: d.Remaining, Receipt: r}
	case fsm.KindSeal:
		state, _ := h.node.Stale()
		// A follower may not have applied yet what the leader decided.
		return fateOf(d, wire.Read{StoreRevision: max(state.Revision(), d.Revision), ClockMs: d.ClockMs, Node: h.name})
	}
	panic(fmt.Sprintf("httpapi: no answer for operation %s", d.Op)) // no endpoint submits another
}

// refusal returns the problem a refused operation answers with.
func refusal(d *fsm.Decision) *problem {
	p := &problem{code: wire.Code(d.Code), detail: detail(d), facts: factsOf(d)}
	if d.Code == fsm.LockHeld {
		p.retryAfter = max(time.Duration(d.RemainingMs)*time.Millisecond, time.Second)
	}
	return p
}

// detail says in a sentence what decided, where the facts make one; the text of
// the code says the rest.
func detail(d *fsm.Decision) string {
	subject := d.Resource
	if d.Key != "" {
		subject = d.Key
	}
	switch d.Code {
	case fsm.StaleOwner:
		text := fmt.Sprintf("token %d is stale on %q: token %d is enforced", d.Token, subject, d.MaxToken)
		if e := d.EnforcedBy; e != nil {
			text += fmt.Sprintf(" on %q since revision %d (%s, %s)", e.Resource, e.Revision, e.Cause, holderName(e.Holder))
		}
		if d.Applied != nil {
			text += fmt.Sprintf("; this request had taken effect before, at revision %d", d.Applied.Revision)
		}
		return text
	case fsm.TokenRequired:
		return fmt.Sprintf("%q is fenced and the write carries no token", subject)
	case fsm.TokenNotIssued:
		return fmt.Sprintf("token %d was never issued for %q or a prefix that covers it", d.Token, subject)
	case fsm.TokenRetired:
		return fmt.Sprintf("token %d was given up by a release or a revoke", d.Token)
	case fsm.RevisionMismatch:
		return fmt.Sprintf("%q is at revision %d (0: it does not exist)", subject, d.Current)
	case fsm.KeyNotFound:
		return fmt.Sprintf("%q does not exist", subject)
	case fsm.SequenceGap, fsm.SequencePassed:
		return fmt.Sprintf("the next sequence number of token %d is %d", d.Token, d.Expected)
	case fsm.LockHeld:
		return fmt.Sprintf("%q is held by, or promised to, %s for at most %d ms", subject, holderName(d.Holder), d.RemainingMs)
	case fsm.NotHolder:
		return fmt.Sprintf("the lease on %q has ended or is another's; now held by %s", subject, holderName(d.Holder))
	case fsm.LimitExceeded:
		return fmt.Sprintf("the limit %q of %d is reached", d.Limit, d.Bound)
	}
	return ""
}

func holderName(holder string) string {
	if holder == "" {
		return "nobody"
	}
	return strconv.Quote(holder)
}
