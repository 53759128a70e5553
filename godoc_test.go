package compax

// Every package says what it is for, and every exported name says what it is.

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

func TestPackagesAndExportedNamesAreDocumented(t *testing.T) {
	statSources(t)
	for _, p := range undocumented(sources(t)) {
		t.Error(p)
	}
}

// undocumented returns the packages without a package comment and the exported
// names without a comment, sorted. A comment at the end of a line counts, and one
// in a group for all values below it. No comment of their own need: methods of unexported types, methods
// that fit an interface which says what they do (of the standard library, or of
// ours), and the values of a type that is documented.
func undocumented(packages map[string][]*ast.File) []string {
	var out []string
	known := interfaceMethods(packages)
	for path, files := range packages {
		if !slices.ContainsFunc(files, func(f *ast.File) bool { return f.Doc != nil && len(f.Doc.Text()) > 40 }) {
			out = append(out, path+" has no package comment that says what it is for")
		}
		for _, file := range files {
			if file.Name.Name == "main" {
				continue
			}
			for _, decl := range file.Decls {
				for _, name := range undocumentedNames(decl, known) {
					out = append(out, fmt.Sprintf("%s: %s is exported and not documented", path, name))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

func undocumentedNames(decl ast.Decl, known map[string]bool) []string {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if name := exportedFunc(decl, known); name != "" && decl.Doc == nil {
			return []string{name}
		}
	case *ast.GenDecl:
		if decl.Doc != nil && decl.Lparen.IsValid() && decl.Tok != token.TYPE {
			return nil
		}
		var out []string
		typed := false // a group of values goes on with the type of its first
		covered := false
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() && spec.Doc == nil && spec.Comment == nil && decl.Doc == nil {
					out = append(out, spec.Name.Name)
				}
			case *ast.ValueSpec:
				if id, ok := spec.Type.(*ast.Ident); ok {
					typed = id.IsExported()
				} else if spec.Values != nil {
					typed = false
				}
				covered = covered || spec.Doc != nil
				for _, name := range spec.Names {
					if name.IsExported() && !typed && !covered && spec.Comment == nil && decl.Doc == nil {
						out = append(out, name.Name)
					}
				}
			}
		}
		return out
	}
	return nil
}

// interfaceMethods are the names of the methods that our interfaces declare.
func interfaceMethods(packages map[string][]*ast.File) map[string]bool {
	known := map[string]bool{}
	for _, name := range standardMethods {
		known[name] = true
	}
	for _, files := range packages {
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				if i, ok := n.(*ast.InterfaceType); ok {
					for _, method := range i.Methods.List {
						for _, name := range method.Names {
							known[name.Name] = true
						}
					}
				}
				return true
			})
		}
	}
	return known
}

// standardMethods are those of the standard library's interfaces.
var standardMethods = []string{
	"Error", "Unwrap", "Is", "String", "GoString", "Format", "Close", "Read", "Write", "Len", "Less", "Swap",
	"MarshalText", "UnmarshalText", "MarshalJSON", "UnmarshalJSON", "MarshalBinary", "UnmarshalBinary", "LogValue", "ServeHTTP",
}

// exportedFunc is the name of an exported function, or of an exported method of
// an exported type, "" for all others.
func exportedFunc(fn *ast.FuncDecl, known map[string]bool) string {
	if !fn.Name.IsExported() {
		return ""
	}
	if fn.Recv == nil {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if index, ok := t.(*ast.IndexExpr); ok {
		t = index.X
	}
	id, ok := t.(*ast.Ident)
	if !ok || !id.IsExported() || known[fn.Name.Name] {
		return ""
	}
	return id.Name + "." + fn.Name.Name
}

func TestUndocumentedNamesAreFound(t *testing.T) {
	const source = `package p

type Bare struct{}

func (Bare) Method() {}
func (Bare) String() string { return "" }

type hidden struct{}

func (hidden) Method() {}

// Good is documented.
type Good struct{}

// Group.
const (
	A = 1
	B = 2
)

var V int

const (
	C Good = 1
	D Good = 2
	E      = "untyped"
)

type Port interface {
	// Method2 is documented here.
	Method2()
}

func (Good) Method2() {}
`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(undocumented(map[string][]*ast.File{"p": {file}}), "\n")
	want := strings.Join([]string{
		"p has no package comment that says what it is for",
		"p: Bare is exported and not documented",
		"p: Bare.Method is exported and not documented",
		"p: E is exported and not documented",
		"p: Port is exported and not documented",
		"p: V is exported and not documented",
	}, "\n")
	if got != want {
		t.Errorf("found\n%s\nwant\n%s", got, want)
	}
}
