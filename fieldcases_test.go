package queenedge_test

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The page of field cases names tests that exist, in each of its sections, and a
// row without a test says that it is not built yet.
func TestFieldCasesNameTests(t *testing.T) {
	text, err := os.ReadFile(filepath.FromSlash("docs/FIELD_CASES.md"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, f := range tree(t) {
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && f.test && fn.Recv == nil {
				known[fn.Name.Name] = true
			}
		}
	}
	name := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)`")
	section, rows := "", map[string]int{}
	for line := range strings.Lines(string(text)) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			section = title[:1]
		}
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| Case |") {
			continue
		}
		rows[section]++
		names := name.FindAllStringSubmatch(line, -1)
		if len(names) == 0 && !strings.Contains(line, "ot built yet") {
			t.Errorf("no test: %s", line)
		}
		for _, match := range names {
			if !known[match[1]] {
				t.Errorf("%s is nowhere: %s", match[1], line)
			}
		}
	}
	for _, section := range strings.Split("ABCDEFGH", "") {
		if rows[section] == 0 {
			t.Errorf("section %s has no case", section)
		}
	}
}
