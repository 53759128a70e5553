package compax

// Each rule of arch_test.go, broken on purpose: the check must name the fault.

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// sound is a small graph that keeps every rule: a client, a server, a store
// and the engine, with the standard library in outline.
func sound() graph {
	own := func(imports ...string) pkg { return pkg{own: true, imports: imports} }
	return graph{
		"fmt": {}, "testing": {}, "net": {}, "os/exec": {}, "database/sql": {},
		"net/http":               {imports: []string{"net"}},
		"modernc.org/sqlite":     {module: "modernc.org/sqlite", imports: []string{"database/sql"}},
		"example.org/left":       {module: "example.org/left"},
		".":                      own(),
		"internal/testdata":      own("testing"),
		"internal/strict25519":   own("fmt"),
		"mls/wire":               own("fmt"),
		"mls/suite":              own("mls/wire"),
		"mls/suite/curve448":     own("mls/suite"),
		"mls/tree":               own("mls/suite"),
		"mls/follower":           own("mls/tree"),
		"mls":                    own("mls/follower"),
		"identity":               own("internal/strict25519"),
		"identity/phrase":        own("identity"),
		"content":                own("identity"),
		"delivery":               own("identity"),
		"delivery/client":        own("delivery"),
		"delivery/client/native": own("delivery/client", "net/http"),
		"delivery/server":        own("delivery", "mls/follower", "net/http"),
		"store/sqlite":           own("delivery", "modernc.org/sqlite"),
		"store/storetest":        own("delivery", "testing"),
		"sdk":                    own("mls", "content", "delivery/client"),
		"node":                   own("delivery/server", "store/sqlite", "sdk"),
		"cmd/compax":             own("node", "sdk"),
		"interop/openmls":        own("mls", "mlstest"),
		"mlstest":                own("mls", "internal/testdata"),
	}
}

func TestASoundGraphPasses(t *testing.T) {
	if got := parseRules(t, mayImport, outside).check(sound()); len(got) > 0 {
		t.Errorf("the sound graph is refused:\n%s", strings.Join(got, "\n"))
	}
}

func TestPlantedViolationsAreFound(t *testing.T) {
	for _, c := range []struct{ name, pkg, imports, want string }{
		{"server reaches the engine", "delivery/server", "mls", "the server cannot read messages"},
		{"server reaches content", "delivery/server", "content", "the server cannot read messages"},
		{"server reaches the phrase", "delivery/server", "identity/phrase", "the server cannot read messages"},
		{"store reaches the engine", "store/sqlite", "mls", "the server cannot read messages"},
		{"server reaches it through the protocol", "delivery", "mls", "delivery/server reaches mls (delivery/server -> delivery -> mls)"},
		{"server imports the client", "delivery/server", "delivery/client", "never each other"},
		{"client imports the server", "sdk", "delivery/server", "never each other"},
		{"engine opens a connection", "mls/wire", "net", "mls/wire reaches net"},
		{"engine opens one through others", "mls/wire", "net/http", "mls reaches net (mls -> mls/follower -> mls/tree -> mls/suite -> mls/wire -> net/http -> net)"},
		{"engine starts a program", "mls", "os/exec", "pure packages do no I/O"},
		{"protocol opens a database", "delivery", "database/sql", "pure packages do no I/O"},
		{"engine knows identities", "mls", "identity", "credential checks are an injected interface"},
		{"client engine opens a socket", "sdk", "net/http", "the client engine runs in a browser"},
		{"the binary carries test support", "node", "store/storetest", "cmd/compax reaches testing"},
		{"code imports the test data", "store/sqlite", "internal/testdata", "only tests may import"},
		{"a row is overstepped", "mls/tree", "mls/follower", "its row in arch_test.go does not allow"},
		{"a module nobody listed", "content", "example.org/left", "has no row in arch_test.go"},
		{"a module in the wrong place", "sdk", "modernc.org/sqlite", "gives to store/sqlite"},
		{"the root holds code", ".", "fmt", "the root package imports something"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := sound()
			p := g[c.pkg]
			p.imports = append(slices.Clone(p.imports), c.imports)
			g[c.pkg] = p
			expect(t, parseRules(t, mayImport, outside).check(g), c.want)
		})
	}
}

func TestAnUnlistedPackageIsRefused(t *testing.T) {
	g := sound()
	g["pkg/util"] = pkg{own: true}
	expect(t, parseRules(t, mayImport, outside).check(g), "pkg/util has no row in arch_test.go")
}

func TestAPackageThatDoesNotBuildForTheBrowserIsNamed(t *testing.T) {
	g := sound()
	p := g["mls"]
	p.broken = "build constraints exclude all Go files"
	g["mls"] = p
	expect(t, mustBuild(g, browser), "mls must build for the browser")
	if got := mustBuild(sound(), browser); len(got) > 0 {
		t.Errorf("sound packages are refused: %q", got)
	}
}

func TestBannedImportsAndCallsAreFound(t *testing.T) {
	for source, want := range map[string]string{
		`package wire; import "math/rand"; var _ = rand.Int`: "uses package math/rand",
		`package wire; import "os"; var _ = os.Args`:         "uses package os",
		`package wire; import "time"; var x = time.Now()`:    "uses time.Now",
	} {
		expect(t, checkBans(bans, parsed(t, "mls/wire", source)), want)
		if got := checkBans(bans, parsed(t, "node", source)); len(got) > 0 {
			t.Errorf("node is not pure, yet refused: %q", got)
		}
	}
	allowed := `package wire; import "time"; func f(now time.Time) time.Time { return now.Add(time.Second) }`
	if got := checkBans(bans, parsed(t, "mls/wire", allowed)); len(got) > 0 {
		t.Errorf("time as a parameter is refused: %q", got)
	}
}

func TestTheMostExactRowWins(t *testing.T) {
	r := rules{rows: map[string][]string{"*": {"any"}, "a/...": {"below"}, "a/b/...": {"deeper"}, "a/b/c": {"exact"}}}
	for path, want := range map[string]string{"a/b/c": "exact", "a/b/d": "deeper", "a/x": "below", "z": "any", "ab/x": "any"} {
		if got, found := r.row(path); !found || got[0] != want {
			t.Errorf("row(%q) = %v, want %q", path, got, want)
		}
	}
}

func parsed(t *testing.T, path, source string) map[string][]*ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]*ast.File{path: {file}}
}

func expect(t *testing.T, got []string, want string) {
	t.Helper()
	if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, want) }) {
		t.Errorf("no fault with %q among:\n%s", want, strings.Join(got, "\n"))
	}
}
