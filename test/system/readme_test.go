//go:build linux

package system

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/fencekv/fencekv/test/harness"
)

// volatile is what differs from run to run in the output the README shows.
var volatile = regexp.MustCompile(`"(leaseId|requestId|fingerprint|at|node)":"[^"]*"|"(clockMs|remainingMs|index)":\d+`)

// TestReadme pastes the README's commands into a shell, block by block. Goal:
// each prints what the README says.
func TestReadme(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Fatal("the README's story needs curl")
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	c := harness.Start(t, 3)
	addresses := strings.NewReplacer(
		"localhost:8700", c.Nodes[0].URL, "localhost:8710", c.Nodes[1].URL, "localhost:8720", c.Nodes[2].URL)
	blocks := regexp.MustCompile("(?s)```(\\w*)\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	var printed string
	told := 0
	for _, block := range blocks {
		language, text := block[1], block[2]
		if language == "sh" {
			out, err := exec.Command("bash", "-c", addresses.Replace(text)).CombinedOutput()
			if err != nil {
				t.Fatalf("%s\n%v\n%s", text, err, out)
			}
			printed = string(out)
			continue
		}
		told++
		if got, want := mask(printed), mask(text); got != want {
			t.Errorf("the README shows\n%s\nand its commands print\n%s", want, got)
		}
	}
	if told < 4 {
		t.Errorf("found only %d outputs in the README", told)
	}
}

// mask also forgets line breaks: curl prints none after a value.
func mask(out string) string {
	return strings.ReplaceAll(volatile.ReplaceAllString(out, `"$1$2":…`), "\n", "")
}
