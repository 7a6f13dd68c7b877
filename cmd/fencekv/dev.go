package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// devConfig is what `fencekv dev` was asked for.
type devConfig struct {
	Nodes int    // 1 to 9
	Data  string // data directory; empty for a temporary one, removed at the end
	Port  int    // HTTP port of the first node; 0 takes free ports
}

func (c devConfig) validate() error {
	if c.Nodes < 1 || c.Nodes > 9 {
		return fmt.Errorf("--nodes %d must be 1 to 9", c.Nodes)
	}
	if c.Port < 0 || c.Port > 65_535-10*c.Nodes {
		return fmt.Errorf("--port %d leaves no room for %d nodes", c.Port, c.Nodes)
	}
	return nil
}

// runDev runs a cluster of real processes until ctx ends, and starts again a
// node that died: kill one and watch the others go on.
func runDev(ctx context.Context, cfg devConfig, stdout, stderr io.Writer) error {
	if err := cfg.validate(); err != nil {
		return err
	}
	dir, temporary := cfg.Data, cfg.Data == ""
	if temporary {
		made, err := os.MkdirTemp("", "fencekv-dev-")
		if err != nil {
			return fmt.Errorf("make data directory: %w", err)
		}
		dir = made
		defer os.RemoveAll(dir)
	}
	cluster, err := newLocalCluster(dir, cfg.Nodes, cfg.Port)
	if err != nil {
		return err
	}
	began := time.Now()
	starting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := cluster.start(starting); err != nil {
		showLogs(cluster, stderr)
		_ = cluster.stop(5 * time.Second)
		return err
	}
	announceDev(cluster, dir, temporary, time.Since(began), stdout)
	for _, node := range cluster.nodes {
		go keepUp(ctx, node, stdout)
	}
	<-ctx.Done()
	fmt.Fprintln(stdout, "\nstopping …")
	return cluster.stop(20 * time.Second)
}

func announceDev(c *localCluster, dir string, temporary bool, took time.Duration, stdout io.Writer) {
	fmt.Fprintf(stdout, "%d nodes ready in %s\n\n", len(c.nodes), took.Round(10*time.Millisecond))
	for _, n := range c.nodes {
		fmt.Fprintf(stdout, "  %s  %s  log %s\n", n.name, n.url(), n.logPath())
	}
	kept := "kept"
	if temporary {
		kept = "removed at the end; --data DIR keeps it"
	}
	first := c.nodes[0].url()
	fmt.Fprintf(stdout, "\n  data %s (%s)\n\ntry:\n\n", dir, kept)
	fmt.Fprintf(stdout, "  curl -i -X PUT %s/v1/kv/hello -d world\n", first)
	fmt.Fprintf(stdout, "  curl -s %s/v1/kv/hello\n", c.nodes[len(c.nodes)-1].url())
	fmt.Fprintf(stdout, "  fencekv drill --addr %s\n\nCtrl-C stops all.\n", strings.Join(c.urls(), ","))
}

// keepUp starts a node again a moment after its process ended.
func keepUp(ctx context.Context, n *localNode, stdout io.Writer) {
	for {
		var ended error
		select {
		case <-ctx.Done():
			return
		case ended = <-n.ended():
		}
		fmt.Fprintf(stdout, "%s ended (%v); starting it again in 2 s\n", n.name, ended)
		select {
		case <-ctx.Done():
			return
		case <-time.After(2 * time.Second):
		}
		if err := n.start(); err != nil {
			fmt.Fprintln(stdout, err)
			return
		}
	}
}

// showLogs prints the end of each node's log, for a cluster that did not come up.
func showLogs(c *localCluster, w io.Writer) {
	const tail = 2_000
	for _, n := range c.nodes {
		log, err := os.ReadFile(n.logPath())
		if err != nil {
			continue
		}
		fmt.Fprintf(w, "--- %s\n%s\n", n.logPath(), log[max(0, len(log)-tail):])
	}
}

func (a *app) devCommand() *cobra.Command {
	cfg := devConfig{}
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a local cluster of real processes until Ctrl-C",
		Long: `dev runs a cluster on this machine: one process per node, each with its own
data directory and log. A node that dies is started again, so you can kill one
and watch the others go on. Ctrl-C stops all.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDev(cmd.Context(), cfg, a.stdout, a.stderr)
		},
	}
	f := cmd.Flags()
	f.IntVar(&cfg.Nodes, "nodes", 3, "number of nodes, 1 to 9")
	f.StringVar(&cfg.Data, "data", "", "data `directory`, kept; empty for a temporary one, removed at the end")
	f.IntVar(&cfg.Port, "port", 8700, "HTTP port of the first node, 10 more for each other; 0 takes free ones")
	return cmd
}
