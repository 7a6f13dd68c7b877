package fsm

import (
	"cmp"
	"strings"

	"github.com/tidwall/btree"
)

// deadline is the end of a lease (request empty) or of a wait.
type deadline struct {
	atMs     int64
	resource string
	request  string
}

func deadlineBefore(a, b deadline) bool {
	return cmp.Or(cmp.Compare(a.atMs, b.atMs), strings.Compare(a.resource, b.resource), strings.Compare(a.request, b.request)) < 0
}

func waiterBefore(a, b *Waiter) bool {
	return cmp.Or(strings.Compare(a.Resource, b.Resource), cmp.Compare(a.Order, b.Order)) < 0
}

// The trees are read by many goroutines and changed by one on its own copy, so
// the locks of btree would guard nothing.
var treeOptions = btree.Options{NoLocks: true}

func newQueue() *btree.BTreeG[*Waiter] { return btree.NewBTreeGOptions(waiterBefore, treeOptions) }

func newDeadlines() *btree.BTreeG[deadline] {
	return btree.NewBTreeGOptions(deadlineBefore, treeOptions)
}
