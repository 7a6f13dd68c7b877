package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/fencekv/fencekv/httpapi/wire"
)

// tellLateWorker is story a: worker A, a real process, is stopped before it
// saves; its lease lapses; B takes over and saves; A is woken and saves.
func tellLateWorker(d *drill) error {
	key := d.key("report")
	a, err := startDrillWorker(d.ctx, d.cfg.Addrs, key)
	if err != nil {
		return err
	}
	defer a.stop()
	d.expect("A takes the lock", "granted", "granted", fmt.Sprintf("token %d, lease of 1 s", a.token))
	if err := a.freeze(d); err != nil {
		return err
	}
	b, err := d.acquire(key, "B", 30*time.Second, "issue")
	if err != nil {
		return err
	}
	d.expect("A is stopped (SIGSTOP); its lease lapses; B takes the lock", "token above A's",
		seenIf(b.Token > a.token, "token above A's", "token not above A's"), fmt.Sprintf("token %d", b.Token))
	saved, err := d.put(key, "B's report", token(b.Token))
	if err != nil {
		return err
	}
	d.expect("B saves", "201 applied", saved.verdict(), "revision "+saved.header.Get(wire.HeaderRevision))
	late, err := a.wake()
	if err != nil {
		return err
	}
	d.expect("A wakes (SIGCONT) and saves", "409 stale_owner, refused", late.Verdict, whoFenced(late.Problem))
	d.expect("maxToken is B's", fmt.Sprint(b.Token), fmt.Sprint(late.Problem.MaxToken), "")
	d.expect("the report", `"B's report" version 1`, d.value(key), "")
	return d.expectEvidence(key, a.token, b.Token)
}

// expectEvidence looks the refusal up in the evidence log.
func (d *drill) expectEvidence(key string, stale, current uint64) error {
	var log wire.Decisions
	r, err := d.call(http.MethodGet, "/v1/decisions?code=stale_owner&resource="+escape(key), nil, nil)
	if err != nil {
		return err
	}
	if err := r.decode(&log); err != nil {
		return err
	}
	seen, evidence := "nothing", ""
	for _, line := range log.Decisions {
		if line.Token == stale && line.MaxToken == current {
			seen = "the refusal"
			evidence = fmt.Sprintf("line %d at index %d: token %d < %d", line.Seq, line.Index, line.Token, line.MaxToken)
		}
	}
	d.expect("the evidence log has", "the refusal", seen, evidence)
	return nil
}

// whoFenced says who fenced a caller out, when and by what.
func whoFenced(p wire.Problem) string {
	e := p.EnforcedBy
	if e == nil {
		return p.Detail
	}
	return fmt.Sprintf("maxToken %d set by %s at %s (revision %d, request %s, cause %s)",
		e.Token, e.Holder, e.At, e.Revision, e.RequestID, e.Cause)
}

func seenIf(ok bool, yes, no string) string {
	if ok {
		return yes
	}
	return no
}

// tellModes is story b: B's token was issued, B has not written yet, A writes.
func tellModes(d *drill) error {
	for _, mode := range []struct{ fence, late, after string }{
		{"issue", "409 stale_owner, refused", "409 stale_owner, refused"},
		{"write", "200 applied", "409 stale_owner, refused"},
	} {
		key := d.key("mode-" + mode.fence)
		a, err := d.acquire(key, "A", time.Second, mode.fence)
		if err != nil {
			return err
		}
		if _, err := d.put(key, "A's first", token(a.Token)); err != nil {
			return err
		}
		b, err := d.acquire(key, "B", 30*time.Second, mode.fence)
		if err != nil {
			return err
		}
		late, err := d.put(key, "A's late", token(a.Token))
		if err != nil {
			return err
		}
		lock, err := d.lock(key)
		if err != nil {
			return err
		}
		d.expect("mode "+mode.fence+": B issued, not written; A writes", mode.late, late.verdict(),
			fmt.Sprintf("issued %d, maxToken %d", lock.Issued, lock.MaxToken))
		if _, err := d.put(key, "B's", token(b.Token)); err != nil {
			return err
		}
		after, err := d.put(key, "A's later still", token(a.Token))
		if err != nil {
			return err
		}
		d.expect("mode "+mode.fence+": B writes; A writes again", mode.after, after.verdict(), whoFenced(after.problem))
	}
	return nil
}

// drillWorker is worker A: this binary in another process.
type drillWorker struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Scanner
	token uint64
}

// lateAnswer is what the worker prints of the answer to its write.
type lateAnswer struct {
	Verdict string       `json:"verdict"`
	Problem wire.Problem `json:"problem"`
}

// workerCommand is the hidden command the worker process runs.
const workerCommand = "drill-worker"

func startDrillWorker(ctx context.Context, addrs []string, key string) (*drillWorker, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this binary: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, workerCommand, "--addr", strings.Join(addrs, ","), key)
	cmd.Stderr = os.Stderr
	w := &drillWorker{cmd: cmd}
	if w.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.out = bufio.NewScanner(stdout)
	w.out.Buffer(nil, 1<<20)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	if !w.out.Scan() {
		w.stop()
		return nil, fmt.Errorf("the worker got no lock")
	}
	w.token, err = wire.ParseNumber(w.out.Text())
	return w, err
}

// freeze stops the process between taking the lock and saving. What it waits
// for is already in its pipe when it wakes.
func (w *drillWorker) freeze(d *drill) error {
	if err := w.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop worker: %w", err)
	}
	if !d.until(10*time.Second, w.stopped) {
		return fmt.Errorf("the worker did not stop")
	}
	_, err := io.WriteString(w.stdin, "save\n")
	return err
}

// stopped reports whether the kernel shows the process as stopped; where /proc
// does not say, the signal is taken at its word.
func (w *drillWorker) stopped() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.cmd.Process.Pid))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "T")
}

func (w *drillWorker) wake() (lateAnswer, error) {
	var answer lateAnswer
	if err := w.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		return answer, fmt.Errorf("wake worker: %w", err)
	}
	if !w.out.Scan() {
		return answer, fmt.Errorf("the worker ended without an answer")
	}
	return answer, json.Unmarshal(w.out.Bytes(), &answer)
}

func (w *drillWorker) stop() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}

// runDrillWorker is the worker's life: take the lock, say the token, wait to be
// told to save, save, say what came back.
func runDrillWorker(ctx context.Context, addrs []string, key string, stdin io.Reader, stdout io.Writer) error {
	d := &drill{ctx: ctx, cfg: drillConfig{Addrs: addrs}, client: drillClient()}
	lease, err := d.acquire(key, "A", time.Second, "issue")
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, lease.Token)
	if !bufio.NewScanner(stdin).Scan() {
		return nil
	}
	r, err := d.put(key, "A's report", token(lease.Token))
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(lateAnswer{Verdict: r.verdict(), Problem: r.problem})
}
