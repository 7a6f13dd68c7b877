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

func (m recordMap) get(key string) *Record {
	for at := m.hash(key); ; at++ {
		r, found := m.tree.Get(at)
		if !found || r.Key == key {
			return r
		}
	}
}

// set and remove change first and look then, which is one search where nothing
// collides.
func (m recordMap) set(r *Record) { m.setAt(m.hash(r.Key), r) }

// setAt is set with the hash of the record's key.
func (m recordMap) setAt(at uint64, r *Record) {
	for ; ; at++ {
		other, found := m.tree.Set(at, r)
		if !found || other.Key == r.Key {
			return
		}
		m.tree.Set(at, other)
	}
}

// remove closes the gap it leaves: a search ends at the first.
func (m recordMap) remove(key string) {
	at := m.hash(key)
	for {
		other, found := m.tree.Delete(at)
		if !found {
			return
		}
		if other.Key == key {
			break
		}
		m.tree.Set(at, other)
		at++
	}
	for {
		at++
		r, found := m.tree.Delete(at)
		if !found {
			return
		}
		m.set(r)
	}
}
