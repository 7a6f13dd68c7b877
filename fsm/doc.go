// Package fsm is the deterministic core of fencekv: an immutable State, the
// commands that change it, and the Decision each command gets.
//
//	next, decision := state.Apply(at, command)
//
// The package is pure. It does no I/O, reads no clock, starts no goroutine and
// draws no random number; whatever a decision depends on stands in the state or
// in the command. Every replica that applies the same commands in the same
// order therefore holds the same state, byte for byte, and gives the same
// answers. DESIGN.md says why each rule is as it is.
package fsm
