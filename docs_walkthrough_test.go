package compax

// docs/walkthrough.md follows one message through at most eight files. The test
// fails when a file or a function that it names moves.

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// station is one section of the walkthrough: the files of its heading, and the
// functions that its text says are in them.
type station struct {
	files, functions []string
}

var (
	stationHeading  = regexp.MustCompile("^## \\d+\\. (`.+`)$")
	stationFunction = regexp.MustCompile("`([A-Za-z_][A-Za-z0-9_]*(?:\\.[A-Za-z_][A-Za-z0-9_]*)?)\\(\\)`")
)

// stations reads the walkthrough. A heading names its file; the forms of a port
// stand as one, "`store/*/log.go`". A function is written `Name()` or
// `Type.Method()`.
func stations(text string) []station {
	var out []station
	for line := range strings.Lines(text) {
		if m := stationHeading.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			var s station
			for _, span := range codeSpan.FindAllStringSubmatch(m[1], -1) {
				s.files = append(s.files, span[1])
			}
			out = append(out, s)
			continue
		}
		if strings.HasPrefix(line, "## ") {
			out = append(out, station{})
		}
		if len(out) > 0 {
			for _, m := range stationFunction.FindAllStringSubmatch(line, -1) {
				out[len(out)-1].functions = append(out[len(out)-1].functions, m[1])
			}
		}
	}
	for len(out) > 0 && len(out[len(out)-1].files) == 0 {
		out = out[:len(out)-1] // what follows the last station
	}
	return out
}

func TestWalkthroughIsTrue(t *testing.T) {
	text, err := os.ReadFile("docs/walkthrough.md")
	if err != nil {
		t.Fatal(err)
	}
	all := stations(string(text))
	if len(all) < 5 || len(all) > 8 {
		t.Errorf("the walkthrough has %d stations, want at most eight and a whole way", len(all))
	}
	for i, s := range all {
		if len(s.files) == 0 || len(s.functions) == 0 {
			t.Errorf("station %d names no file or no function", i+1)
		}
		for _, pattern := range s.files {
			files, err := filepath.Glob(filepath.FromSlash(pattern))
			if err != nil || len(files) == 0 {
				t.Errorf("station %d names %s, which does not exist (%v)", i+1, pattern, err)
			}
			for _, file := range files {
				declared := functions(t, file)
				for _, name := range s.functions {
					if !declared[name] {
						t.Errorf("station %d names %s(), which %s does not declare", i+1, name, file)
					}
				}
			}
		}
	}
}

// functions are the functions and methods that a file declares, as "Name" and
// "Type.Method".
func functions(t *testing.T, path string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if fn.Recv == nil {
			out[fn.Name.Name] = true
			continue
		}
		recv := fn.Recv.List[0].Type
		if star, ok := recv.(*ast.StarExpr); ok {
			recv = star.X
		}
		if id, ok := recv.(*ast.Ident); ok {
			out[id.Name+"."+fn.Name.Name] = true
		}
	}
	return out
}

func TestStations(t *testing.T) {
	got := stations("# Way\n\nintro `x()`\n\n## 1. `sdk/send.go`\n\n`Client.Send()` calls `seal()`.\n\n## 2. `store/*/log.go`\n\n`tx.Append()`\n\n## After\n\n`other()`\n")
	if len(got) != 2 || got[0].files[0] != "sdk/send.go" || strings.Join(got[0].functions, " ") != "Client.Send seal" ||
		got[1].files[0] != "store/*/log.go" || strings.Join(got[1].functions, " ") != "tx.Append" {
		t.Errorf("stations = %v", got)
	}
}
