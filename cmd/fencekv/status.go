package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
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
	endpoints, err := parseEndpoints(a.given(cmd, "addr", envAddr))
	if err != nil {
		return err
	}
	answers, errs := make([]*answer, len(endpoints)), make([]error, len(endpoints))
	var all sync.WaitGroup
	for i, endpoint := range endpoints {
		c, err := a.caller(cmd)
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
		if answered == nil {
			continue
		}
		var s wire.Status
		if err := a.show(answered.body, &s, func() sheet { return sheet{} }); err != nil {
			return err
		}
		nodes = append(nodes, s)
	}
	return errors.Join(errs...)
}
