package queenedge_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/queen-mq/queen-edge"

// file is one Go file of the product's module.
type file struct {
	path string // slash path from the root
	dir  string // slash path of its folder; "." for the root
	test bool
	ast  *ast.File
	fset *token.FileSet
	size int // lines
}

// TestTree reads the tree once and holds every rule against it.
func TestTree(t *testing.T) {
	files := tree(t)
	checks := []struct {
		name  string
		check func(reporter, []*file)
	}{
		{"Imports", checkImports},
		{"KafkaMessagesStayAtTheEdge", checkKafkaMessagesStayAtTheEdge},
		{"GatewayDoesNotKnowTheEmbeddedCell", checkGatewayDoesNotKnowTheEmbeddedCell},
		{"EnvironmentIsReadOnce", checkEnvironmentIsReadOnce},
		{"TenantTypesAreNotForged", checkTenantTypesAreNotForged},
		{"TenantStateIsKeyedByTenant", checkTenantStateIsKeyedByTenant},
		{"SecretsAreRevealedInOnePlace", checkSecretsAreRevealedInOnePlace},
		{"ContextCarriesNoValues", checkContextCarriesNoValues},
		{"ScopesCrossInOnePlace", checkScopesCrossInOnePlace},
		{"FileSizes", checkFileSizes},
		{"PackageComments", checkPackageComments},
		{"NoInit", checkNoInit},
		{"NoPackageState", checkNoPackageState},
		{"GoroutinesAreNamed", checkGoroutinesAreNamed},
		{"NoSleep", checkNoSleep},
	}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.check(t, files) })
	}
}

// reporter is the part of testing.T a check needs, so that checks can be checked.
type reporter interface {
	Errorf(format string, args ...any)
}

// tree parses every Go file of the module: no testdata, no hidden folders, no
// modules of their own.
func tree(t *testing.T) []*file {
	t.Helper()
	fset := token.NewFileSet()
	var files []*file
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipFolder(p, d.Name())
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		f, err := parse(fset, p, nil)
		files = append(files, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("no Go files found")
	}
	return files
}

// parse reads one file; source nil reads it from disk.
func parse(fset *token.FileSet, p string, source any) (*file, error) {
	parsed, err := parser.ParseFile(fset, p, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	p = filepath.ToSlash(p)
	return &file{
		path: p, dir: path.Dir(p), test: strings.HasSuffix(p, "_test.go"),
		ast: parsed, fset: fset, size: fset.File(parsed.Pos()).LineCount(),
	}, nil
}

func skipFolder(p, name string) error {
	if p == "." {
		return nil
	}
	if name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil {
		return filepath.SkipDir
	}
	return nil
}

// product is the part of the tree that ships.
func product(files []*file) []*file {
	return slices.DeleteFunc(slices.Clone(files), func(f *file) bool { return f.test || under(f.dir, "compat") })
}

// under reports whether dir is top or below it.
func under(dir, top string) bool { return dir == top || strings.HasPrefix(dir, top+"/") }

// at is the place of a node, for messages.
func (f *file) at(n ast.Node) string {
	p := f.fset.Position(n.Pos())
	return p.String()
}

// imports are the paths a file imports.
func (f *file) imports() []string {
	var out []string
	for _, spec := range f.ast.Imports {
		out = append(out, strings.Trim(spec.Path.Value, `"`))
	}
	return out
}

// localName is the name a file uses for an imported package, "" if it does not
// import it.
func (f *file) localName(importPath string) string {
	for _, spec := range f.ast.Imports {
		if strings.Trim(spec.Path.Value, `"`) != importPath {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(importPath)
	}
	return ""
}

// selects visits every pkg.Name of a file, where pkg is the file's name for
// importPath.
func (f *file) selects(importPath string, visit func(sel *ast.SelectorExpr)) {
	local := f.localName(importPath)
	if local == "" {
		return
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == local {
				visit(sel)
			}
		}
		return true
	})
}
