package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/fencekv/fencekv/cluster"
	"github.com/fencekv/fencekv/httpapi/wire"
)

func (a *app) membersCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "members", Short: "List the nodes of the cluster and change them", Args: cobra.NoArgs}
	list := &cobra.Command{
		Use:               "ls",
		Short:             "List the members",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.askMembers(cmd, &operation{method: http.MethodGet, path: wire.RouteCluster})
		},
	}
	join := &cobra.Command{
		Use:   "join URL",
		Short: "Admit the node at URL",
		Long: `Admit the node at URL, which runs and belongs to no cluster yet. It gets a vote
once it has caught up. A node started with serve --join asks for this by itself.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.join(cmd, args[0])
		},
	}
	remove := &cobra.Command{
		Use:               "remove NAME",
		Short:             "Take a member out of the cluster; its process ends",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.askMembers(cmd, &operation{method: http.MethodDelete, path: wire.RouteMembers + "/" + url.PathEscape(args[0]), once: true})
		},
	}
	transfer := &cobra.Command{
		Use:               "transfer [NAME]",
		Short:             "Hand leadership to a member, or to any",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			var t wire.Transfer
			if len(args) == 1 {
				t.To = args[0]
			}
			return a.postMembers(cmd, wire.RouteTransfer, t)
		},
	}
	cmd.AddCommand(list, join, remove, transfer)
	return cmd
}

// join asks the node at address who it is and the cluster to admit that.
func (a *app) join(cmd *cobra.Command, address string) error {
	nodes, err := parseEndpoints(address)
	if err != nil {
		return err
	}
	if len(nodes) != 1 {
		return fmt.Errorf("%q must be one URL", address)
	}
	c, err := a.caller()
	if err != nil {
		return err
	}
	answered, err := c.do(cmd.Context(), &operation{method: http.MethodGet, path: wire.RoutePeer, node: nodes[0]})
	if err != nil {
		return fmt.Errorf("ask the new node who it is: %w", err)
	}
	var hello cluster.Hello
	if err := json.Unmarshal(answered.body, &hello); err != nil {
		return fmt.Errorf("read who the new node is: %w", err)
	}
	return a.postMembers(cmd, wire.RouteMembers, cluster.Joiner{
		Name: hello.Name, ServerID: hello.ServerID, HTTPAddress: hello.HTTPAddress,
		RaftAddress: hello.RaftAddress, Build: hello.Build, Format: hello.Format,
	})
}

func (a *app) postMembers(cmd *cobra.Command, path string, body any) error {
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	h := http.Header{}
	h.Set("Content-Type", wire.TypeJSON)
	return a.askMembers(cmd, &operation{method: http.MethodPost, path: path, header: h, body: data, once: true})
}

func (a *app) askMembers(cmd *cobra.Command, op *operation) error {
	var c wire.Cluster
	return a.ask(cmd, op, &c, func() sheet {
		s := sheet{head: []string{"name", "role", "http", "raft", "build", "server ID"}}
		for _, m := range c.Members {
			s.rows = append(s.rows, []string{m.Name, role(m), m.HTTPAddress, m.RaftAddress, m.Build, m.ServerID})
		}
		return s
	})
}

func role(m wire.Member) string {
	switch {
	case m.Leader:
		return "leader"
	case m.Voter:
		return "voter"
	}
	return "non-voter"
}
