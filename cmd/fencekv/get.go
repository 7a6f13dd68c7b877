package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/fencekv/fencekv/httpapi/wire"
)

// read is the JSON of a value that was read: the route answers with the bytes,
// and with the rest in headers.
type read struct {
	Key         string `json:"key"`
	Revision    uint64 `json:"revision"`
	Version     uint64 `json:"version"`
	ContentType string `json:"contentType,omitempty"`
	Size        int    `json:"size"`
	Token       uint64 `json:"token,omitempty"`
	MaxToken    uint64 `json:"maxToken,omitempty"`
	wire.Value
	StoreRevision uint64 `json:"storeRevision"`
	Node          string `json:"node"`
}

func (a *app) getCommand() *cobra.Command {
	var revision uint64
	var meta, stale bool
	cmd := &cobra.Command{
		Use:   "get KEY",
		Short: "Read a key",
		Long: `Read a key. The read is linearizable unless --stale asks a node for what it has.

As a table, the value is printed as text with a line end behind it, and quoted if
it is not plain text. -o raw prints the bytes and nothing else.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			query := consistency(stale)
			if cmd.Flags().Changed("revision") {
				query.Set("revision", wire.FormatNumber(revision))
			}
			if meta {
				return a.showEntry(cmd, args[0], query, entrySheet)
			}
			c, err := a.caller()
			if err != nil {
				return err
			}
			answered, err := c.do(cmd.Context(), &operation{method: http.MethodGet, path: kvPathOf(args[0]), query: query})
			if err != nil {
				return err
			}
			return a.showValue(args[0], answered)
		},
	}
	cmd.Flags().Uint64Var(&revision, "revision", 0, "the kept value as of this `revision` of the store")
	cmd.Flags().BoolVar(&meta, "meta", false, "what is known of the key instead of its value")
	cmd.Flags().BoolVar(&stale, "stale", false, "what the node has, without asking the others")
	cmd.MarkFlagsMutuallyExclusive("meta", "revision")
	return cmd
}

func consistency(stale bool) url.Values {
	if stale {
		return url.Values{"consistency": {"stale"}}
	}
	return url.Values{}
}

func (a *app) showValue(key string, answered *answer) error {
	switch a.flags.output {
	case asRaw:
		_, err := a.stdout.Write(answered.body)
		return err
	case asTable:
		_, err := fmt.Fprintln(a.stdout, plainText(answered.body))
		return err
	}
	h := answered.header
	count := func(name string) uint64 {
		n, err := wire.ParseNumber(h.Get(name))
		if err != nil {
			return 0 // absent
		}
		return n
	}
	revision, err := wire.ParseETag(h.Get(wire.HeaderETag))
	if err != nil {
		return fmt.Errorf("read answer: %s: %w", wire.HeaderETag, err)
	}
	return a.showAs(read{
		Key: key, Revision: revision, Version: count(wire.HeaderVersion),
		ContentType: h.Get("Content-Type"), Size: len(answered.body),
		Token: count(wire.HeaderToken), MaxToken: count(wire.HeaderMaxToken),
		Value:         wire.MakeValue(answered.body),
		StoreRevision: count(wire.HeaderRevision), Node: h.Get(wire.HeaderNode),
	}, nil)
}

// plainText returns a value for a terminal, without one line end of its own; a
// value that could steer the terminal is quoted.
func plainText(data []byte) string {
	s := string(data)
	steers := func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsGraphic(r) }
	if !utf8.ValidString(s) || strings.ContainsFunc(s, steers) {
		return strconv.Quote(s)
	}
	return strings.TrimSuffix(s, "\n")
}
