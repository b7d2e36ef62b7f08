package queenedge_test

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

const tenancyPath = module + "/tenancy"

// tenantState are the packages that keep state of many tenants.
var tenantState = []string{"edge", "edge/api", "edge/catalog", "edge/group", "edge/offsets", "edge/session", "edge/turn", "edge/txn", "proxyclient"}

// plainKeys are the string-keyed fields that are right, each with its reason.
// The name is dir.Type.field.
var plainKeys = map[string]string{}

// Scope, Key and Claim are made by their makers. Go lets anyone write an empty
// literal; this test does not. Tests may, to see the panic.
func checkTenantTypesAreNotForged(t reporter, files []*file) {
	forbidden := []string{"Scope", "Key", "Claim", "ID", "Credential"}
	for _, f := range product(files) {
		if f.dir == "tenancy" {
			continue
		}
		local := f.localName(tenancyPath)
		ast.Inspect(f.ast, func(n ast.Node) bool {
			name := ""
			switch n := n.(type) {
			case *ast.CompositeLit:
				name = tenancyType(n.Type, local)
			case *ast.CallExpr:
				if fun, ok := n.Fun.(*ast.Ident); ok && fun.Name == "new" && len(n.Args) == 1 {
					name = tenancyType(n.Args[0], local)
				}
			}
			if slices.Contains(forbidden, name) {
				t.Errorf("%s: tenancy.%s is made outside tenancy", f.at(n), name)
			}
			return true
		})
	}
}

// tenancyType is the name of a type of package tenancy, type arguments aside.
func tenancyType(e ast.Expr, local string) string {
	switch x := e.(type) {
	case *ast.IndexExpr:
		e = x.X
	case *ast.IndexListExpr:
		e = x.X
	}
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || local == "" {
		return ""
	}
	if x, ok := sel.X.(*ast.Ident); !ok || x.Name != local {
		return ""
	}
	return sel.Sel.Name
}

// State that outlives a request is keyed by a tenant. A map keyed by text in a
// struct of these packages is how one tenant comes to read another's.
func checkTenantStateIsKeyedByTenant(t reporter, files []*file) {
	used := map[string]bool{}
	for _, f := range product(files) {
		if !slices.Contains(tenantState, f.dir) {
			continue
		}
		for typeName, fields := range structs(f) {
			for _, field := range fields {
				key := textKeyed(f, field.Type)
				if key == "" {
					continue
				}
				for _, name := range fieldNames(field) {
					full := f.dir + "." + typeName + "." + name
					used[full] = true
					if plainKeys[full] == "" {
						t.Errorf("%s: %s is keyed by %s; key it by tenancy.Key", f.at(field), full, key)
					}
				}
			}
		}
	}
	for full := range plainKeys {
		if !used[full] {
			t.Errorf("the exception for %s is not needed any more", full)
		}
	}
}

// structs are the struct types of a file by name, with nested ones.
func structs(f *file) map[string][]*ast.Field {
	out := map[string][]*ast.Field{}
	for _, decl := range f.ast.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.TYPE {
			continue
		}
		for _, spec := range gen.Specs {
			spec := spec.(*ast.TypeSpec)
			ast.Inspect(spec.Type, func(n ast.Node) bool {
				if s, ok := n.(*ast.StructType); ok {
					out[spec.Name.Name] = append(out[spec.Name.Name], s.Fields.List...)
				}
				return true
			})
		}
	}
	return out
}

func fieldNames(field *ast.Field) []string {
	if len(field.Names) == 0 {
		return []string{"(embedded)"}
	}
	var names []string
	for _, n := range field.Names {
		names = append(names, n.Name)
	}
	return names
}

// textKeyed says by what a container type is keyed, where that is text or
// unknown: map[string], sync.Map, and the caches of others keyed by string.
func textKeyed(f *file, e ast.Expr) (key string) {
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncType, *ast.InterfaceType:
			return false // arguments are not state
		case *ast.MapType:
			if isText(n.Key) {
				key = "string"
			}
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "sync" && n.Sel.Name == "Map" {
				key = "anything (sync.Map)"
			}
		case *ast.IndexListExpr:
			if container(f, n.X) && isText(n.Indices[0]) {
				key = "string"
			}
		}
		return true
	})
	return key
}

// container: a generic type of another package whose first argument is its key.
// tenancy's own containers key by tenancy.Key whatever the argument.
func container(f *file, e ast.Expr) bool {
	if sel, ok := e.(*ast.SelectorExpr); ok {
		x, ok := sel.X.(*ast.Ident)
		if local := f.localName(tenancyPath); ok && x.Name == local {
			return sel.Sel.Name == "Flight" // keyed by what it is given
		}
		return ok
	}
	return false
}

func isText(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "string"
}

// A bearer leaves its Secret in one place: where it becomes a header. The doctor
// is a client, not a part of the gateway, and has one file where it becomes a
// password.
func checkSecretsAreRevealedInOnePlace(t reporter, files []*file) {
	for _, f := range product(files) {
		if f.dir == "tenancy" || f.dir == "proxyclient" || f.path == doctorDir+"/token.go" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "Reveal" {
				t.Errorf("%s: Reveal outside proxyclient", f.at(sel))
			}
			return true
		})
	}
}

// A tenant in a context can be absent at run time; a Scope argument cannot.
func checkContextCarriesNoValues(t reporter, files []*file) {
	for _, f := range product(files) {
		f.selects("context", func(sel *ast.SelectorExpr) {
			if sel.Sel.Name == "WithValue" {
				t.Errorf("%s: context.WithValue: pass it as an argument", f.at(sel))
			}
		})
	}
}

// Only the sealed hand-over between replicas may take a Scope apart.
func checkScopesCrossInOnePlace(t reporter, files []*file) {
	for _, f := range product(files) {
		if f.dir == "edge/peer" && path.Base(f.path) == "seal.go" {
			continue
		}
		f.selects(tenancyPath, func(sel *ast.SelectorExpr) {
			if strings.HasPrefix(sel.Sel.Name, "Export") || strings.HasPrefix(sel.Sel.Name, "Import") {
				t.Errorf("%s: tenancy.%s outside edge/peer/seal.go", f.at(sel), sel.Sel.Name)
			}
		})
	}
}
