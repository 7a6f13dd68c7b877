package test

import (
	"strings"
	"testing"
)

// TestArrows holds the whole tree to the rules of its shape: which room may
// know which, what the core must not touch, what nobody may do.
func TestArrows(t *testing.T) {
	tree := readTree(t, "..")
	if len(tree.files) == 0 {
		t.Fatal("found no Go file")
	}
	for _, rule := range rules() {
		t.Run(rule.name, func(t *testing.T) {
			for _, found := range rule.check(tree) {
				t.Error(found)
			}
		})
	}
}

// TestArrowsCatch plants what each rule is there to find, beside the nearest
// thing that is allowed, and sees exactly the first reported: a rule that finds
// nothing is no rule.
func TestArrowsCatch(t *testing.T) {
	for _, rule := range rules() {
		t.Run(rule.name, func(t *testing.T) {
			if len(rule.bad) == 0 || len(rule.good) == 0 {
				t.Fatal("the rule has no example of what it refuses, or of what it allows")
			}
			for name, source := range rule.good {
				if found := rule.check(plant(t, name, source)); len(found) > 0 {
					t.Errorf("refuses what is allowed in %s: %q", name, found)
				}
			}
			for name, source := range rule.bad {
				found := rule.check(plant(t, name, source))
				if len(found) != 1 || !strings.HasPrefix(found[0], filePart(name)) {
					t.Errorf("want one finding in %s, got %q", name, found)
				}
			}
		})
	}
}

// filePart cuts the words after a space from the name of an example: several
// examples may be of the same file.
func filePart(name string) string {
	file, _, _ := strings.Cut(name, " ")
	return file
}
