package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/fencekv/fencekv/httpapi/wire"
)

func (a *app) listCommand() *cobra.Command {
	var values, stale bool
	var limit int
	cmd := &cobra.Command{
		Use:               "list [PREFIX]",
		Short:             "List keys",
		Long:              "List the keys that begin with PREFIX, in order, page after page until all are there.",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			query := consistency(stale)
			if len(args) == 1 {
				query.Set("prefix", args[0])
			}
			if values {
				query.Set("values", "true")
			}
			c, err := a.caller()
			if err != nil {
				return err
			}
			all := wire.List{Keys: []wire.ListedKey{}}
			err = pages(limit, func(size int) (string, int, error) {
				query.Set("limit", strconv.Itoa(size))
				answered, err := c.do(cmd.Context(), &operation{method: http.MethodGet, path: wire.RouteKV, query: query})
				if err != nil {
					return "", 0, err
				}
				var page wire.List
				if err := json.Unmarshal(answered.body, &page); err != nil {
					return "", 0, fmt.Errorf("read answer: %w", err)
				}
				all.Keys, all.Next, all.Read = append(all.Keys, page.Keys...), page.Next, page.Read
				query.Set("after", page.Next)
				return page.Next, len(page.Keys), nil
			})
			if err != nil {
				return err
			}
			return a.showAs(all, func() sheet { return listSheet(all, values) })
		},
	}
	cmd.Flags().BoolVar(&values, "values", false, "with the values")
	cmd.Flags().IntVar(&limit, "limit", 0, "most to show, a `number`; 0 for all")
	cmd.Flags().BoolVar(&stale, "stale", false, "what the node has, without asking the others")
	return cmd
}

// pages calls page until nothing is left or limit is reached, if it is not 0.
// Page is told how much it may bring, and returns where the next begins and how
// much it brought.
func pages(limit int, page func(size int) (next string, n int, err error)) error {
	if limit < 0 {
		return fmt.Errorf("--limit %d must not be negative", limit)
	}
	for got := 0; ; {
		size := wire.MaxPage
		if limit > 0 {
			size = min(size, limit-got)
		}
		next, n, err := page(size)
		if err != nil {
			return err
		}
		got += n
		if next == "" || limit > 0 && got >= limit {
			return nil
		}
	}
}

func listSheet(l wire.List, values bool) sheet {
	s := sheet{head: []string{"key", "revision", "version", "size", "token", "written"}}
	if values {
		s.head = append(s.head, "value")
	}
	for _, k := range l.Keys {
		row := []string{k.Key, number(k.Revision), number(k.Version), fmt.Sprint(k.Size), number(k.Token), k.At}
		if values {
			row = append(row, oneLine(k.Value))
		}
		s.rows = append(s.rows, row)
	}
	return s
}

// oneLine shows a value in a table: quoted, and cut when it is long.
func oneLine(v wire.Value) string {
	const most = 60
	data, err := v.Bytes()
	if err != nil {
		return ""
	}
	if len(data) > most {
		return strconv.Quote(string(data[:most])) + "…"
	}
	return strconv.Quote(string(data))
}
