package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/fencekv/fencekv/httpapi/wire"
)

func (a *app) locksCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "locks", Short: "Look at locks and their fences, and break them", Args: cobra.NoArgs}
	cmd.AddCommand(
		a.locksListCommand(), a.locksShowCommand(),
		a.locksChangeCommand("revoke", wire.RouteRevoke, "Free a lock and shut its holder out at once"),
		a.locksChangeCommand("require", wire.RouteRequire, "Refuse writes without a token before the first lock"),
	)
	return cmd
}

func (a *app) locksListCommand() *cobra.Command {
	var limit int
	var stale bool
	cmd := &cobra.Command{
		Use:               "ls [PREFIX]",
		Short:             "List the locks held",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			query := consistency(stale)
			if len(args) == 1 {
				query.Set("prefix", args[0])
			}
			c, err := a.caller()
			if err != nil {
				return err
			}
			all := wire.Locks{Locks: []wire.Lock{}}
			err = pages(limit, func(size int) (string, int, error) {
				query.Set("limit", strconv.Itoa(size))
				answered, err := c.do(cmd.Context(), &operation{method: http.MethodGet, path: wire.RouteLocks, query: query})
				if err != nil {
					return "", 0, err
				}
				var page wire.Locks
				if err := json.Unmarshal(answered.body, &page); err != nil {
					return "", 0, fmt.Errorf("read answer: %w", err)
				}
				all.Locks, all.Next, all.Read = append(all.Locks, page.Locks...), page.Next, page.Read
				query.Set("after", page.Next)
				return page.Next, len(page.Locks), nil
			})
			if err != nil {
				return err
			}
			return a.showAs(all, func() sheet { return locksSheet(all) })
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "most to show, a `number`; 0 for all")
	cmd.Flags().BoolVar(&stale, "stale", false, "what the node has, without asking the others")
	return cmd
}

func locksSheet(l wire.Locks) sheet {
	s := sheet{head: []string{"resource", "holder", "token", "remaining", "fence", "max token", "waiting", "granted"}}
	for _, k := range l.Locks {
		s.rows = append(s.rows, []string{
			k.Resource, k.Holder, number(k.Token), duration(k.RemainingMs), k.Fence,
			number(k.MaxToken), number(k.Waiting), k.GrantedAt,
		})
	}
	return s
}

func (a *app) locksShowCommand() *cobra.Command {
	var stale bool
	cmd := &cobra.Command{
		Use:               "show NAME",
		Short:             "Show a lock: holder, tokens issued and enforced, waiters, refusals",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			op := &operation{method: http.MethodGet, path: wire.RouteLocks + "/" + wire.KeyPath(args[0]), query: consistency(stale)}
			var d wire.LockDetail
			return a.ask(cmd, op, &d, func() sheet { return lockSheet(d) })
		},
	}
	cmd.Flags().BoolVar(&stale, "stale", false, "what the node has, without asking the others")
	return cmd
}

func lockSheet(d wire.LockDetail) sheet {
	held := "no"
	if d.Held {
		held = fmt.Sprintf("by %s, %s left of %s", d.Holder, duration(d.RemainingMs), duration(d.TTLMs))
	}
	s := sheet{rows: [][]string{
		{"resource", d.Resource},
		{"held", held},
		{"token", number(d.Token)},
		{"fence", d.Fence},
		{"granted", d.GrantedAt},
		{"request", d.RequestID},
		{"issued", number(d.Issued)},
		{"max token", number(d.MaxToken)},
		{"enforced by", enforcement(d.EnforcedBy)},
		{"issuer", d.Issuer},
		{"required", mark(d.Required, "yes")},
	}}
	for _, t := range d.Tokens {
		s.rows = append(s.rows, []string{"token issued", fmt.Sprintf("%d to %s%s", t.Token, t.Holder, mark(t.Retired, ", retired"))})
	}
	for _, w := range d.Waiters {
		s.rows = append(s.rows, []string{"waiter", fmt.Sprintf("%s, for up to %s, request %s", w.Holder, duration(w.RemainingMs), w.RequestID)})
	}
	for _, r := range d.Refusals {
		s.rows = append(s.rows, []string{"refused", fmt.Sprintf("%s %s%s, %s, request %s", r.Op, r.Code, tokenOf(r), r.At, r.RequestID)})
	}
	return s
}

func tokenOf(d wire.Decision) string {
	if d.Token == 0 {
		return ""
	}
	return fmt.Sprintf(", token %d", d.Token)
}

func (a *app) locksChangeCommand(verb, route, short string) *cobra.Command {
	var reason, requestID string
	cmd := &cobra.Command{
		Use:               verb + " NAME",
		Short:             short,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			op := &operation{method: http.MethodPost, path: route + wire.KeyPath(args[0]), header: http.Header{}, identified: true}
			if reason != "" {
				op.header.Set(wire.HeaderReason, reason)
			}
			if requestID != "" {
				op.header.Set(wire.HeaderIdempotencyKey, wire.FormatRequestID(requestID))
			}
			return a.askChange(cmd, op)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`text` kept with the decision")
	cmd.Flags().StringVar(&requestID, "request-id", "", "send under this `ID`, to repeat an earlier command; default a new one")
	return cmd
}
