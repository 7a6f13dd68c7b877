package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Goal: a flipped bit in the structure of a bbolt file is refused before bbolt can act on it, or changes no key.
// The tree has branches, leaves, an overflowing value and an inline bucket.
func TestBoltStructureDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	log, err := openBoltLog(path)
	if err != nil {
		t.Fatal(err)
	}
	store := log.store // an element for each entry
	big := testEntry(61, 1)
	big.Data = make([]byte, 20<<10)
	err = errors.Join(store.StoreLogs(testEntries(1, 60, 1)), store.StoreLog(big), store.DeleteRange(1, 30),
		store.Set([]byte("k"), []byte("v")), store.Close())
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()

	keys := func() (string, error) {
		var all strings.Builder
		err := verifyBolt(path, func(bucket string, key, _ []byte) error {
			fmt.Fprintf(&all, "%s %x\n", bucket, key)
			if bucket == boltLogBucket && len(key) != 8 {
				return ErrDamaged
			}
			return nil
		})
		return all.String(), err
	}
	want, err := keys()
	if err != nil || strings.Count(want, "\n") != 32 {
		t.Fatalf("sound file: %s, %v", want, err)
	}
	tree := &boltTree{file: file, seen: make(map[uint64]bool), visit: func(string, []byte, []byte) error { return nil }}
	if err := tree.verify(); err != nil {
		t.Fatal(err)
	}
	root, _, err := tree.readMetas()
	if err != nil {
		t.Fatal(err)
	}
	refused, tried, branches := 0, 0, 0
	for id := range tree.pages {
		page := make([]byte, tree.pageSize)
		if _, err := file.ReadAt(page, int64(id*tree.pageSize)); err != nil {
			t.Fatal(err)
		}
		size := boltHeader + boltElement*int(page[10])
		switch {
		case id < 2:
			size = boltHeader + boltMetaSize
		case !tree.seen[id] || uint64(page[0]) != id:
			continue // free, or an overflow page
		case id == root:
			size += len("conf") + 16 + boltHeader + boltElement // the inline bucket
		}
		branches += int(page[8] & boltBranchPage)
		for bit := range size * 8 {
			flipBitAt(t, file, int64(id*tree.pageSize), bit)
			got, err := keys()
			if err == nil && got != want || err != nil && !errors.Is(err, ErrDamaged) {
				t.Errorf("page %d bit %d: %v", id, bit, err)
			}
			if err != nil {
				refused++
			}
			tried++
			flipBitAt(t, file, int64(id*tree.pageSize), bit)
		}
	}
	// Unread are a meta page's own header, the sequence of a bucket and an element's padding.
	if refused < tried*8/10 || branches == 0 {
		t.Errorf("%d of %d flips were noticed, on %d branch pages", refused, tried, branches)
	}
}

func flipBitAt(t *testing.T, file *os.File, start int64, bit int) {
	t.Helper()
	var b [1]byte
	if _, err := file.ReadAt(b[:], start+int64(bit/8)); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 1 << (bit % 8)
	if _, err := file.WriteAt(b[:], start+int64(bit/8)); err != nil {
		t.Fatal(err)
	}
}
