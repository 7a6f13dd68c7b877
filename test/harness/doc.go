// Package harness runs clusters of real fencekv processes for tests: it builds
// the binary, starts nodes on free ports, kills, pauses and restarts them, puts
// a proxy that can cut or hold either direction in front of each, and speaks
// HTTP to them by hand. It knows the product from outside only: its command
// line and its HTTP surface.
//
// It needs Linux: a paused process is recognised by /proc, and a test that dies
// takes its processes along by PR_SET_PDEATHSIG.
package harness
