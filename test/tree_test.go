package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// tree is the source under test: the module file and every Go file.
type tree struct {
	mod   string
	files []file
}

// file is one parsed Go file. Its path is relative to the module, with slashes.
type file struct {
	path    string
	lines   int
	set     *token.FileSet
	syntax  *ast.File
	imports []string
}

func (f file) test() bool { return strings.HasSuffix(f.path, "_test.go") }

// at says where a node stands, as file:line.
func (f file) at(node ast.Node) string {
	return f.path + ":" + strconv.Itoa(f.set.Position(node.Pos()).Line)
}

// room returns the room a file stands in. wire has one of its own inside
// httpapi: clients share it.
func (f file) room() string {
	if strings.HasPrefix(f.path, "httpapi/wire/") {
		return "httpapi/wire"
	}
	room, _, _ := strings.Cut(f.path, "/")
	return room
}

// readTree parses every Go file under root, but for testdata, hidden folders and
// modules inside the module: those depend on it, and it never on them.
func readTree(t *testing.T, root string) tree {
	t.Helper()
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	found := tree{mod: string(mod)}
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() && name != root && (strings.HasPrefix(base, ".") || base == "testdata" || base == "bin") {
			return fs.SkipDir
		}
		if entry.IsDir() && name != root {
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
				return fs.SkipDir
			}
		}
		if entry.IsDir() || path.Ext(base) != ".go" {
			return nil
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		found.files = append(found.files, parse(t, filepath.ToSlash(relative), string(source)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func parse(t *testing.T, name, source string) file {
	t.Helper()
	f := file{path: name, lines: strings.Count(source, "\n"), set: token.NewFileSet()}
	syntax, err := parser.ParseFile(f.set, name, source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	f.syntax = syntax
	for _, spec := range syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		f.imports = append(f.imports, imported)
	}
	return f
}

// plant makes a tree of one example. A Go example without a package clause gets
// one; the name may carry words after a space to tell examples of one file apart.
func plant(t *testing.T, name, source string) tree {
	t.Helper()
	name = filePart(name)
	if name == "go.mod" {
		return tree{mod: source}
	}
	return tree{files: []file{parse(t, name, "package planted\n"+source)}}
}
