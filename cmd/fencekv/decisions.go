package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/fencekv/fencekv/httpapi/wire"
)

func (a *app) decisionsCommand() *cobra.Command {
	var resource, code string
	var after uint64
	var limit int
	cmd := &cobra.Command{
		Use:   "decisions",
		Short: "Show the evidence: refused writes and what happened to locks",
		Long: `Show the evidence log, oldest line first: every refused write, and every grant,
end and revocation of a lock, with the facts that decided it. The next page begins
after the last line's number: --after.`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			query := url.Values{}
			for name, value := range map[string]string{"resource": resource, "code": code} {
				if value != "" {
					query.Set(name, value)
				}
			}
			if after > 0 {
				query.Set("after", wire.FormatNumber(after))
			}
			query.Set("limit", strconv.Itoa(limit))
			op := &operation{method: http.MethodGet, path: wire.RouteDecisions, query: query}
			var d wire.Decisions
			return a.ask(cmd, op, &d, func() sheet { return decisionsSheet(d) })
		},
	}
	cmd.Flags().StringVar(&resource, "resource", "", "only those about this `key` or resource")
	cmd.Flags().StringVar(&code, "code", "", "only those with this `code`, like stale_owner")
	cmd.Flags().Uint64Var(&after, "after", 0, "begin behind this `line`")
	cmd.Flags().IntVar(&limit, "limit", wire.DefaultPage, fmt.Sprintf("most to show, a `number` up to %d", wire.MaxPage))
	codes := cobra.CompletionFunc(func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var all []cobra.Completion
		for _, info := range wire.Codes() {
			all = append(all, cobra.CompletionWithDesc(string(info.Code), info.Title))
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	})
	if err := cmd.RegisterFlagCompletionFunc("code", codes); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

func decisionsSheet(d wire.Decisions) sheet {
	s := sheet{head: []string{"line", "when", "op", "code", "resource", "token", "max token", "holder", "request"}}
	for _, e := range d.Decisions {
		s.rows = append(s.rows, []string{
			number(e.Seq), e.At, e.Op, string(e.Code), e.Resource, number(e.Token), number(e.MaxToken), e.Holder, e.RequestID,
		})
	}
	return s
}
