package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
)

// process is one member of a cluster under measurement.
type process struct {
	name    string
	path    string // of the binary
	args    []string
	env     []string
	log     string // path of what it prints
	running *exec.Cmd
	ended   chan struct{}
}

func (p *process) start() error {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	p.running = exec.Command(p.path, p.args...)
	p.running.Stdout, p.running.Stderr = log, log
	p.running.Env = append(os.Environ(), p.env...)
	p.running.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.running.Start(); err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.ended = make(chan struct{})
	go func() {
		_ = p.running.Wait() // how it ended is in its log
		close(p.ended)
	}()
	return nil
}

// kill ends the process at once and waits until it is gone.
func (p *process) kill() {
	if p.running != nil {
		_ = p.running.Process.Kill()
		<-p.ended
	}
}

// trio is three members of one cluster on one directory.
type trio struct {
	label   string // of the store
	dir     string
	members []*process
}

func (t *trio) name() string          { return t.label }
func (t *trio) processes() []*process { return t.members }
func (t *trio) remove()               { _ = os.RemoveAll(t.dir) }

func (t *trio) stop() {
	for _, m := range t.members {
		m.kill()
	}
}

// startAll starts the members and waits until poke has written through one.
func (t *trio) startAll(poke func() error) error {
	for _, m := range t.members {
		if err := m.start(); err != nil {
			return err
		}
	}
	if err := await(2*time.Minute, poke); err != nil {
		return fmt.Errorf("%s: %w\n%s", t.label, err, newest(t.members[0].log))
	}
	return nil
}

// usage is what processes took from the machine.
type usage struct {
	cpu      time.Duration // since they started
	resident int           // bytes of memory now
}

func (u usage) since(before usage) usage {
	return usage{cpu: u.cpu - before.cpu, resident: u.resident - before.resident}
}

// usageOf sums up what processes have used. The kernel counts processor time in
// ticks of 10 ms.
func usageOf(all []*process) (sum usage, err error) {
	for _, p := range all {
		proc, err := procfs.NewProc(p.running.Process.Pid)
		if err != nil {
			return usage{}, err
		}
		stat, err := proc.Stat()
		if err != nil {
			return usage{}, err
		}
		sum.cpu += time.Duration(stat.CPUTime() * float64(time.Second))
		sum.resident += stat.ResidentMemory()
	}
	return sum, nil
}

// freeAddresses returns n loopback addresses nobody listens on.
func freeAddresses(n int) (found []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() // held until all are found: each is found once
		found = append(found, l.Addr().String())
	}
	return found, nil
}

// await tries until it works, for at most limit.
func await(limit time.Duration, try func() error) error {
	for end := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		err := try()
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("after %s: %w", limit, err)
		}
	}
}

// newest returns the end of a log, for an error that has to say why.
func newest(log string) string {
	text, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}

var errNoLeader = errors.New("no leader")

// scratch makes a fresh directory below root, on the disk that is measured.
func scratch(root, name string) (string, error) {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(root, name+"-")
	if err != nil {
		return "", err
	}
	return filepath.Abs(dir)
}
