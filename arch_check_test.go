package compax

// The checks behind the table in arch_test.go. They are plain functions over a
// package graph, so that arch_planted_test.go can show each of them failing.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/askucher/compax-core"

type target struct{ os, arch string }

// pkg is what the checks need of one package. Paths of ours are relative to
// the module ("mls/wire"), all others are import paths.
type pkg struct {
	imports []string // non-test imports
	module  string   // path of the foreign module it belongs to, "" for ours and the standard library
	own     bool
	broken  string // why it does not build for the target, "" when it does
}

// graph holds every package of a build, by path.
type graph map[string]pkg

func (g graph) ours() []string {
	var out []string
	for path, p := range g {
		if p.own {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

// reach is one row of never.
type reach struct {
	from, to []string
	reason   string
}

// ban is one row of bans.
type ban struct {
	from, imports, calls []string
	reason               string
}

// rules is the parsed table.
type rules struct {
	rows    map[string][]string // pattern -> patterns of ours it may import
	outside map[string][]string // foreign module -> patterns of ours that may import it
	never   []reach
	support []string
}

func parseRules(t *testing.T, mayImport, outside string) rules {
	t.Helper()
	return rules{rows: parseTable(t, mayImport), outside: parseTable(t, outside), never: never, support: testSupport}
}

// parseTable reads lines of "key value…"; # starts a comment, - is no value.
func parseTable(t *testing.T, text string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if len(words) == 1 {
			t.Fatalf("table: %q says nothing: write - for none", words[0])
		}
		if _, twice := out[words[0]]; twice {
			t.Fatalf("table: %q has two rows", words[0])
		}
		out[words[0]] = slices.DeleteFunc(words[1:], func(w string) bool { return w == "-" })
	}
	return out
}

// matches reports whether path is named by pattern: the path itself, any
// package below it ("x/..."), or anything ("*").
func matches(pattern, path string) bool {
	if pattern == "*" {
		return true
	}
	if below, ok := strings.CutSuffix(pattern, "/..."); ok {
		return strings.HasPrefix(path, below+"/")
	}
	return pattern == path
}

func anyMatches(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, path) })
}

// row returns the most exact row for path.
func (r rules) row(path string) (allowed []string, found bool) {
	best := -1
	for pattern, may := range r.rows {
		score := len(pattern)
		if pattern == path {
			score = 1 << 20
		}
		if matches(pattern, path) && score > best {
			best, allowed, found = score, may, true
		}
	}
	return allowed, found
}

// check returns what is wrong with g, sorted.
func (r rules) check(g graph) []string {
	var out []string
	for _, path := range g.ours() {
		if path == "." {
			if len(g[path].imports) > 0 {
				out = append(out, "the root package imports something: it holds no code")
			}
			continue
		}
		allowed, found := r.row(path)
		if !found {
			out = append(out, path+" has no row in arch_test.go: say there what it may import")
			continue
		}
		for _, dep := range g[path].imports {
			out = append(out, r.checkImport(g, path, dep, allowed)...)
		}
	}
	for _, rule := range r.never {
		for _, path := range g.ours() {
			if !anyMatches(rule.from, path) {
				continue
			}
			if chain := g.chain(path, rule.to); chain != nil {
				out = append(out, fmt.Sprintf("%s reaches %s (%s): %s",
					path, chain[len(chain)-1], strings.Join(chain, " -> "), rule.reason))
			}
		}
	}
	slices.Sort(out)
	return out
}

func (r rules) checkImport(g graph, path, dep string, allowed []string) []string {
	p := g[dep]
	switch {
	case p.own && slices.Contains(r.support, dep) && !slices.Contains(r.support, path):
		if path == "scripts" || strings.HasPrefix(path, "interop/") {
			return nil
		}
		return []string{fmt.Sprintf("%s imports %s, which only tests may import", path, dep)}
	case p.own && !anyMatches(allowed, dep):
		return []string{fmt.Sprintf("%s imports %s, which its row in arch_test.go does not allow", path, dep)}
	case p.module != "":
		users, listed := r.outside[p.module]
		if !listed {
			return []string{fmt.Sprintf("%s imports %s of module %s, which has no row in arch_test.go: say there who may use it and what for", path, dep, p.module)}
		}
		if !anyMatches(users, path) {
			return []string{fmt.Sprintf("%s imports %s of module %s, which arch_test.go gives to %s only", path, dep, p.module, strings.Join(users, ", "))}
		}
	}
	return nil
}

