//go:build unix && !linux

package main

import "syscall"

// groupAttributes puts a command into a process group of its own.
func groupAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
