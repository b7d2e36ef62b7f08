package queenedge_test

import (
	"go/ast"
	"path"
	"slices"
	"strings"
	"testing"
)

// policy is what one package may import.
type policy struct {
	project []string // packages of this module; "x/..." is x and all below
	banned  []string // packages of others, with all below them
}

// The reasons of the bans. A name says more than a repeated list.
var (
	pure   = []string{"net", "os", "go.uber.org/zap", kmsgPath, prometheusPath}
	noWire = []string{kmsgPath, prometheusPath}
	noHTTP = []string{"net/http", kmsgPath, prometheusPath}
)

const (
	kmsgPath       = "github.com/twmb/franz-go/pkg/kmsg"
	prometheusPath = "github.com/prometheus"
)

// policies is who may import whom, from the bottom to the top. A package that
// is not here fails the test: put it where it belongs, and never widen a row to
// fix a build. Rows of packages to come are kept, so that they are born inside
// the rules.
var policies = map[string]policy{
	// Who a connection is: below everything, knows neither Kafka nor HTTP.
	"tenancy": {banned: []string{"net", "os", "go.uber.org/zap", kmsgPath}},

	// Leaves that decide and never do.
	"sasl":       {project: []string{"tenancy"}, banned: []string{"os", "go.uber.org/zap", "net/http", kmsgPath, prometheusPath}},
	"sni":        {banned: []string{"os", "go.uber.org/zap", "net/http", kmsgPath, prometheusPath}},
	"tlsconf":    {project: []string{"sni"}, banned: noHTTP},
	"edge/batch": {banned: pure},
	"edge/slab":  {banned: pure},
	"edge/trace": {banned: []string{kmsgPath, prometheusPath}},
	"edge/audit": {banned: []string{"net", kmsgPath, prometheusPath}},

	// What a topic may be told, and how it is kept.
	"edge/topicconf": {banned: pure},

	// The cell's contract, as a client.
	"proxyclient": {project: []string{"tenancy", "edge/batch", "edge/slab"}, banned: noWire},

	// The gateway, bottom to top.
	"edge/config":  {project: []string{"tenancy", "sasl", "sni"}, banned: noHTTP},
	"edge/wire":    {project: []string{"edge/slab"}, banned: []string{"net/http", "go.uber.org/zap"}},
	"edge/catalog": {project: []string{"tenancy", "proxyclient", "edge/topicconf"}, banned: noHTTP},
	"edge/cluster": {banned: pure},
	"edge/group":   {project: []string{"tenancy"}, banned: pure},
	"edge/session": {project: []string{"tenancy"}, banned: pure},
	"edge/brake":   {project: []string{"tenancy"}, banned: pure},
	"edge/offsets": {project: []string{"tenancy", "proxyclient"}, banned: noHTTP},
	"edge/turn":    {project: []string{"tenancy"}, banned: pure},
	"edge/txn":     {project: []string{"tenancy"}, banned: pure},
	"edge/peer":    {project: []string{"tenancy", "edge/wire"}, banned: noWire},
	"edge/api": {
		project: []string{
			"tenancy", "sasl", "sni", "proxyclient",
			"edge/batch", "edge/catalog", "edge/cluster", "edge/group", "edge/offsets", "edge/peer", "edge/session", "edge/slab", "edge/topicconf", "edge/txn", "edge/wire",
		},
		banned: []string{"net/http", "os"},
	},
	"edge": {project: []string{"tenancy", "sasl", "sni", "tlsconf", "proxyclient", "edge/..."}},

	// The embedded cell: the other side of the HTTP contract. It shares nothing
	// with the gateway, so that a misreading cannot cancel itself out.
	"internal/cell/spare":   {banned: pure},
	"internal/cell/store":   {banned: []string{"net", kmsgPath}},
	"internal/cell/broker":  {project: []string{"internal/cell/spare", "internal/cell/store"}, banned: []string{"net", kmsgPath}},
	"internal/cell/control": {banned: []string{"net/http", kmsgPath}},
	"internal/cell/proxy":   {project: []string{"internal/cell/broker", "internal/cell/control", "internal/cell/spare"}, banned: noWire},
	"internal/cell":         {project: []string{"internal/cell/..."}, banned: noWire},
	// Tests only: text files of commands, and what comes of them.
	scenarioDir: {banned: noHTTP},
	// Tests only: the contract as cases, over HTTP.
	contractDir: {project: []string{"internal/cell", "internal/cell/control"}, banned: noWire},

	// Wiring.
	"cmd/queen-edge": {project: []string{"tenancy", "sasl", "sni", "tlsconf", "proxyclient", "edge", "edge/...", "internal/cell", "internal/cell/...", "cmd/queen-edge/internal/steps", "cmd/queen-edge/internal/check", doctorDir}, banned: []string{kmsgPath}},
	// What looks for faults: from outside, as a client does, and from the
	// operator's side.
	"cmd/queen-edge/internal/steps": {banned: noHTTP},
	"cmd/queen-edge/internal/check": {project: []string{"tenancy", "sni", "tlsconf", "proxyclient", "edge/config", "cmd/queen-edge/internal/steps"}, banned: noWire},
	doctorDir:                       {project: []string{"tenancy", "sasl", "cmd/queen-edge/internal/steps"}, banned: []string{"net/http", "os", prometheusPath}},
}

// doctorDir holds a client: it speaks Kafka, and a token is its password.
const doctorDir = "cmd/queen-edge/internal/doctor"

