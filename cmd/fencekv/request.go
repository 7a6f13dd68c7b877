package main

import (
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/fencekv/fencekv/httpapi/wire"
)

func (a *app) requestCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "request", Short: "Ask what became of a request, or end it", Args: cobra.NoArgs}
	show := &cobra.Command{
		Use:   "show SCOPE ID",
		Short: "Show what became of a request",
		Long: `Show what became of a request. Its scope is the key that was written, or the
resource of the lock or transaction.`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.askFate(cmd, http.MethodGet, wire.RouteRequests, args)
		},
	}
	seal := &cobra.Command{
		Use:   "seal SCOPE ID",
		Short: "Make sure that a request that has not taken effect never will",
		Long: `Make sure that a request never takes effect from now on, or learn that it did.
Either way its outcome is known afterwards. Its scope is the key that was written,
or the resource of the lock or transaction.`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.askFate(cmd, http.MethodPost, wire.RouteSeal, args)
		},
	}
	cmd.AddCommand(show, seal)
	return cmd
}

func (a *app) askFate(cmd *cobra.Command, method, route string, args []string) error {
	op := &operation{method: method, path: route + wire.KeyPath(args[0]), query: url.Values{"id": {args[1]}}}
	var f wire.Fate
	return a.ask(cmd, op, &f, func() sheet {
		return sheet{rows: [][]string{
			{"scope", f.Scope},
			{"request", f.RequestID},
			{"state", f.State},
			{"operation", f.Op},
			{"code", string(f.Code)},
			{"revision", number(f.Revision)},
			{"version", number(f.Version)},
			{"token", number(f.Token)},
			{"holder", f.Holder},
			{"key", f.Key},
			{"fingerprint", f.Fingerprint},
			{"remaining", duration(f.RemainingMs)},
		}}
	})
}
