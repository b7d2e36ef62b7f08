package queenedge_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// documents are the texts people read.
func documents(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[path] = string(text)
		}
	}
	if len(texts) < 5 {
		t.Fatalf("found %d documents", len(texts))
	}
	return texts
}

// A link that leads nowhere is worse than none.
func TestDocumentLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#]+)`)
	for path, text := range documents(t) {
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			target := match[1]
			if strings.Contains(target, "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), target)); err != nil {
				t.Errorf("%s links to %s: %v", path, target, err)
			}
		}
	}
}

// A document that names a variable names one the program knows: the page of
// settings is made from the table that is read, and the demo writes its own into
// the env file.
func TestDocumentsNameRealSettings(t *testing.T) {
	name := regexp.MustCompile(`QUEEN_[A-Z0-9_]*[A-Z0-9]`)
	texts := documents(t)
	known := map[string]bool{}
	for _, n := range name.FindAllString(texts[filepath.FromSlash("docs/CONFIGURATION.md")], -1) {
		known[n] = true
	}
	demo, err := os.ReadFile(filepath.FromSlash("cmd/queen-edge/demo_tokens.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range regexp.MustCompile(`line\("(QUEEN_EDGE_[A-Z_]+)",|\{label: "([A-Z0-9_]+)"`).FindAllStringSubmatch(string(demo), -1) {
		known[match[1]], known["QUEEN_EDGE_TOKEN_"+match[2]] = true, true
	}
	for path, text := range texts {
		for _, n := range name.FindAllString(text, -1) {
			if !known[n] {
				t.Errorf("%s names %s, which no version knows", path, n)
			}
		}
	}
}

// Folders and test names that the documents point at exist.
func TestDocumentsNameRealFiles(t *testing.T) {
	quoted := regexp.MustCompile("`((?:cmd|docs|edge|internal|proxyclient|sasl|sni|tenancy|tlsconf|\\.ci)(?:/[A-Za-z_./-]*)?|[a-z_]+_test\\.go)`")
	for path, text := range documents(t) {
		for _, match := range quoted.FindAllStringSubmatch(text, -1) {
			name := strings.TrimSuffix(match[1], "/")
			if strings.Contains(name, "NN_") {
				continue // a pattern
			}
			if _, err := os.Stat(name); err != nil {
				t.Errorf("%s names %s: %v", path, name, err)
			}
		}
	}
}
