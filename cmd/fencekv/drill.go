package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/fencekv/fencekv/httpapi/wire"
)

// drillConfig is what `fencekv drill` was asked for.
type drillConfig struct {
	Addrs  []string // base URLs of the cluster under drill
	Prefix string   // scratch prefix, ending in a slash; empty for drill/<random>/
	Kills  int      // how often the crash story kills the leader; default 20, 0 leaves the crash stories out
	JSON   bool     // rows as JSON lines instead of a table
}

// drill tells the stories that the store exists for, against real nodes, and
// keeps what was expected beside what was seen. Stories that need nodes killed
// run on a throw-away cluster of three processes of their own: a drill must be
// safe to run against a cluster that people use.
type drill struct {
	ctx    context.Context
	cfg    drillConfig
	client *http.Client
	stderr io.Writer
	rows   []drillRow
	story  string
}

type drillRow struct {
	Story    string `json:"story"`
	Step     string `json:"step"`
	Expected string `json:"expected"`
	Seen     string `json:"seen"`
	Evidence string `json:"evidence,omitempty"`
	Passed   bool   `json:"passed"`
}

// stories in the order they are told.
func (d *drill) stories() []struct {
	name string
	tell func(*drill) error
} {
	return []struct {
		name string
		tell func(*drill) error
	}{
		{"a late worker", tellLateWorker},
		{"b issue and write", tellModes},
		{"c same request ID", tellResend},
		{"d answer lost", tellAnswerLost},
		{"e release", tellRelease},
		{"f wrong tokens", tellWrongTokens},
		{"g leader killed", tellLeaderKilled},
		{"h all killed", tellAllKilled},
	}
}

// runDrill tells every story and returns whether all rows passed.
func runDrill(ctx context.Context, cfg drillConfig, stdout, stderr io.Writer) (bool, error) {
	if cfg.Prefix == "" {
		var id [4]byte
		_, _ = rand.Read(id[:])
		cfg.Prefix = "drill/" + hex.EncodeToString(id[:]) + "/"
	}
	d := &drill{ctx: ctx, cfg: cfg, client: drillClient(), stderr: stderr}
	if _, err := d.status(); err != nil {
		return false, fmt.Errorf("no cluster answers at %v: %w", cfg.Addrs, err)
	}
	for _, story := range d.stories() {
		if cfg.Kills == 0 && story.name[0] >= 'g' {
			continue
		}
		d.story = story.name
		fmt.Fprintf(stderr, "drill: %s\n", story.name)
		if err := story.tell(d); err != nil {
			d.expect("the story could be told", "yes", "no", err.Error())
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
	}
	return d.report(stdout), nil
}

// expect adds a row; it passes if what was seen is what was expected.
func (d *drill) expect(step, expected, seen, evidence string) {
	d.rows = append(d.rows, drillRow{
		Story: d.story, Step: step, Expected: expected, Seen: seen,
		Evidence: evidence, Passed: expected == seen,
	})
}

func (d *drill) report(stdout io.Writer) bool {
	failed := 0
	for _, r := range d.rows {
		if !r.Passed {
			failed++
		}
	}
	if d.cfg.JSON {
		encoder := json.NewEncoder(stdout)
		for _, r := range d.rows {
			_ = encoder.Encode(r)
		}
		return failed == 0
	}
	t := table.NewWriter()
	t.SetOutputMirror(stdout)
	t.SetStyle(table.StyleLight)
	t.AppendHeader(table.Row{"story", "step", "expected", "seen", "evidence", ""})
	t.SetColumnConfigs([]table.ColumnConfig{
		{Number: 1, AutoMerge: true},
		{Number: 2, WidthMax: 34, WidthMaxEnforcer: text.WrapSoft},
		{Number: 3, WidthMax: 30, WidthMaxEnforcer: text.WrapSoft},
		{Number: 4, WidthMax: 30, WidthMaxEnforcer: text.WrapSoft},
		{Number: 5, WidthMax: 60, WidthMaxEnforcer: text.WrapSoft},
	})
	for _, r := range d.rows {
		verdict := "ok"
		if !r.Passed {
			verdict = "FAILED"
		}
		t.AppendRow(table.Row{r.Story, r.Step, r.Expected, r.Seen, r.Evidence, verdict})
	}
	t.Render()
	fmt.Fprintf(stdout, "%d rows, %d failed\n", len(d.rows), failed)
	return failed == 0
}

// key returns a key of the scratch prefix.
func (d *drill) key(name string) string { return d.cfg.Prefix + name }

// until polls a condition that the cluster reaches by itself.
func (d *drill) until(limit time.Duration, reached func() bool) bool {
	deadline := time.Now().Add(limit)
	for !reached() {
		if time.Now().After(deadline) || d.ctx.Err() != nil {
			return false
		}
		select {
		case <-d.ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	return true
}

func (a *app) drillCommand() *cobra.Command {
	cfg := drillConfig{}
	cmd := &cobra.Command{
		Use:   "drill",
		Short: "Show, with evidence, that the cluster refuses a late worker's write",
		Long: `drill tells the stories fencekv exists for against a running cluster, on a
scratch prefix, and prints for each step what was expected, what was seen and
the evidence. It exits with 1 if any row failed. The stories in which nodes are
killed run on a throw-away cluster of three processes on this machine.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			addrs, err := parseEndpoints(a.given(cmd, "addr", envAddr))
			if err != nil {
				return err
			}
			cfg.Addrs, cfg.JSON = addrs, a.flags.output == asJSON
			passed, err := runDrill(cmd.Context(), cfg, a.stdout, a.stderr)
			if err != nil {
				return err
			}
			if !passed {
				return exitStatus(wire.ExitUsage)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&cfg.Prefix, "prefix", "", "scratch `prefix`, ending in a slash; empty for one of its own")
	cmd.Flags().IntVar(&cfg.Kills, "kills", 20, "how often to kill the leader of the throw-away cluster; 0 leaves it out")
	return cmd
}

// drillWorkerCommand is not for people: drill runs it as worker A.
func (a *app) drillWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    workerCommand + " KEY",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			addrs, err := parseEndpoints(a.given(cmd, "addr", envAddr))
			if err != nil {
				return err
			}
			return runDrillWorker(cmd.Context(), addrs, args[0], a.stdin, a.stdout)
		},
	}
}
