package main

import (
	"net/http"

	"github.com/spf13/cobra"
)

func (a *app) deleteCommand() *cobra.Command {
	var f writeFlags
	cmd := &cobra.Command{
		Use:   "delete KEY",
		Short: "Delete a key",
		Long: `Delete a key. A delete is a write: on a fenced key it needs a token, or takes the
lock for itself, as put does. The key's version and fence outlive it.`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.write(cmd, args[0], &operation{method: http.MethodDelete}, &f)
		},
	}
	f.define(cmd)
	return cmd
}
