package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/fencekv/fencekv/httpapi/wire"
)

// explain prints why the program fails and returns its exit code.
func (a *app) explain(err error) int {
	if n, ok := errors.AsType[*noAnswer](err); ok {
		fmt.Fprintf(a.stderr, "fencekv: %v\n", err)
		return a.explainNoAnswer(n)
	}
	r, ok := errors.AsType[*refusal](err)
	switch {
	case !ok:
		fmt.Fprintf(a.stderr, "fencekv: %v\n", err)
		return wire.ExitUsage
	case a.flags.output == asJSON:
		fmt.Fprintf(a.stderr, "%s\n", bytes.TrimSpace(r.body))
	default:
		a.explainRefusal(r)
	}
	info, _ := wire.Lookup(r.Code)
	return info.Exit
}

func (a *app) explainNoAnswer(n *noAnswer) int {
	if !n.unknown {
		return wire.ExitServer
	}
	fmt.Fprintln(a.stderr, "The outcome is unknown: it may have taken effect, or may yet.")
	if n.requestID != "" {
		fmt.Fprintf(a.stderr, `Repeat the command with --request-id %[1]s to get its answer: it
takes effect at most once. Or make sure that it never does:
fencekv request seal SCOPE %[1]s
`, n.requestID)
	}
	return wire.ExitUnknown
}

func (a *app) explainRefusal(r *refusal) {
	fmt.Fprintf(a.stderr, "fencekv: %s (%s)\n", printable(r.Title), r.Code)
	if r.Detail != "" {
		fmt.Fprintf(a.stderr, "%s\n", printable(r.Detail))
	}
	facts := sheet{rows: problemFacts(r.Problem)}
	if r.write {
		facts.rows = append(facts.rows, []string{"outcome", string(r.Outcome)})
	}
	var table strings.Builder
	if err := facts.print(&table); err != nil {
		return // a strings.Builder has no errors
	}
	for line := range strings.Lines(table.String()) {
		if strings.TrimSpace(line) != "" {
			fmt.Fprint(a.stderr, "  ", line)
		}
	}
}

// problemFacts lists what decided, the most telling first.
func problemFacts(p *wire.Problem) [][]string {
	rows := [][]string{
		{"field", p.Field},
		{"resource", p.Resource},
		{"key", p.Key},
		{"token", number(p.Token)},
		{"max token", number(p.MaxToken)},
		{"enforced by", enforcement(p.EnforcedBy)},
		{"issued", number(p.Issued)},
		{"holder", p.Holder},
		{"remaining", duration(p.RemainingMs)},
	}
	if p.Applied != nil {
		rows = append(rows, []string{"applied before", appliedAt(p.Applied)})
	}
	if p.Current != nil {
		rows = append(rows, []string{"current revision", fmt.Sprint(*p.Current)})
	}
	if p.FailedOp != nil {
		rows = append(rows, []string{"failed operation", fmt.Sprint(*p.FailedOp)})
	}
	return append(rows,
		[]string{"expected sequence", number(p.Expected)},
		[]string{"horizon", number(p.Horizon)},
		[]string{"limit", p.Limit},
		[]string{"bound", number(p.Bound)},
		[]string{"request", p.RequestID},
		[]string{"node", p.Node},
	)
}

// enforcement says in one line who raised a token, by what, where and when.
func enforcement(e *wire.Enforcement) string {
	if e == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "token %d", e.Token)
	if e.Holder != "" {
		fmt.Fprintf(&b, " of %s", e.Holder)
	}
	if e.Resource != "" {
		fmt.Fprintf(&b, " on %s", e.Resource)
	}
	fmt.Fprintf(&b, ", by %s at revision %d", e.Cause, e.Revision)
	if e.At != "" {
		fmt.Fprintf(&b, ", %s", e.At)
	}
	if e.RequestID != "" {
		fmt.Fprintf(&b, ", request %s", e.RequestID)
	}
	return b.String()
}

func appliedAt(at *wire.AppliedAt) string {
	s := fmt.Sprintf("at revision %d", at.Revision)
	if at.Version > 0 {
		s += fmt.Sprintf(", version %d", at.Version)
	}
	if at.Token > 0 {
		s += fmt.Sprintf(", with token %d", at.Token)
	}
	return s
}
