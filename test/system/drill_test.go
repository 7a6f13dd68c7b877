//go:build linux

package system

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/fencekv/fencekv/test/harness"
)

var drillKills = flag.Int("drill.kills", 3, "how often the drill kills a leader under load; the drill itself does it 20 times")

// TestDrill runs what an operator runs. Goal: each of the eight stories is told
// and every row of it passes.
func TestDrill(t *testing.T) {
	c := harness.Start(t, 3)
	var addrs []string
	for _, n := range c.Nodes {
		addrs = append(addrs, n.URL)
	}
	drill := exec.Command(os.Getenv(harness.BinaryVariable), "drill",
		"--addr", strings.Join(addrs, ","), "--kills", strconv.Itoa(*drillKills), "-o", "json")
	var stderr bytes.Buffer
	drill.Stderr = &stderr
	out, err := drill.Output()
	if err != nil {
		t.Errorf("drill: %v\n%s", err, stderr.String())
	}
	rows := map[string]int{}
	decoder := json.NewDecoder(bytes.NewReader(out))
	for decoder.More() {
		var row struct {
			Story, Step, Expected, Seen, Evidence string
			Passed                                bool
		}
		if err := decoder.Decode(&row); err != nil {
			t.Fatalf("row: %v\n%s", err, out)
		}
		rows[row.Story[:1]]++
		if !row.Passed || row.Expected != row.Seen {
			t.Errorf("%s: %s: expected %s, seen %s (%s)", row.Story, row.Step, row.Expected, row.Seen, row.Evidence)
		}
	}
	for _, story := range strings.Split("abcdefgh", "") {
		if rows[story] < 3 {
			t.Errorf("story %s has %d rows: too few to have been told", story, rows[story])
		}
	}
}
