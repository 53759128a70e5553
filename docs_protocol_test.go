package compax

// docs/protocol.md is held to the package delivery, both ways.

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
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
	} {
		if !strings.Contains(page, want) {
			t.Errorf("docs/protocol.md does not say %q", want)
		}
	}
}

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