// chain returns the shortest way from path to a package named by targets, or
// nil when there is none.
func (g graph) chain(path string, targets []string) []string {
	came := map[string]string{path: ""}
	for queue := []string{path}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, dep := range g[at].imports {
			if _, seen := came[dep]; seen {
				continue
			}
			came[dep] = at
			if anyMatches(targets, dep) {
				var way []string
				for at := dep; at != ""; at = came[at] {
					way = append(way, at)
				}
				slices.Reverse(way)
				return way
			}
			queue = append(queue, dep)
		}
	}
	return nil
}

// mustBuild returns the packages named by patterns that do not build in g.
func mustBuild(g graph, patterns []string) []string {
	var out []string
	for _, path := range g.ours() {
		if anyMatches(patterns, path) && g[path].broken != "" {
			out = append(out, fmt.Sprintf("%s must build for the browser: %s", path, g[path].broken))
		}
	}
	return out
}

// loadGraph asks the go command for every package of the module and all it
// depends on, as built for target.
func loadGraph(t *testing.T, to target) graph {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-deps", "-json=ImportPath,Imports,ImportMap,Standard,Module,Error,DepsErrors", "./...")
	cmd.Env = append(os.Environ(), "GOOS="+to.os, "GOARCH="+to.arch, "CGO_ENABLED=0", "GOFLAGS=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	g := graph{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath string
			Imports    []string
			ImportMap  map[string]string
			Standard   bool
			Module     *struct {
				Path string
				Main bool
			}
			Error      *struct{ Err string }
			DepsErrors []struct{ Err string }
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return g
		} else if err != nil {
			t.Fatalf("go list: reading its answer: %v", err)
		}
		node := pkg{own: p.Module != nil && p.Module.Main}
		if p.Module != nil && !p.Module.Main {
			node.module = p.Module.Path
		}
		if p.Error != nil {
			node.broken = p.Error.Err
		}
		for _, e := range p.DepsErrors {
			node.broken = e.Err
		}
		for _, dep := range p.Imports {
			if mapped, ok := p.ImportMap[dep]; ok { // the standard library's vendored packages
				dep = mapped
			}
			node.imports = append(node.imports, relative(dep))
		}
		g[relative(p.ImportPath)] = node
	}
}

func relative(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

// statSources looks at every Go source of the module, so that the test cache
// knows what the go list subprocess read. Without it a violation would be
// answered with "(cached)".
func statSources(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipFolder(path, d)
		}
		if name := d.Name(); strings.HasSuffix(name, ".go") || name == "go.mod" {
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// skipFolder leaves out what the go command leaves out, and installed things.
func skipFolder(path string, d fs.DirEntry) error {
	name := d.Name()
	if path != "." && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") ||
		name == "node_modules" || name == "target" || name == "testdata" && !strings.HasPrefix(path, "internal/")) {
		return filepath.SkipDir
	}
	return nil
}

// sources parses the non-test Go files of the module, by package path.
func sources(t *testing.T) map[string][]*ast.File {
	t.Helper()
	out := map[string][]*ast.File{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipFolder(path, d)
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		out[dir] = append(out[dir], file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// checkBans returns the banned imports and calls in files, sorted.
func checkBans(bans []ban, files map[string][]*ast.File) []string {
	var out []string
	for path, list := range files {
		for _, b := range bans {
			if !anyMatches(b.from, path) {
				continue
			}
			for _, file := range list {
				for _, found := range banned(b, file) {
					out = append(out, fmt.Sprintf("%s uses %s: %s", path, found, b.reason))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

func banned(b ban, file *ast.File) []string {
	var out []string
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err == nil && slices.Contains(b.imports, path) {
			out = append(out, "package "+path)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok && slices.Contains(b.calls, id.Name+"."+sel.Sel.Name) {
				out = append(out, id.Name+"."+sel.Sel.Name)
			}
		}
		return true
	})
	return out
}
