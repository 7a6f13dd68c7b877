package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/fencekv/fencekv/httpapi/wire"
)

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show what each node at --addr knows of itself",
		Long: `Show what each node at --addr knows of itself; one line of JSON a node with
-o json. It fails if any of them does not answer.`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.status(cmd)
		},
	}
}

func (a *app) status(cmd *cobra.Command) error {
	endpoints := a.flags.endpoints
	answers, errs := make([]*answer, len(endpoints)), make([]error, len(endpoints))
	var all sync.WaitGroup
	for i, endpoint := range endpoints {
		c, err := a.caller()
		if err != nil {
			return err
		}
		all.Go(func() {
			answers[i], errs[i] = c.do(cmd.Context(), &operation{method: http.MethodGet, path: wire.RouteStatus, node: endpoint})
		})
	}
	all.Wait()
	var nodes []wire.Status
	for _, answered := range answers {
		switch {
		case answered == nil:
			continue
		case a.flags.output == asJSON:
			fmt.Fprintf(a.stdout, "%s\n", bytes.TrimSpace(answered.body))
			continue
		}
		var s wire.Status
		if err := json.Unmarshal(answered.body, &s); err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		nodes = append(nodes, s)
	}
	if len(nodes) > 0 {
		if err := statusSheet(nodes, len(endpoints)).print(a.stdout); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// statusSheet shows one node at length and several beside each other.
func statusSheet(nodes []wire.Status, asked int) sheet {
	if asked == 1 && len(nodes) == 1 {
		return nodeSheet(nodes[0])
	}
	s := sheet{head: []string{"name", "role", "leader", "term", "applied", "revision", "token", "floor", "keys", "locks", "build"}}
	for _, n := range nodes {
		s.rows = append(s.rows, []string{
			n.Name, n.Role, n.LeaderName, number(n.Term), number(n.AppliedIndex), fmt.Sprint(n.Revision),
			fmt.Sprint(n.Token), fmt.Sprint(n.Floor), fmt.Sprint(n.Counts.Keys), fmt.Sprint(n.Counts.Locks), n.Build,
		})
	}
	return s
}

func nodeSheet(n wire.Status) sheet {
	return sheet{rows: [][]string{
		{"name", n.Name},
		{"role", n.Role},
		{"leader", strings.TrimSpace(n.LeaderName + " " + n.LeaderAddress)},
		{"last contact", duration(n.LastContactMs)},
		{"cluster", n.ClusterID},
		{"server ID", n.ServerID},
		{"build", n.Build},
		{"log store", n.LogStore},
		{"term", number(n.Term)},
		{"applied", fmt.Sprintf("%d of %d committed", n.AppliedIndex, n.CommitIndex)},
		{"revision", fmt.Sprint(n.Revision)},
		{"newest token", fmt.Sprint(n.Token)},
		{"floor", fmt.Sprint(n.Floor)},
		{"epoch", fmt.Sprint(n.Epoch)},
		{"horizon", fmt.Sprint(n.Horizon)},
		{"clock", duration(n.ClockMs)},
		{"keys", fmt.Sprintf("%d, and %d tombstones", n.Counts.Keys, n.Counts.Tombstones)},
		{"locks", fmt.Sprintf("%d held, %d waiters, %d fences", n.Counts.Locks, n.Counts.Waiters, n.Counts.Fences)},
		{"requests", fmt.Sprintf("%d of %d, kept for %s", n.Counts.Requests, n.Settings.MaxRequests, duration(n.Settings.RequestRetentionMs))},
		{"history", fmt.Sprintf("%d earlier values a key", n.Settings.History)},
		{"max value", fmt.Sprintf("%d bytes", n.Settings.MaxValue)},
		{"outside tokens", map[bool]string{true: "accepted", false: "refused"}[n.Settings.ExternalTokens]},
	}}
}
