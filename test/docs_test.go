package test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/fencekv/fencekv/httpapi/wire"
)

// TestReferenceOfCodes holds docs/http.md to the one table of codes: every code
// with its status and exit code, and none that does not exist.
func TestReferenceOfCodes(t *testing.T) {
	page, err := os.ReadFile("../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "\n## Codes\n")
	if !found {
		t.Fatal("docs/http.md has no section of codes")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	rows := 0
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "| `") {
			rows++
		}
	}
	for _, info := range wire.Codes() {
		if row := fmt.Sprintf("\n| `%s` | %d | %d | ", info.Code, info.Status, info.Exit); !strings.Contains(table, row) {
			t.Errorf("docs/http.md lacks the row%s…", row)
		}
	}
	if rows != len(wire.Codes()) {
		t.Errorf("docs/http.md lists %d codes, there are %d", rows, len(wire.Codes()))
	}
}

// TestLinks follows the links between the pages of the tree.
func TestLinks(t *testing.T) {
	for _, page := range []string{"README.md", "docs/concepts.md", "docs/http.md", "docs/cli.md", "docs/operations.md"} {
		text, err := os.ReadFile("../" + page)
		if err != nil {
			t.Fatal(err)
		}
		dir := "../" + page[:strings.LastIndex(page, "/")+1]
		for _, part := range strings.Split(string(text), "](")[1:] {
			target, _, _ := strings.Cut(part, ")")
			file, _, _ := strings.Cut(target, "#")
			if strings.Contains(file, "://") || file == "" {
				continue
			}
			if _, err := os.Stat(dir + file); err != nil {
				t.Errorf("%s links to %s, which is not there", page, target)
			}
		}
	}
}