// scenarioDir holds the player of scenario files.
const scenarioDir = "internal/scenario"

// contractDir holds the cell contract as a test suite.
const contractDir = "internal/cell/contract"

// cloudDir holds the proof of isolation.
const cloudDir = "compat/cloud"

// external are the places whose code stands outside the product and may use all
// of it.
var external = []string{".", "compat"}

func checkImports(t reporter, files []*file) {
	for _, f := range files {
		if slices.ContainsFunc(external, func(top string) bool { return f.dir == top || top != "." && under(f.dir, top) }) {
			continue
		}
		p, ok := policies[f.dir]
		if !ok {
			t.Errorf("%s: package %s is not in the import table (imports_test.go)", f.path, f.dir)
			continue
		}
		for _, imported := range f.imports() {
			if reason := p.refuses(f, imported); reason != "" {
				t.Errorf("%s imports %s: %s", f.path, imported, reason)
			}
		}
	}
}

// refuses says why a file may not import a package; "" if it may. Tests may use
// any library, but the direction inside the product binds them too. The
// embedded cell is the exception: it is what the gateway is tested against.
func (p policy) refuses(f *file, imported string) string {
	if own, ok := strings.CutPrefix(imported, module+"/"); ok {
		if own == f.dir || matches(own, p.project) {
			return ""
		}
		if f.test && own == scenarioDir {
			return ""
		}
		if f.test && (under(own, "internal/cell") || own == "tlsconf") && (under(f.dir, "edge") || f.dir == "proxyclient") {
			return ""
		}
		return "the table does not let " + f.dir + " see it"
	}
	if f.test {
		return ""
	}
	for _, banned := range p.banned {
		if under(imported, banned) && !allowedPure(banned, imported) {
			return "banned for this package"
		}
	}
	if under(imported, prometheusPath) && path.Base(f.path) != "metrics.go" {
		return "Prometheus is used in metrics.go files only"
	}
	return ""
}

// allowedPure: address arithmetic is not networking.
func allowedPure(banned, imported string) bool { return banned == "net" && imported == "net/netip" }

func matches(own string, patterns []string) bool {
	for _, pattern := range patterns {
		if top, ok := strings.CutSuffix(pattern, "/..."); ok && under(own, top) || own == pattern {
			return true
		}
	}
	return false
}

// Kafka's messages stay at the edge: what is below decides in plain types.
func checkKafkaMessagesStayAtTheEdge(t reporter, files []*file) {
	for _, f := range product(files) {
		if slices.Contains(f.imports(), kmsgPath) && !slices.Contains([]string{"edge", "edge/api", "edge/wire", doctorDir}, f.dir) {
			t.Errorf("%s imports kmsg", f.path)
		}
	}
}

// The embedded cell is reached over HTTP like any other. Were it linked into
// the gateway, the two could agree in ways a real cell does not know.
func checkGatewayDoesNotKnowTheEmbeddedCell(t reporter, files []*file) {
	for _, f := range product(files) {
		if !under(f.dir, "edge") && f.dir != "proxyclient" && f.dir != "tenancy" {
			continue
		}
		for _, imported := range f.imports() {
			if under(imported, module+"/internal/cell") || under(imported, module+"/cmd") {
				t.Errorf("%s imports %s", f.path, imported)
			}
		}
	}
}

// One reader of the environment. Tests may read QE_ variables, which choose
// what they run against; the contract's suite and the proof of isolation also
// read QUEEN_EDGE_ variables, as the demo writes them into its env file, to be
// run against any cell.
func checkEnvironmentIsReadOnce(t reporter, files []*file) {
	readers := []string{"Getenv", "LookupEnv", "Environ", "ExpandEnv"}
	for _, f := range files {
		if f.dir == "edge/config" {
			continue
		}
		visit := func(sel *ast.SelectorExpr) {
			if slices.Contains(readers, sel.Sel.Name) && !(f.test || under(f.dir, "compat")) {
				t.Errorf("%s: the environment is read outside edge/config", f.at(sel))
			}
		}
		f.selects("os", visit)
		f.selects("syscall", visit)
		if f.test || under(f.dir, "compat") {
			onlyOwnVariables(t, f)
		}
	}
}

func onlyOwnVariables(t reporter, f *file) {
	local := f.localName("os")
	ast.Inspect(f.ast, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 1 {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || (sel.Sel.Name != "Getenv" && sel.Sel.Name != "LookupEnv") {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); !ok || local == "" || x.Name != local {
			return true
		}
		name, ok := call.Args[0].(*ast.BasicLit)
		if ok && (f.dir == contractDir || f.dir == cloudDir) && strings.HasPrefix(name.Value, `"QUEEN_EDGE_`) {
			return true
		}
		if ok && !strings.HasPrefix(name.Value, `"QE_`) {
			t.Errorf("%s: a test reads %s; tests read QE_ variables only", f.at(call), name.Value)
		}
		return true
	})
}

// The table is what the documents say it is: rows do not point at folders that
// nobody planned.
func TestPoliciesNameKnownPackages(t *testing.T) {
	for dir, p := range policies {
		for _, pattern := range p.project {
			own := strings.TrimSuffix(pattern, "/...")
			if _, ok := policies[own]; !ok {
				t.Errorf("the row of %s lets it see %s, which has no row", dir, own)
			}
		}
	}
}
