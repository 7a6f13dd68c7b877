package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// group is a command in a process group of its own.
type group struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when the command, not the whole group, has ended
}

// startGroup starts a command with env behind the program's own environment, so
// that it counts. If stdin is the terminal and this process has it, the command
// gets it: it could not read from it in the background.
func startGroup(a *app, path string, argv, env []string) (*group, error) {
	cmd := exec.Command(path, argv[1:]...)
	cmd.Args[0] = argv[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.stdin, a.stdout, a.stderr
	cmd.Env = slices.Concat(a.environ, env)
	cmd.SysProcAttr = groupAttributes()
	terminal, foreground := ownTerminal(a.stdin)
	if foreground {
		cmd.SysProcAttr.Foreground, cmd.SysProcAttr.Ctty = true, terminal
	}
	g := &group{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel ties the death signal of groupAttributes to this thread.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // its result is in cmd.ProcessState
		if foreground {
			takeTerminal(terminal)
		}
		close(g.ended)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start command: %w", err)
	}
	return g, nil
}

// exitCode returns the ended command's, in the way of shells for a signal.
func (g *group) exitCode() int {
	if status, ok := g.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitSignalBase + int(status.Signal())
	}
	return g.cmd.ProcessState.ExitCode()
}

// signal sends s to every process of the group. One that has gone needs none.
func (g *group) signal(s os.Signal) {
	if number, ok := s.(syscall.Signal); ok {
		_ = syscall.Kill(-g.cmd.Process.Pid, number)
	}
}

// alive reports whether a process of the group is left.
func (g *group) alive() bool {
	return !errors.Is(syscall.Kill(-g.cmd.Process.Pid, 0), syscall.ESRCH)
}

// ownTerminal returns stdin's terminal if this process is in its foreground.
func ownTerminal(stdin any) (fd int, ok bool) {
	f, isFile := stdin.(*os.File)
	if !isFile {
		return 0, false
	}
	fd = int(f.Fd())
	front, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
	return fd, err == nil && front == unix.Getpgrp()
}

// takeTerminal puts this process into the foreground again. The kernel would
// stop a process in the background for that if it did not ignore SIGTTOU.
func takeTerminal(fd int) {
	signal.Ignore(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(fd, unix.TIOCSPGRP, unix.Getpgrp())
	signal.Reset(syscall.SIGTTOU)
}
