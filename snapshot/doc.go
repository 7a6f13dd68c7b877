// Package snapshot turns a State into bytes and back: the file Raft stores and
// sends to followers, and the body of a backup. Equal states give equal files;
// a file that is damaged in any way is refused before a State is made of it.
package snapshot
