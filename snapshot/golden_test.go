package snapshot_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/fencekv/fencekv/snapshot"
)

var update = flag.Bool("update", false, "write the golden file anew; only ever for a format no release has written")

// TestGolden: a file of format 1 reads as the state it was made of, and that
// state is still written with the same records. Compressed bytes may change with
// the library; what they hold may not.
func TestGolden(t *testing.T) {
	const path = "testdata/format1.fksnap"
	state := sample(t)
	if *update {
		if err := os.WriteFile(path, written(t, state), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	read, info, err := snapshot.Read(bytes.NewReader(golden))
	if err != nil {
		t.Fatal(err)
	}
	if info.Format != 1 {
		t.Errorf("the golden file is of format %d", info.Format)
	}
	if diff := difference(state, read); diff != "" {
		t.Errorf("the golden file holds another state (-sample +golden):\n%s", diff)
	}
	if !bytes.Equal(content(t, golden), content(t, written(t, state))) {
		t.Error("the records of format 1 have changed: that is a new format")
	}
}
