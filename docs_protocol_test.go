package compax

// docs/protocol.md is held to the package delivery, both ways.

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/askucher/compax-core/delivery"
)

func TestProtocolPageListsEveryCode(t *testing.T) {
	listed := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (\\d+) \\|").FindAllStringSubmatch(protocolPage(t), -1) {
		listed[m[1]] = m[2]
	}
	for code, status := range delivery.Codes() {
		if got, want := listed[string(code)], strconv.Itoa(status); got != want {
			t.Errorf("docs/protocol.md gives code %s the status %q, delivery %s", code, got, want)
		}
		delete(listed, string(code))
	}
	for code := range listed {
		t.Errorf("docs/protocol.md lists code %s, which delivery does not have", code)
	}
}

func TestProtocolPageListsEveryRoute(t *testing.T) {
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Z]+ /[^`]+)` \\|").FindAllStringSubmatch(protocolPage(t), -1) {
		listed[m[1]] = true
	}
	routes := constants(t, "delivery/routes.go", "Route")
	if len(routes) < 10 {
		t.Fatalf("only %d routes found", len(routes))
	}
	for name, route := range routes {
		if !listed[route] {
			t.Errorf("docs/protocol.md does not list %s (%q)", name, route)
		}
		delete(listed, route)
	}
	for route := range listed {
		t.Errorf("docs/protocol.md lists %q, which delivery does not have", route)
	}
}

func TestProtocolPageStatesTheLayouts(t *testing.T) {
	page := protocolPage(t)
	for _, want := range []string{
		fmt.Sprintf("a jump of 2%s", superscript(delivery.IncarnationJump)),
		"`" + delivery.BinaryType + "`",
		"`" + delivery.HeaderEnvelope + "`",
		"`" + delivery.HeaderWork + "`",
		"`" + delivery.HeaderOffset + "`",
		"`" + delivery.HeaderTime + "`",
		fmt.Sprintf("at most 2%s", superscript(delivery.MaxNumber)),
		fmt.Sprintf("for %d days", int(delivery.IdleAfter.Hours()/24)),
		fmt.Sprintf("payload of at most\n%s bytes", thousands(delivery.MaxEphemeral)),
		fmt.Sprintf("Receivers drop one of more than %s bytes", number(t, "sdk/ephemeral.go", "ephemeralMax")),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("docs/protocol.md does not say %q", want)
		}
	}
}

// TestProtocolPageSaysWhichNumbersAreStrings: of all JSON bodies, both ways. What may
// pass 2⁵³ is a decimal string, all else a number.
func TestProtocolPageSaysWhichNumbersAreStrings(t *testing.T) {
	sentence := regexp.MustCompile(`(?s)Decimal strings are (.*?)\.\n`).FindStringSubmatch(protocolPage(t))
	if sentence == nil {
		t.Fatal("docs/protocol.md does not say which numbers are strings")
	}
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z_]+)`").FindAllStringSubmatch(sentence[1], -1) {
		listed[m[1]] = false
	}
	numbers := 0
	for _, f := range jsonFields(t, "delivery") {
		switch text := strings.Contains(f.options, "string"); {
		case f.kind == "uint64" && !text:
			t.Errorf("%s: a 64-bit number that is no string", f.name)
		case f.kind != "uint64" && text:
			t.Errorf("%s: %s as a string", f.name, f.kind)
		case text, strings.Contains(f.comment, "decimal"):
			if _, said := listed[f.name]; !said {
				t.Errorf("docs/protocol.md does not say that %s is a string", f.name)
			}
			listed[f.name] = true
		case strings.Contains(f.kind, "int"):
			numbers++
		}
	}
	for name, found := range listed {
		if !found {
			t.Errorf("docs/protocol.md says that %s is a decimal string", name)
		}
	}
	if numbers < 10 {
		t.Errorf("only %d numbers found", numbers)
	}
}

type jsonField struct{ name, kind, options, comment string }

// jsonFields returns the fields of a package's structs that have a JSON name.
func jsonFields(t *testing.T, folder string) (out []jsonField) {
	t.Helper()
	files, err := filepath.Glob(folder + "/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			f, ok := n.(*ast.Field)
			if !ok || f.Tag == nil {
				return true
			}
			name, options, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
			if name != "" {
				out = append(out, jsonField{name, types.ExprString(f.Type), options, f.Comment.Text()})
			}
			return true
		})
	}
	return out
}

// number returns a constant of a file as it is written there.
func number(t *testing.T, path, name string) string {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`\b` + name + ` += (\d+)\b`).FindSubmatch(source)
	if m == nil {
		t.Fatalf("%s has no %s", path, name)
	}
	return string(m[1])
}

// thousands writes a number of four digits as pages do.
func thousands(n int) string { return fmt.Sprintf("%d,%03d", n/1000, n%1000) }

func protocolPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// constants returns the string constants of a file whose names start with prefix.
func constants(t *testing.T, path, prefix string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range spec.Names {
			if i >= len(spec.Values) || !strings.HasPrefix(name.Name, prefix) {
				continue
			}
			if lit, ok := spec.Values[i].(*ast.BasicLit); ok {
				value, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatalf("%s: %s: %v", path, name.Name, err)
				}
				out[name.Name] = value
			}
		}
		return true
	})
	return out
}

// superscript writes the exponent of a power of two.
func superscript(power uint64) string {
	n := 0
	for ; power > 1; power >>= 1 {
		n++
	}
	return strings.NewReplacer("0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴", "5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹").Replace(strconv.Itoa(n))
}
