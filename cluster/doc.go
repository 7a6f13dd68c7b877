// Package cluster runs one Raft node: it opens or forms a cluster, proposes
// commands, confirms reads, leads, and keeps what Raft stores honest. It is the
// only package that imports hashicorp/raft. DESIGN.md says what that library
// does to its users, and where each of it is met here.
package cluster
