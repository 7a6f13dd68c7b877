package fsm

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/tidwall/btree"
)

// recordMap finds request records by Record.Key. A million of them are looked
// through with each write, so the tree is ordered by a hash that stands in its
// nodes: comparing the keys themselves fetches each from memory. Two keys of one
// hash stand one after the other. Clients choose the keys, so the hash is one
// for which none of them can look for many that collide; the same on every node,
// it makes replicas equal in their cost too.
type recordMap struct {
	tree *btree.Map[uint64, *Record]
	hash func(key string) uint64
}

func newRecordMap(hash func(string) uint64) recordMap {
	return recordMap{tree: new(btree.Map[uint64, *Record]), hash: hash}
}

func hashRecordKey(key string) uint64 {
	var room [128]byte // most keys fit, and need no memory of their own
	sum := sha256.Sum256(append(room[:0], key...))
	return binary.BigEndian.Uint64(sum[:])
}

func (m recordMap) copy() recordMap { return recordMap{tree: m.tree.Copy(), hash: m.hash} }

func (m recordMap) len() int { return m.tree.Len() }

// find returns where the record of key stands, or where it would.
func (m recordMap) find(key string) (at uint64, r *Record) {
	for at = m.hash(key); ; at++ {
		r, found := m.tree.Get(at)
		if !found || r.Key == key {
			return at, r
		}
	}
}

func (m recordMap) get(key string) *Record {
	_, r := m.find(key)
	return r
}

func (m recordMap) set(r *Record) {
	at, _ := m.find(r.Key)
	m.tree.Set(at, r)
}

// remove closes the gap it leaves: a search ends at the first.
func (m recordMap) remove(key string) {
	at, r := m.find(key)
	if r == nil {
		return
	}
	m.tree.Delete(at)
	for {
		at++
		r, found := m.tree.Get(at)
		if !found {
			return
		}
		m.tree.Delete(at)
		m.set(r)
	}
}
