package fsm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestRecordMap: whatever collides, each record is found under its own key, none
// under another's, and a copy does not see what becomes of the original.
func TestRecordMap(t *testing.T) {
	hashes := map[string]func(string) uint64{
		"sound":   hashRecordKey,
		"weak":    func(key string) uint64 { return hashRecordKey(key) % 5 },
		"at end":  func(key string) uint64 { return math.MaxUint64 - hashRecordKey(key)%2 },
		"useless": func(string) uint64 { return 7 },
	}
	for name, hash := range hashes {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			m, want := newRecordMap(hash), map[string]*Record{}
			check := func(m recordMap, want map[string]*Record) {
				t.Helper()
				if m.len() != len(want) {
					t.Fatalf("%d records, want %d", m.len(), len(want))
				}
				for i := range 40 {
					if key := fmt.Sprint(i); m.get(key) != want[key] {
						t.Fatalf("under %q stands %v, want %v", key, m.get(key), want[key])
					}
				}
			}
			for range 2_000 {
				key := fmt.Sprint(rng.IntN(40))
				before, kept := m.copy(), map[string]*Record{}
				for k, r := range want {
					kept[k] = r
				}
				if rng.IntN(2) == 0 {
					r := &Record{Key: key}
					m.set(r)
					want[key] = r
				} else {
					m.remove(key)
					delete(want, key)
				}
				check(m, want)
				check(before, kept)
			}
		})
	}
}
