package main

import (
	"net/http"

	"github.com/spf13/cobra"

	"github.com/fencekv/fencekv/httpapi/wire"
)

func (a *app) putCommand() *cobra.Command {
	var f writeFlags
	var contentType string
	var ifAbsent bool
	cmd := &cobra.Command{
		Use:   "put KEY VALUE|-|@FILE",
		Short: "Write a key",
		Long: `Write a key. The value is the argument, or stdin for -, or the content of a file
for @FILE.

A write to a key that is fenced must carry the token of its lock: --fence-token,
or what fencekv lock has put into the environment. Without one, put takes the
key's own lock for the time of the write; --no-lock refuses instead.`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: valueCompletion,
		RunE: func(cmd *cobra.Command, args []string) error {
			data, curl, err := a.value(args[1])
			if err != nil {
				return err
			}
			op := &operation{method: http.MethodPut, header: http.Header{}, body: data, bodyArg: curl}
			if contentType != "" {
				op.header.Set("Content-Type", contentType)
			}
			if ifAbsent {
				op.header.Set(wire.HeaderIfNoneMatch, "*")
			}
			return a.write(cmd, args[0], op, &f)
		},
	}
	f.define(cmd)
	cmd.Flags().StringVar(&contentType, "content-type", "", "`type` of the value, kept with it")
	cmd.Flags().BoolVar(&ifAbsent, "if-absent", false, "only if the key does not exist")
	cmd.MarkFlagsMutuallyExclusive("if-absent", "if-revision")
	return cmd
}

// valueCompletion completes nothing for the key and files for the value.
func valueCompletion(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 1 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}
