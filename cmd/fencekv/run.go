package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencekv/fencekv/httpapi/wire"
)

const defaultAddr = "http://127.0.0.1:8700"

// Environment variables that stand in for flags which were not given. The lock
// verb sets the first three for its child.
const (
	envAddr       = "FENCEKV_ADDR"
	envFenceToken = "FENCEKV_FENCE_TOKEN"
	envLock       = "FENCEKV_LOCK"
	envAuthToken  = "FENCEKV_AUTH_TOKEN"
)

// Forms of output.
const (
	asTable = "table"
	asJSON  = "json"
	asRaw   = "raw"
)

// app is one run of the program: its streams, its environment (name=value, the
// last of a name counts) and the flags every verb takes.
type app struct {
	stdin   io.Reader
	stdout  io.Writer
	stderr  io.Writer
	environ []string
	flags   globalFlags
}

type globalFlags struct {
	addr          string // base URLs, comma between
	fenceToken    string // canonical decimal; empty sends none
	authTokenFile string
	cacert        string
	cert          string
	key           string
	output        string        // asTable, asJSON or asRaw
	timeout       time.Duration // of one call with all its tries, not counting a wait for a lock
	curl          bool

	endpoints []string // addr, taken apart
	token     uint64   // fenceToken as a number, 0 for none
}

// exitStatus ends the program with a code and prints nothing more.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// run executes one command line and returns the exit code. It ends early, in
// good order, when ctx does.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, environ []string) int {
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr, environ: environ}
	root := a.rootCommand()
	root.SetArgs(slices.Concat([]string{}, args)) // cobra takes the process's own for nil
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return wire.ExitOK
	}
	if status, ok := errors.AsType[exitStatus](err); ok {
		return int(status)
	}
	return a.explain(err)
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "fencekv",
		Short: "A replicated key-value store that refuses writes of a lock's former holder",
		Long: `fencekv is a replicated key-value store that issues fencing tokens with its
locks and refuses, in the same step as the change, every write whose token is
older than the newest one.

Exit codes: 0 ok, 1 usage or local error, 2 server or network, 3 not found,
4 revision mismatch, 5 stale owner, 6 lock held or wait over, 7 outcome unknown.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			err := a.completeFlags(cmd)
			if err != nil && cmd.Name() == "lock" {
				return exitWith(a, exitFailed, err)
			}
			return err
		},
	}
	f := root.PersistentFlags()
	f.StringVar(&a.flags.addr, "addr", defaultAddr, "`URLs` of the nodes, comma between; or "+envAddr)
	f.StringVar(&a.flags.fenceToken, "fence-token", "", "fencing `token` of writes, empty for none; or "+envFenceToken)
	f.StringVar(&a.flags.authTokenFile, "auth-token-file", "", "`file` with the credential to present; or "+envAuthToken)
	f.StringVar(&a.flags.cacert, "cacert", "", "`file` with the certificates to trust (PEM)")
	f.StringVar(&a.flags.cert, "cert", "", "`file` with the certificate to present (PEM)")
	f.StringVar(&a.flags.key, "key", "", "`file` with its private key (PEM)")
	f.StringVarP(&a.flags.output, "output", "o", asTable, "table, json (as the server sent it) or raw (bytes of a value)")
	f.DurationVar(&a.flags.timeout, "timeout", 10*time.Second, "give up after this long, resends included")
	f.BoolVar(&a.flags.curl, "curl", false, "print the equal curl line on stderr, credentials masked")
	forms := cobra.FixedCompletions([]string{asTable, asJSON, asRaw}, cobra.ShellCompDirectiveNoFileComp)
	if err := root.RegisterFlagCompletionFunc("output", forms); err != nil {
		panic(err) // the flag is defined above
	}
	root.AddCommand(
		a.serveCommand(), a.devCommand(), a.drillCommand(), a.drillWorkerCommand(), a.benchCommand(),
		a.putCommand(), a.getCommand(), a.deleteCommand(), a.listCommand(), a.historyCommand(),
		a.acquireCommand(), a.renewCommand(), a.releaseCommand(), a.lockCommand(), a.locksCommand(),
		a.requestCommand(), a.decisionsCommand(), a.membersCommand(), a.statusCommand(), a.versionCommand(),
	)
	return root
}

// completeFlags takes from the environment what does not stand on the command
// line, and checks the whole.
func (a *app) completeFlags(cmd *cobra.Command) (err error) {
	f := &a.flags
	switch {
	case !slices.Contains([]string{asTable, asJSON, asRaw}, f.output):
		return fmt.Errorf("--output %q must be table, json or raw", f.output)
	case f.output == asRaw && cmd.Name() != "get":
		return errors.New("--output raw is the bytes of a value, so only get has it")
	case f.timeout <= 0:
		return fmt.Errorf("--timeout %s must be above zero", f.timeout)
	case (f.cert == "") != (f.key == ""):
		return errors.New("--cert and --key go together")
	}
	if f.endpoints, err = parseEndpoints(a.given(cmd, "addr", envAddr)); err != nil {
		return fmt.Errorf("--addr (or %s): %w", envAddr, err)
	}
	if f.token, err = parseToken(a.given(cmd, "fence-token", envFenceToken)); err != nil {
		return fmt.Errorf("--fence-token (or %s): %w", envFenceToken, err)
	}
	return nil
}

// parseToken reads a fencing token; empty is none, 0.
func parseToken(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	token, err := wire.ParseNumber(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q %w", text, err)
	case token == 0:
		return 0, errors.New("tokens begin at 1")
	}
	return token, nil
}

// env returns an environment variable, empty if it is not set.
func (a *app) env(name string) string {
	for _, pair := range slices.Backward(a.environ) {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

// given returns the value of a flag if it stands on the command line, if only
// as an empty one, and else that of its environment variable.
func (a *app) given(cmd *cobra.Command, flag, env string) string {
	f := cmd.Flag(flag)
	if value := a.env(env); value != "" && !f.Changed {
		return value
	}
	return f.Value.String()
}
