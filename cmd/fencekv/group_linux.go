package main

import "syscall"

// groupAttributes puts a command into a process group of its own. It dies with
// this process, without which nobody would end it when the lease does.
func groupAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
