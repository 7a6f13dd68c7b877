package test

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// module is the path of this module, whose packages are "ours".
const module = "github.com/fencekv/fencekv"

// Bounds on what has to fit into one head.
const (
	maxFileLines     = 450
	maxFunctionLines = 80
)

// rule is one promise of the tree's shape. bad and good are its own test: files
// it must refuse, with one finding each, and files it must let pass. Files are
// named by path; words after a space tell apart examples of one path.
type rule struct {
	name  string
	check func(tree) []string // findings, each beginning with the file
	bad   map[string]string
	good  map[string]string
}

func rules() []rule {
	return []rule{
		roomsRule(), standardRule(), librariesRule(), pureRule(),
		initRule(), moduleRule(), fileRule(), functionRule(), sleepRule(),
	}
}

// arrows says which rooms of ours a room may import, beside its own. Tests may
// reach further: only what ships is bound.
func arrows() map[string][]string {
	return map[string][]string{
		"cmd":          {"fsm", "snapshot", "cluster", "httpapi", "httpapi/wire", "client"},
		"httpapi":      {"cluster", "fsm", "httpapi/wire"},
		"httpapi/wire": {},
		"cluster":      {"fsm", "snapshot"},
		"snapshot":     {"fsm"},
		"fsm":          {},
		"client":       {"httpapi/wire"},
		"examples":     {"client", "httpapi/wire"},
		"test":         {"fsm", "snapshot", "cluster", "httpapi", "httpapi/wire", "client"},
	}
}

func roomsRule() rule {
	check := func(t tree) (found []string) {
		for _, f := range t.files {
			allowed, known := arrows()[f.room()]
			if !known {
				found = append(found, f.path+": stands in no room of the table of arrows")
				continue
			}
			for _, imported := range f.imports {
				room, ours := roomOf(imported)
				if ours && !f.test() && room != f.room() && !slices.Contains(allowed, room) {
					found = append(found, fmt.Sprintf("%s: %s must not import %s", f.path, f.room(), room))
				}
			}
		}
		return found
	}
	return rule{
		name: "rooms", check: check,
		bad: map[string]string{
			"fsm/a.go":          `import _ "github.com/fencekv/fencekv/snapshot"`,
			"snapshot/a.go":     `import _ "github.com/fencekv/fencekv/cluster"`,
			"cluster/a.go":      `import _ "github.com/fencekv/fencekv/httpapi/wire"`,
			"httpapi/a.go":      `import _ "github.com/fencekv/fencekv/snapshot"`,
			"httpapi/wire/a.go": `import _ "github.com/fencekv/fencekv/fsm"`,
			"client/a.go":       `import _ "github.com/fencekv/fencekv/fsm"`,
			"client/b.go":       `import _ "github.com/fencekv/fencekv/httpapi"`,
			"common/a.go":       ``,
		},
		good: map[string]string{
			"fsm/a.go":        `import _ "github.com/fencekv/fencekv/fsm/codec"`,
			"fsm/a_test.go":   `import _ "github.com/fencekv/fencekv/snapshot"`,
			"cluster/a.go":    `import _ "github.com/fencekv/fencekv/snapshot"`,
			"httpapi/a.go":    `import _ "github.com/fencekv/fencekv/httpapi/wire"`,
			"client/x/a.go":   `import _ "github.com/fencekv/fencekv/client"`,
			"cmd/a/main.go":   `import _ "github.com/fencekv/fencekv/cluster"`,
			"snapshot/b.go":   `import _ "github.com/fencekv/fencekvtools/cluster"`,
			"test/x/a.go":     `import _ "github.com/fencekv/fencekv/httpapi/wire"`,
			"examples/a/b.go": `import _ "github.com/fencekv/fencekv/client"`,
		},
	}
}

// roomOf returns the room an import path of ours leads to.
func roomOf(imported string) (string, bool) {
	rest, ours := strings.CutPrefix(imported, module+"/")
	if !ours {
		return "", false
	}
	return file{path: rest + "/"}.room(), true
}

// standardRule keeps third parties out of the rooms that every replica's state
// and every user's binary depend on.
func standardRule() rule {
	bound := []string{"httpapi/wire/", "fsm/codec/"}
	check := func(t tree) (found []string) {
		for _, f := range t.files {
			if f.test() || !slices.ContainsFunc(bound, func(dir string) bool { return strings.HasPrefix(f.path, dir) }) {
				continue
			}
			for _, imported := range f.imports {
				if first, _, _ := strings.Cut(imported, "/"); strings.Contains(first, ".") {
					found = append(found, fmt.Sprintf("%s: only the standard library may be imported here, not %s", f.path, imported))
				}
			}
		}
		return found
	}
	return rule{
		name: "standard library only", check: check,
		bad: map[string]string{
			"httpapi/wire/a.go": `import _ "github.com/google/uuid"`,
			"fsm/codec/a.go":    `import _ "github.com/tidwall/btree"`,
		},
		good: map[string]string{
			"httpapi/wire/a.go":      `import _ "encoding/json"`,
			"httpapi/wire/a_test.go": `import _ "github.com/google/go-cmp/cmp"`,
			"fsm/a.go":               `import _ "github.com/tidwall/btree"`,
		},
	}
}

