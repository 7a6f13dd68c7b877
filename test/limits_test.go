package test

import (
	"fmt"
	"go/ast"
	"slices"
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

// sleepRule bans waiting by guess from tests. In a bubble of testing/synctest
// time is simulated and a sleep is exact, so the function literal given to
// synctest.Test is free to. So are the files of bubbled, whose functions are
// only ever called in one.
func sleepRule() rule {
	bubbled := bubbledFiles()
	check := func(t tree) (found []string) {
		for _, f := range t.files {
			if !f.test() && f.room() != "test" || slices.Contains(bubbled, f.path) {
				continue
			}
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				if calls(call, "synctest", "Test") {
					return false
				}
				if calls(call, "time", "Sleep") {
					found = append(found, f.at(call)+": wait for a condition with a limit, not for a guess")
				}
				return true
			})
		}
		return found
	}
	return rule{
		name: "no sleep", check: check,
		bad: map[string]string{
			"fsm/a_test.go": `func f() { time.Sleep(1) }`,
			"test/x/a.go":   `func f() { time.Sleep(1) }`,
			"cluster/a_test.go": "func f() { synctest.Test(t, func(t *testing.T) { time.Sleep(1) })\n" +
				"time.Sleep(1) }",
		},
		good: map[string]string{
			"cluster/a_test.go": `func f() { synctest.Test(t, func(t *testing.T) { time.Sleep(1) }) }`,
			"cluster/a.go":      `func f() { time.Sleep(1) }`,
		},
	}
}

// bubbledFiles lists test files whose functions run inside a bubble although
// the call that opens it stands elsewhere.
func bubbledFiles() []string {
	return nil
}

func calls(call *ast.CallExpr, pkg, name string) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != name {
		return false
	}
	x, ok := selector.X.(*ast.Ident)
	return ok && x.Name == pkg
}
