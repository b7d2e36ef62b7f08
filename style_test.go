package queenedge_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// maxLines is the longest a product file may be before it needs splitting.
const maxLines = 600

// packageVars are package-level variables that are neither a sentinel, a table
// nor an assertion, each with the reason why it is not state. The name is
// dir.name.
var packageVars = map[string]string{
	"edge/batch.castagnoli":  "a table crc32 makes once",
	"proxyclient.pushBodies": "a pool of buffers: nothing is kept in it",
}

func checkFileSizes(t reporter, files []*file) {
	for _, f := range product(files) {
		if f.size > maxLines {
			t.Errorf("%s has %d lines; more than %d is more than one subject", f.path, f.size, maxLines)
		}
	}
}

// One package comment for each package, saying what it is.
func checkPackageComments(t reporter, files []*file) {
	comments := map[string][]string{}
	names := map[string]string{}
	for _, f := range files {
		if f.test {
			continue
		}
		names[f.dir] = f.ast.Name.Name
		if f.ast.Doc != nil && f.ast.Doc.Text() != "" {
			comments[f.dir] = append(comments[f.dir], f.path)
			want := "Package " + f.ast.Name.Name + " "
			if f.ast.Name.Name == "main" {
				want = "Command "
			}
			if !strings.HasPrefix(f.ast.Doc.Text(), want) {
				t.Errorf("%s: the package comment does not start with %q", f.path, want)
			}
		}
	}
	for dir := range names {
		if got := comments[dir]; len(got) != 1 {
			t.Errorf("%s has %d package comments %v, want one", dir, len(got), got)
		}
	}
}

// Nothing runs before main, so nothing depends on what was imported.
func checkNoInit(t reporter, files []*file) {
	for _, f := range files {
		for _, decl := range f.ast.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s: an init function", f.at(fn))
			}
		}
	}
}

// Package-level variables are sentinels (errors.New, fmt.Errorf), interface
// assertions, compiled expressions and tables that nobody writes to. Anything
// else is state that two gateways in one process would share.
func checkNoPackageState(t reporter, files []*file) {
	byDir := map[string][]*file{}
	for _, f := range product(files) {
		byDir[f.dir] = append(byDir[f.dir], f)
	}
	used := map[string]bool{}
	for dir, files := range byDir {
		vars := packageLevel(files)
		for name, v := range vars {
			full := dir + "." + name
			if packageVars[full] != "" {
				used[full] = true
				continue
			}
			if !constantValue(v.value) {
				t.Errorf("%s: package-level variable %s", v.file.at(v.ident), full)
			}
		}
		for _, f := range files {
			for _, w := range writes(f, vars) {
				t.Errorf("%s: the package-level table %s.%s is written to", f.at(w), dir, w.Name)
			}
		}
	}
	for full := range packageVars {
		dir := full[:strings.LastIndexByte(full, '.')]
		if !used[full] && byDir[dir] != nil {
			t.Errorf("the exception for %s is not needed any more", full)
		}
	}
}

type packageVar struct {
	file  *file
	ident *ast.Ident
	value ast.Expr
}

func packageLevel(files []*file) map[string]packageVar {
	out := map[string]packageVar{}
	for _, f := range files {
		for _, decl := range f.ast.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR {
				continue
			}
			for _, spec := range gen.Specs {
				spec := spec.(*ast.ValueSpec)
				for i, id := range spec.Names {
					if id.Name == "_" {
						continue
					}
					v := packageVar{file: f, ident: id}
					if i < len(spec.Values) {
						v.value = spec.Values[i]
					}
					out[id.Name] = v
				}
			}
		}
	}
	return out
}

// constantValue reports an initial value that stands for a constant Go cannot
// declare as one.
func constantValue(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.CompositeLit:
		return true // a table; writes are looked for
	case *ast.CallExpr:
		sel, ok := e.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		x, ok := sel.X.(*ast.Ident)
		return ok && slices.Contains([]string{"errors.New", "fmt.Errorf", "regexp.MustCompile"}, x.Name+"."+sel.Sel.Name)
	}
	return false
}

// writes finds assignments to package-level variables and to their elements,
// and addresses taken of them whole. Names that a function declares again are
// that function's own.
func writes(f *file, vars map[string]packageVar) []*ast.Ident {
	var found []*ast.Ident
	for _, decl := range f.ast.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		own := declared(fn)
		note := func(e ast.Expr) {
			id := root(e)
			if id != nil && !own[id.Name] {
				if _, ok := vars[id.Name]; ok {
					found = append(found, id)
				}
			}
		}
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					for _, e := range n.Lhs {
						note(e)
					}
				}
			case *ast.IncDecStmt:
				note(n.X)
			case *ast.UnaryExpr:
				if _, whole := n.X.(*ast.Ident); whole && n.Op == token.AND {
					note(n.X)
				}
			case *ast.CallExpr:
				if fun, ok := n.Fun.(*ast.Ident); ok && (fun.Name == "delete" || fun.Name == "clear") && len(n.Args) > 0 {
					note(n.Args[0])
				}
			}
			return true
		})
	}
	return found
}

// declared are the names a function declares anywhere in it. That is coarse:
// it may miss a write, and never invents one.
func declared(fn *ast.FuncDecl) map[string]bool {
	own := map[string]bool{}
	add := func(fields *ast.FieldList) {
		if fields == nil {
			return
		}
		for _, field := range fields.List {
			for _, id := range field.Names {
				own[id.Name] = true
			}
		}
	}
	add(fn.Recv)
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncType:
			add(n.Params)
			add(n.Results)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				for _, e := range n.Lhs {
					if id, ok := e.(*ast.Ident); ok {
						own[id.Name] = true
					}
				}
			}
		case *ast.RangeStmt:
			for _, e := range []ast.Expr{n.Key, n.Value} {
				if id, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE {
					own[id.Name] = true
				}
			}
		case *ast.ValueSpec:
			for _, id := range n.Names {
				own[id.Name] = true
			}
		}
		return true
	})
	return own
}

// root is the variable an expression is a part of.
func root(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.IndexExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// A goroutine is a named function, so that a stack dump reads as a story and
// somebody owns it.
func checkGoroutinesAreNamed(t reporter, files []*file) {
	for _, f := range product(files) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				if _, literal := g.Call.Fun.(*ast.FuncLit); literal {
					t.Errorf("%s: go func(): name it", f.at(g))
				}
			}
			return true
		})
	}
}

// Waiting by time is waiting too long or too short. Timers with a way out, and
// synctest's clock, are how time is waited for.
func checkNoSleep(t reporter, files []*file) {
	for _, f := range files {
		if f.test && f.localName("testing/synctest") != "" {
			continue
		}
		f.selects("time", func(sel *ast.SelectorExpr) {
			if sel.Sel.Name == "Sleep" {
				t.Errorf("%s: time.Sleep", f.at(sel))
			}
		})
	}
}
