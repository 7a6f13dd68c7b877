package test

import (
	"fmt"
	"go/ast"
	"strings"
)

// moduleRule keeps `go install …/cmd/fencekv@version` working: the go command
// refuses a main module with directives that only count in the main module.
func moduleRule() rule {
	check := func(t tree) (found []string) {
		block := ""
		for i, line := range strings.Split(t.mod, "\n") {
			line, _, _ = strings.Cut(line, "//")
			words := strings.Fields(line)
			if len(words) == 0 {
				continue
			}
			directive := words[0]
			switch {
			case directive == ")":
				block = ""
				continue
			case block != "":
				continue
			case words[len(words)-1] == "(":
				block = directive
			}
			if directive == "replace" || directive == "exclude" {
				found = append(found, fmt.Sprintf("go.mod:%d: %s makes the module impossible to install by name", i+1, directive))
			}
		}
		return found
	}
	return rule{
		name: "module file", check: check,
		bad: map[string]string{
			"go.mod line":    "module a\nreplace b => ../b\n",
			"go.mod block":   "module a\nexclude (\n\tb v1.0.0\n\tc v1.0.0\n)\n",
			"go.mod comment": "module a\nreplace b => ../b // for now\n",
		},
		good: map[string]string{"go.mod": "module a // replace\n\nrequire (\n\treplace v1.0.0\n)\n"},
	}
}

func fileRule() rule {
	check := func(t tree) (found []string) {
		for _, f := range t.files {
			if f.lines > maxFileLines && !f.test() {
				found = append(found, fmt.Sprintf("%s: %d lines are more than one idea; the bound is %d", f.path, f.lines, maxFileLines))
			}
		}
		return found
	}
	return rule{
		name: "file length", check: check,
		bad: map[string]string{"fsm/a.go": strings.Repeat("\n", maxFileLines)},
		good: map[string]string{
			"fsm/a.go":      strings.Repeat("\n", maxFileLines-1),
			"fsm/a_test.go": strings.Repeat("\n", maxFileLines),
		},
	}
}

func functionRule() rule {
	check := func(t tree) (found []string) {
		for _, f := range t.files {
			for _, decl := range f.syntax.Decls {
				fn, ok := decl.(*ast.FuncDecl)
				if !ok {
					continue
				}
				lines := f.set.Position(fn.End()).Line - f.set.Position(fn.Pos()).Line + 1
				if lines > maxFunctionLines {
					found = append(found, fmt.Sprintf("%s: %s has %d lines; the bound is %d", f.at(fn), fn.Name.Name, lines, maxFunctionLines))
				}
			}
		}
		return found
	}
	function := func(lines int) string { return "func f() {" + strings.Repeat("\n", lines-1) + "}" }
	return rule{
		name: "function length", check: check,
		bad: map[string]string{
			"fsm/a.go":      function(maxFunctionLines + 1),
			"fsm/a_test.go": function(maxFunctionLines + 1),
		},
		good: map[string]string{"fsm/a.go": function(maxFunctionLines)},
	}
}

// sleepRule bans waiting by guess from tests. A sleep between two looks at a
// condition, at the end of each turn of its loop, is no guess. Nor is one in a
// bubble of testing/synctest, where time is simulated and exact: in the function
// literal given to synctest.Test, or in a file of bubbled.
func sleepRule() rule {
	check := func(t tree) (found []string) {
		for _, f := range t.files {
			if !f.test() && f.room() != "test" || bubbled()[f.path] != "" {
				continue
			}
			for _, call := range sleeps(f.syntax) {
				found = append(found, f.at(call)+": wait for a condition with a limit, not for a guess")
			}
		}
		return found
	}
	return rule{
		name: "no sleep", check: check,
		bad: map[string]string{
			"fsm/a_test.go":         `func f() { time.Sleep(1) }`,
			"test/x/a.go":           `func f() { time.Sleep(1) }`,
			"fsm/a_test.go first":   `func f() { for !met() { time.Sleep(1); look() } }`,
			"fsm/a_test.go forever": `func f() { for ; ; time.Sleep(1) {} }`,
			"cluster/a_test.go": "func f() { synctest.Test(t, func(t *testing.T) { time.Sleep(1) })\n" +
				"time.Sleep(1) }",
		},
		good: map[string]string{
			"cluster/a_test.go":   `func f() { synctest.Test(t, func(t *testing.T) { time.Sleep(1) }) }`,
			"cluster/c_test.go":   `func f() { for !met() { look(); time.Sleep(1) } }`,
			"cluster/b_test.go":   `func f() { for ; !met(); time.Sleep(1) {} }`,
			"cluster/sim_test.go": `func f() { time.Sleep(1) }`,
			"cluster/a.go":        `func f() { time.Sleep(1) }`,
		},
	}
}

// sleeps returns the calls of time.Sleep that wait by guess.
func sleeps(syntax *ast.File) (found []*ast.CallExpr) {
	polls := map[ast.Node]bool{}
	ast.Inspect(syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ForStmt:
			turn := append([]ast.Stmt{n.Post}, n.Body.List...)
			for _, end := range []ast.Stmt{turn[0], turn[len(turn)-1]} {
				if sleep, ok := end.(*ast.ExprStmt); ok && n.Cond != nil {
					polls[sleep.X] = true
				}
			}
		case *ast.CallExpr:
			if calls(n, "synctest", "Test") {
				return false
			}
			if calls(n, "time", "Sleep") && !polls[n] {
				found = append(found, n)
			}
		}
		return true
	})
	return found
}

// bubbled lists the test files whose functions run inside a bubble although the
// call that opens it stands elsewhere, and says where.
func bubbled() map[string]string {
	return map[string]string{
		"cluster/sim_test.go":      "all below simulate, which TestSimulation runs in a bubble per seed",
		"cluster/simnet_test.go":   "the network of that simulation",
		"cluster/simstory_test.go": "the stories that tell runs in bubbles",
	}
}

func calls(call *ast.CallExpr, pkg, name string) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != name {
		return false
	}
	x, ok := selector.X.(*ast.Ident)
	return ok && x.Name == pkg
}
