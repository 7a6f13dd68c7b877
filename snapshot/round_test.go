package snapshot_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fencekv/fencekv/fsm"
	"github.com/fencekv/fencekv/snapshot"
)

func written(t testing.TB, s *fsm.State) []byte {
	t.Helper()
	var b bytes.Buffer
	info, err := snapshot.Write(&b, s)
	if err != nil {
		t.Fatal(err)
	}
	if info.Bytes != int64(b.Len()) || info.Revision != s.Revision() || info.Counts != s.Counts() {
		t.Fatalf("the writer says %+v of %d bytes, %+v", info, b.Len(), s.Counts())
	}
	return b.Bytes()
}

func difference(a, b *fsm.State) string {
	return cmp.Diff(partsOf(a), partsOf(b), cmpopts.EquateEmpty())
}

// TestRoundTrip: every field comes back, and equal states give equal files.
func TestRoundTrip(t *testing.T) {
	for name, state := range map[string]*fsm.State{"empty": fsm.New(), "everything": sample(t)} {
		t.Run(name, func(t *testing.T) {
			file := written(t, state)
			read, info, err := snapshot.Read(bytes.NewReader(file))
			if err != nil {
				t.Fatal(err)
			}
			if diff := difference(state, read); diff != "" {
				t.Errorf("written and read back (-written +read):\n%s", diff)
			}
			if again := written(t, read); !bytes.Equal(file, again) {
				t.Error("equal states gave different files")
			}
			verified, err := snapshot.Verify(bytes.NewReader(file))
			if err != nil || verified != info {
				t.Errorf("verify says %+v, %v; read says %+v", verified, err, info)
			}
		})
	}
}

// failing is a disk that is full after a number of bytes.
type failing struct{ left int }

var errFull = errors.New("no space")

func (f *failing) Write(b []byte) (int, error) {
	if len(b) > f.left {
		return f.left, errFull
	}
	f.left -= len(b)
	return len(b), nil
}

// TestWriterFails: a snapshot that could not be written whole is no success.
func TestWriterFails(t *testing.T) {
	state := sample(t)
	whole := len(written(t, state))
	for room := range whole {
		if _, err := snapshot.Write(&failing{room}, state); !errors.Is(err, errFull) {
			t.Fatalf("with room for %d of %d bytes: %v", room, whole, err)
		}
	}
}
