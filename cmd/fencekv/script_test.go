package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// patience bounds every wait for something that comes in moments on a machine
// with nothing else to do.
const patience = time.Minute

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"fencekv": main})
}

// TestScripts runs command lines as people type them, each script against a
// node of its own: a process of this binary.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			ports, err := freePorts(2)
			if err != nil {
				return err
			}
			n := &scriptNode{http: fmt.Sprintf("127.0.0.1:%d", ports[0]), raft: fmt.Sprintf("127.0.0.1:%d", ports[1]), dir: env.WorkDir}
			env.Values["node"] = n
			env.Setenv("NODE", "http://"+n.http)
			env.Setenv(envAddr, "http://"+n.http)
			env.Setenv("USER", "kim")
			env.Setenv("GORACE", "atexit_sleep_ms=10") // not a second for every command
			env.Defer(func() { n.signal(syscall.SIGKILL) })
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"node":  nodeScript,
			"exits": exitsScript,
			"until": untilScript,
		},
	})
}

// scriptNode is the node a script runs against.
type scriptNode struct {
	http, raft, dir string
	process         *os.Process // nil before the start
}

func (n *scriptNode) signal(s os.Signal) {
	if n.process != nil {
		_ = n.process.Signal(s)
	}
}

// nodeScript is "node start [FLAG...]", which returns when the node is ready, or
// "node kill", "node pause" and "node resume".
func nodeScript(ts *testscript.TestScript, _ bool, args []string) {
	n := ts.Value("node").(*scriptNode)
	switch args[0] {
	case "kill":
		n.signal(syscall.SIGKILL)
	case "pause":
		n.signal(syscall.SIGSTOP)
	case "resume":
		n.signal(syscall.SIGCONT)
	case "start":
		args := append([]string{"serve", "--data", "data", "--http", n.http, "--raft", n.raft, "--raft-rtt", "2ms"}, args[1:]...)
		ts.Check(n.start(args))
	default:
		ts.Fatalf("node %s?", args[0])
	}
}

func (n *scriptNode) start(args []string) error {
	log, err := os.OpenFile(filepath.Join(n.dir, "node.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command("fencekv", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = n.dir, log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	n.process = cmd.Process
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	client := &http.Client{Timeout: 2 * time.Second}
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if response, err := client.Get("http://" + n.http + "/readyz"); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case err := <-ended:
			text, _ := os.ReadFile(log.Name())
			return fmt.Errorf("the node ended: %v\n%s", err, text)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return errors.New("the node is not ready")
}

// exitsScript is "exits CODE PROGRAM [ARG...]".
func exitsScript(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		failed, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = failed.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// untilScript is "until FILE TEXT": it waits until the file holds the text, or
// anything at all where that is empty.
func untilScript(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	var content []byte
	for end := time.Now().Add(patience); time.Now().Before(end); {
		content, _ = os.ReadFile(path)
		if len(content) > 0 && strings.Contains(string(content), args[1]) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	ts.Fatalf("%s never held %q; it holds %q", args[0], args[1], content)
}
