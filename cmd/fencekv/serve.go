package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/fencekv/fencekv/fsm"
)

func (a *app) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a node",
		Long: `Run a node: of a new cluster that is founded together (--peers, the same line on
every node), of a cluster that exists (--join), or alone.

Each flag has an environment variable, FENCEKV_RAFT_RTT for --raft-rtt, and a key
of its name in the YAML file --config. A flag counts before the environment, and
that before the file.`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	standard := fsm.DefaultSettings()
	f := cmd.Flags()
	f.SortFlags = false
	f.String("config", "", "YAML `file` with any of these flags as keys")
	f.String("name", "n1", "`name` of this node, which stays its own")
	f.String("data", "data", "`directory` for all it keeps")
	f.String("http", "127.0.0.1:8700", "`address` to serve clients at")
	f.String("raft", "127.0.0.1:8701", "`address` to serve other nodes at")
	f.String("advertise-http", "", "`URL` at which others reach --http (default from --peers, or the address itself)")
	f.String("advertise-raft", "", "`address` at which others reach --raft (default the address itself)")
	f.String("peers", "", "founders of the cluster as a `list` n1=URL,n2=URL,n3=URL, this node included")
	f.String("join", "", "`URL` of any node of the cluster to join")
	f.Duration("raft-rtt", 10*time.Millisecond, "unit of Raft's timeouts: heartbeat and election 50, lease 25")
	f.String("log-store", "wal", "`kind` of log store: wal or boltdb")
	f.Duration("snapshot-interval", 15*time.Second, "how often to see whether a snapshot is due")
	f.Uint64("snapshot-entries", 16_384, "`number` of entries that make one due")
	f.Duration("request-retention", time.Duration(standard.RequestRetentionMs)*time.Millisecond, "how long an answer stays recorded (cluster-wide)")
	f.Int64("max-requests", standard.MaxRequests, "most answers recorded, a `number` (cluster-wide)")
	f.Int64("history", standard.History, "`number` of earlier values a key keeps (cluster-wide)")
	f.Int64("max-value", standard.MaxValue, "`bytes` of a value (cluster-wide)")
	f.Bool("external-tokens", standard.ExternalTokens, "whether a key's first token may come from another issuer (cluster-wide)")
	f.String("log-level", "info", "`level` of the log: trace, debug, info, warn, error or off")
	f.Bool("log-json", false, "log JSON instead of text")
	f.String("pprof", "", "`address` to serve Go's profiles at; none without")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := loadServeConfig(cmd.LocalNonPersistentFlags(), a.environ)
		if err != nil {
			return err
		}
		if code := runServe(cmd.Context(), cfg, a.stdout, a.stderr); code != 0 {
			return exitStatus(code)
		}
		return nil
	}
	return cmd
}
