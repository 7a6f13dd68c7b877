package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "version",
		Short:             "Print the version of this binary",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			v := struct {
				Version string `json:"version"`
				Go      string `json:"go"`
				OS      string `json:"os"`
				Arch    string `json:"arch"`
			}{buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH}
			return a.showAs(v, func() sheet {
				return sheet{rows: [][]string{{"fencekv", v.Version}, {"go", v.Go}, {"platform", v.OS + "/" + v.Arch}}}
			})
		},
	}
}

// buildVersion returns the module's version as the go command stamped it: a
// release, or a commit's pseudo-version, which ends in +dirty for a changed
// checkout; (devel) where nothing was stamped.
func buildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
