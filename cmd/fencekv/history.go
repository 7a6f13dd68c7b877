package main

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fencekv/fencekv/httpapi/wire"
)

func (a *app) historyCommand() *cobra.Command {
	var stale bool
	cmd := &cobra.Command{
		Use:   "history KEY",
		Short: "List the writes to a key that are kept",
		Long: `List the writes to a key that are kept, the newest first, deletes included.
fencekv get KEY --revision N reads the value of one.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.showEntry(cmd, args[0], consistency(stale), historySheet)
		},
	}
	cmd.Flags().BoolVar(&stale, "stale", false, "what the node has, without asking the others")
	return cmd
}

// showEntry shows all that is known of a key but for its value.
func (a *app) showEntry(cmd *cobra.Command, key string, query url.Values, view func(wire.Entry) sheet) error {
	c, err := a.caller()
	if err != nil {
		return err
	}
	query.Set("meta", "true")
	answered, err := c.do(cmd.Context(), &operation{method: http.MethodGet, path: kvPathOf(key), query: query})
	if err != nil {
		return err
	}
	var e wire.Entry
	return a.show(answered.body, &e, func() sheet { return view(e) })
}

func entrySheet(e wire.Entry) sheet {
	return sheet{rows: [][]string{
		{"key", e.Key},
		{"revision", number(e.Revision)},
		{"create revision", number(e.CreateRevision)},
		{"version", number(e.Version)},
		{"deleted", mark(e.Deleted, "yes")},
		{"content type", e.ContentType},
		{"size", fmt.Sprint(e.Size)},
		{"token", number(e.Token)},
		{"holder", e.Holder},
		{"request", e.RequestID},
		{"author", e.Author},
		{"reason", e.Reason},
		{"written", e.At},
		{"max token", number(e.MaxToken)},
		{"enforced by", enforcement(e.EnforcedBy)},
		{"kept", fmt.Sprintf("%d earlier", len(e.History))},
		{"read at", fmt.Sprintf("revision %d by %s", e.StoreRevision, e.Node)},
	}}
}

func historySheet(e wire.Entry) sheet {
	s := sheet{head: []string{"revision", "version", "size", "token", "holder", "author", "reason", "written", ""}}
	for _, m := range slices.Concat([]wire.ValueMeta{e.ValueMeta}, e.History) {
		s.rows = append(s.rows, []string{
			number(m.Revision), number(m.Version), fmt.Sprint(m.Size), number(m.Token), m.Holder,
			m.Author, m.Reason, m.At, mark(m.Deleted, "deleted"),
		})
	}
	return s
}