// librariesRule gives each library that shapes code around itself one room.
func librariesRule() rule {
	home := map[string]string{
		"github.com/hashicorp/raft": "cluster",
		"github.com/gorilla/mux":    "httpapi",
		"C":                         "no room: cgo is off",
	}
	check := func(t tree) (found []string) {
		for _, f := range t.files {
			for _, imported := range f.imports {
				for library, room := range home {
					exact := library != "github.com/hashicorp/raft" // raft-wal and raft-boltdb as well
					hit := imported == library || !exact && strings.HasPrefix(imported, library)
					if hit && f.room() != room {
						found = append(found, fmt.Sprintf("%s: %s belongs to %s", f.path, imported, room))
					}
				}
			}
		}
		return found
	}
	return rule{
		name: "libraries", check: check,
		bad: map[string]string{
			"httpapi/a.go":      `import _ "github.com/hashicorp/raft"`,
			"cmd/x/a.go":        `import _ "github.com/hashicorp/raft-wal"`,
			"test/a_test.go":    `import _ "github.com/hashicorp/raft-boltdb/v2"`,
			"client/a.go":       `import _ "github.com/gorilla/mux"`,
			"httpapi/wire/a.go": `import _ "github.com/gorilla/mux"`,
			"cluster/a.go":      `import "C"`,
		},
		good: map[string]string{
			"cluster/a.go": `import _ "github.com/hashicorp/raft-boltdb/v2"`,
			"httpapi/a.go": `import _ "github.com/gorilla/mux"`,
			"cmd/x/a.go":   `import _ "github.com/hashicorp/go-hclog"`,
		},
	}
}

// pureRule keeps the core a function of its input. Its tests may do as they like.
func pureRule() rule {
	banned := []string{"time", "math/rand", "crypto/rand", "os", "net", "sync", "github.com/hashicorp/raft", "github.com/hashicorp/go-hclog"}
	check := func(t tree) (found []string) {
		for _, f := range t.files {
			if f.room() != "fsm" || f.test() {
				continue
			}
			for _, imported := range f.imports {
				if slices.ContainsFunc(banned, func(b string) bool { return imported == b || strings.HasPrefix(imported, b+"/") }) {
					found = append(found, fmt.Sprintf("%s: the core must not know %s", f.path, imported))
				}
			}
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				if g, ok := n.(*ast.GoStmt); ok {
					found = append(found, f.at(g)+": the core starts no goroutine")
				}
				return true
			})
		}
		return found
	}
	return rule{
		name: "pure core", check: check,
		bad: map[string]string{
			"fsm/a.go time":      `import _ "time"`,
			"fsm/a.go rand":      `import _ "math/rand/v2"`,
			"fsm/a.go crypto":    `import _ "crypto/rand"`,
			"fsm/a.go os":        `import _ "os/signal"`,
			"fsm/a.go net":       `import _ "net/netip"`,
			"fsm/a.go sync":      `import _ "sync/atomic"`,
			"fsm/a.go raft":      `import _ "github.com/hashicorp/raft"`,
			"fsm/a.go log":       `import _ "github.com/hashicorp/go-hclog"`,
			"fsm/codec/a.go":     `import _ "time"`,
			"fsm/a.go goroutine": `func f() { go f() }`,
		},
		good: map[string]string{
			"fsm/a.go":      `import _ "crypto/sha256"`,
			"fsm/a_test.go": `import _ "time"`,
			"cluster/a.go":  `import _ "time"`,
		},
	}
}

func initRule() rule {
	check := func(t tree) (found []string) {
		for _, f := range t.files {
			for _, decl := range f.syntax.Decls {
				if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
					found = append(found, f.at(fn)+": nothing happens before main")
				}
			}
		}
		return found
	}
	return rule{
		name: "no init", check: check,
		bad:  map[string]string{"cmd/x/a.go": `func init() {}`, "fsm/a_test.go": `func init() {}`},
		good: map[string]string{"cluster/a.go": "type node struct{}\nfunc (node) init() {}"},
	}
}
