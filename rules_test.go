package queenedge_test

import (
	"fmt"
	"go/token"
	"strings"
	"testing"
)

// A rule that never fires is a comment. Each of these sources breaks one rule
// (or, with no want, keeps it).
func TestRulesBite(t *testing.T) {
	const tenancyImport = `import "` + tenancyPath + `"; `
	tests := []struct {
		name   string
		check  func(reporter, []*file)
		path   string
		source string
		want   string
	}{
		{"unknown package", checkImports, "edge/new/a.go", `package p`, "not in the import table"},
		{"tenancy sees the gateway", checkImports, "tenancy/a.go", `package p; import "` + module + `/edge/wire"`, "does not let"},
		{"group sees kmsg", checkImports, "edge/group/a.go", `package p; import "` + kmsgPath + `"`, "banned"},
		{"group sees zap", checkImports, "edge/group/a.go", `package p; import "go.uber.org/zap"`, "banned"},
		{"txn sees net", checkImports, "edge/txn/a.go", `package p; import "net/http"`, "banned"},
		{"txn sees proxyclient", checkImports, "edge/txn/a.go", `package p; import "` + module + `/proxyclient"`, "does not let"},
		{"txn sees addresses", checkImports, "edge/txn/a.go", `package p; import "net/netip"`, ""},
		{"edge sees cmd", checkImports, "edge/a.go", `package p; import "` + module + `/cmd/queen-edge"`, "does not let"},
		{"edge tests on the embedded cell", checkImports, "edge/a_test.go", `package p; import "` + module + `/internal/cell"`, ""},
		{"the client's contract test", checkImports, "proxyclient/contract_test.go", `package p; import "` + module + `/internal/cell"`, ""},
		{"tenancy tests on the embedded cell", checkImports, "tenancy/a_test.go", `package p; import "` + module + `/internal/cell"`, "does not let"},
		{"a group's scenarios", checkImports, "edge/group/a_test.go", `package p; import "` + module + `/internal/scenario"`, ""},
		{"scenarios in the product", checkImports, "edge/group/a.go", `package p; import "` + module + `/internal/scenario"`, "does not let"},
		{"edge links the embedded cell", checkGatewayDoesNotKnowTheEmbeddedCell, "edge/a.go", `package p; import "` + module + `/internal/cell/proxy"`, "imports"},
		{"metrics outside metrics.go", checkImports, "edge/a.go", `package p; import "github.com/prometheus/client_golang/prometheus"`, "metrics.go files only"},
		{"metrics in metrics.go", checkImports, "edge/metrics.go", `package p; import "github.com/prometheus/client_golang/prometheus"`, ""},
		{"kmsg in the catalog", checkKafkaMessagesStayAtTheEdge, "edge/catalog/a.go", `package p; import "` + kmsgPath + `"`, "imports kmsg"},
		{"a second reader of the environment", checkEnvironmentIsReadOnce, "edge/a.go", `package p; import "os"; var _ = os.Getenv("X")`, "outside edge/config"},
		{"a renamed import of os", checkEnvironmentIsReadOnce, "edge/a.go", `package p; import o "os"; var _, _ = o.LookupEnv("X")`, "outside edge/config"},
		{"a test's own variable", checkEnvironmentIsReadOnce, "edge/a_test.go", `package p; import "os"; var _ = os.Getenv("QE_FULL")`, ""},
		{"a test that reads a setting", checkEnvironmentIsReadOnce, "edge/a_test.go", `package p; import "os"; var _ = os.Getenv("QUEEN_URL")`, "QE_"},
		{"the contract's suite and its cell", checkEnvironmentIsReadOnce, contractDir + "/a_test.go", `package p; import "os"; var _ = os.Getenv("QUEEN_EDGE_CELL_URL")`, ""},
		{"the proof of isolation and its cell", checkEnvironmentIsReadOnce, cloudDir + "/a_test.go", `package p; import "os"; var _ = os.Getenv("QUEEN_EDGE_CELL_URL")`, ""},
		{"another suite and a cell", checkEnvironmentIsReadOnce, "compat/e2e/a_test.go", `package p; import "os"; var _ = os.Getenv("QUEEN_EDGE_CELL_URL")`, "QE_"},
		{"the contract's suite and a setting", checkEnvironmentIsReadOnce, contractDir + "/a_test.go", `package p; import "os"; var _ = os.Getenv("QUEEN_URL")`, "QE_"},

		{"an empty Scope", checkTenantTypesAreNotForged, "edge/a.go", `package p; ` + tenancyImport + `var s = tenancy.Scope{}`, "tenancy.Scope"},
		{"a forged Key", checkTenantTypesAreNotForged, "edge/a.go", `package p; ` + tenancyImport + `var k = tenancy.Key[string]{}`, "tenancy.Key"},
		{"a new Claim", checkTenantTypesAreNotForged, "edge/a.go", `package p; ` + tenancyImport + `var c = new(tenancy.Claim)`, "tenancy.Claim"},
		{"other types", checkTenantTypesAreNotForged, "edge/a.go", `package p; ` + tenancyImport + `var c = tenancy.Map[string, int]{}`, ""},
		{"a map by name", checkTenantStateIsKeyedByTenant, "edge/api/a.go", `package p; type T struct { groups map[string]int }`, "edge/api.T.groups"},
		{"a nested map by name", checkTenantStateIsKeyedByTenant, "edge/api/a.go", `package p; type T struct { x struct { y []map[string]int } }`, "edge/api.T.x"},
		{"a sync.Map", checkTenantStateIsKeyedByTenant, "edge/a.go", `package p; import "sync"; type T struct { m sync.Map }`, "sync.Map"},
		{"a cache by name", checkTenantStateIsKeyedByTenant, "edge/a.go", `package p; import lru "x/lru"; type T struct { m *lru.Cache[string, int] }`, "edge.T.m"},
		{"a flight by name", checkTenantStateIsKeyedByTenant, "edge/a.go", `package p; ` + tenancyImport + `type T struct { f tenancy.Flight[string, int] }`, "edge.T.f"},
		{"a tenant's map", checkTenantStateIsKeyedByTenant, "edge/a.go", `package p; ` + tenancyImport + `type T struct { f tenancy.Map[string, int] }`, ""},
		{"a method's argument", checkTenantStateIsKeyedByTenant, "edge/a.go", `package p; type T interface { F(map[string]int) }`, ""},
		{"Reveal at the edge", checkSecretsAreRevealedInOnePlace, "edge/a.go", `package p; func f(s interface{ Reveal() string }) string { return s.Reveal() }`, "Reveal"},
		{"Reveal in the doctor", checkSecretsAreRevealedInOnePlace, doctorDir + "/login.go", `package p; func f(s interface{ Reveal() string }) string { return s.Reveal() }`, "Reveal"},
		{"Reveal where the doctor logs in", checkSecretsAreRevealedInOnePlace, doctorDir + "/token.go", `package p; func f(s interface{ Reveal() string }) string { return s.Reveal() }`, ""},
		{"a tenant in a context", checkContextCarriesNoValues, "edge/a.go", `package p; import "context"; var _ = context.WithValue(nil, 1, 2)`, "WithValue"},
		{"a Scope taken apart", checkScopesCrossInOnePlace, "edge/peer/a.go", `package p; ` + tenancyImport + `var _ = tenancy.Export`, "seal.go"},
		{"a Scope sealed", checkScopesCrossInOnePlace, "edge/peer/seal.go", `package p; ` + tenancyImport + `var _ = tenancy.Export`, ""},

		{"a long file", checkFileSizes, "edge/a.go", "package p\n" + strings.Repeat("\n", 600), "lines"},
		{"a file at the limit", checkFileSizes, "edge/a.go", "package p\n" + strings.Repeat("\n", 598), ""},
		{"no package comment", checkPackageComments, "edge/a.go", `package p`, "0 package comments"},
		{"another package's comment", checkPackageComments, "edge/a.go", "// Package q is.\npackage p", "does not start"},
		{"an init", checkNoInit, "edge/a.go", `package p; func init() {}`, "init"},
		{"a counter", checkNoPackageState, "edge/a.go", `package p; var n int`, "edge.n"},
		{"a made map", checkNoPackageState, "edge/a.go", `package p; var m = make(map[int]int)`, "edge.m"},
		{"a sentinel", checkNoPackageState, "edge/a.go", `package p; import "errors"; var e = errors.New("e")`, ""},
		{"a table", checkNoPackageState, "edge/a.go", `package p; var m = map[int]int{1: 2}; func f() int { return m[1] }`, ""},
		{"a table that is written", checkNoPackageState, "edge/a.go", `package p; var m = map[int]int{1: 2}; func f() { m[1] = 3 }`, "written to"},
		{"a table that shrinks", checkNoPackageState, "edge/a.go", `package p; var m = map[int]int{1: 2}; func f() { delete(m, 1) }`, "written to"},
		{"a field of a row", checkNoPackageState, "edge/a.go", `package p; var m = []struct{ n int }{{1}}; func f() { m[0].n++ }`, "written to"},
		{"a sentinel replaced", checkNoPackageState, "edge/a.go", `package p; import "errors"; var e = errors.New("e"); func f() { e = nil }`, "written to"},
		{"a local of that name", checkNoPackageState, "edge/a.go", `package p; var m = map[int]int{1: 2}; func f() { m := map[int]int{}; m[1] = 3 }`, ""},
		{"an unnamed goroutine", checkGoroutinesAreNamed, "edge/a.go", `package p; func f() { go func() {}() }`, "name it"},
		{"a named goroutine", checkGoroutinesAreNamed, "edge/a.go", `package p; func f() { go f() }`, ""},
		{"a sleep", checkNoSleep, "edge/a_test.go", `package p; import "time"; func f() { time.Sleep(1) }`, "time.Sleep"},
		{"a sleep on synctest's clock", checkNoSleep, "edge/a_test.go", `package p; import ("time"; "testing/synctest"); func f() { synctest.Wait(); time.Sleep(1) }`, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f, err := parse(token.NewFileSet(), test.path, test.source)
			if err != nil {
				t.Fatal(err)
			}
			var got findings
			test.check(&got, []*file{f})
			text := strings.Join(got, "\n")
			if test.want == "" && text != "" || !strings.Contains(text, test.want) {
				t.Errorf("found %q, want %q", text, test.want)
			}
		})
	}
}

type findings []string

func (f *findings) Errorf(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }
