package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"sort"
	"strings"
)

// check is one condition that refuses something.
type check struct {
	id         int
	pkg, file  string // folder, and file name within it
	line       int
	function   string // the function it stands in
	source     string // the condition as written, on one line
	equivalent string // why it cannot be tested, when the code says so
	start, end int    // byte offsets of the condition
}

func (c check) String() string {
	return fmt.Sprintf("%s/%s:%d %s: %s", c.pkg, c.file, c.line, c.function, c.source)
}

var (
	checking   = regexp.MustCompile(`(?i)(verify|check|valid|ensure|require)`)
	equivalent = regexp.MustCompile(`mutants: equivalent: (.+)`)
)

// findChecks returns the checks of one file in order, without ids.
func findChecks(pkg, name string, source []byte, propagated bool) ([]check, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	notes := map[int]string{} // line of the comment -> reason
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if m := equivalent.FindStringSubmatch(comment.Text); m != nil {
				notes[fset.Position(comment.Pos()).Line] = m[1]
			}
		}
	}
	f := finder{fset: fset, source: source, pkg: pkg, file: name, notes: notes, propagated: propagated}
	for _, decl := range file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Body != nil {
			f.walk(fn.Body, fn.Type, functionName(fn))
		}
	}
	sort.Slice(f.found, func(i, j int) bool { return f.found[i].start < f.found[j].start })
	return f.found, nil
}

type finder struct {
	fset       *token.FileSet
	source     []byte
	pkg, file  string
	notes      map[int]string
	propagated bool
	found      []check
}

// walk visits body, whose returns belong to a function of type fn.
func (f *finder) walk(body ast.Node, fn *ast.FuncType, name string) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			f.walk(n.Body, n.Type, name)
			return false
		case *ast.IfStmt:
			if refuses(fn, n.Body.List) {
				f.add(n.Cond, n.Init, name)
			}
		case *ast.SwitchStmt:
			if n.Tag != nil {
				return true
			}
			for _, clause := range n.Body.List {
				clause := clause.(*ast.CaseClause)
				if refuses(fn, clause.Body) {
					for _, cond := range clause.List {
						f.add(cond, nil, name)
					}
				}
			}
		}
		return true
	})
}

// add notes the operands of cond as checks.
func (f *finder) add(cond ast.Expr, init ast.Stmt, name string) {
	if or, ok := cond.(*ast.BinaryExpr); ok && or.Op == token.LOR {
		f.add(or.X, init, name)
		f.add(or.Y, init, name)
		return
	}
	if paren, ok := cond.(*ast.ParenExpr); ok {
		f.add(paren.X, init, name)
		return
	}
	start, end := f.fset.Position(cond.Pos()), f.fset.Position(cond.End())
	if isPropagated(cond) && !f.propagated && !checking.MatchString(f.text(init)) {
		return
	}
	f.found = append(f.found, check{
		pkg: f.pkg, file: f.file, line: start.Line, function: name,
		source:     strings.Join(strings.Fields(f.text(cond)), " "),
		equivalent: f.notes[start.Line-1],
		start:      start.Offset, end: end.Offset,
	})
}

func (f *finder) text(n ast.Node) string {
	if n == nil {
		return ""
	}
	return string(f.source[f.fset.Position(n.Pos()).Offset:f.fset.Position(n.End()).Offset])
}

// refuses reports whether body ends by returning an error, or false, from a
// function of type fn.
func refuses(fn *ast.FuncType, body []ast.Stmt) bool {
	if len(body) == 0 || fn.Results == nil || len(fn.Results.List) == 0 {
		return false
	}
	ret, ok := body[len(body)-1].(*ast.ReturnStmt)
	if !ok || len(ret.Results) == 0 {
		return false
	}
	last := ret.Results[len(ret.Results)-1]
	value, named := last.(*ast.Ident)
	switch resultType(fn) {
	case "error", "*Error", "*delivery.Error":
		return !named || value.Name != "nil"
	case "bool":
		return named && value.Name == "false"
	}
	return false
}

// resultType is the type of fn's last result, as written.
func resultType(fn *ast.FuncType) string {
	switch t := fn.Results.List[len(fn.Results.List)-1].Type.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.StarExpr:
		switch x := t.X.(type) {
		case *ast.Ident:
			return "*" + x.Name
		case *ast.SelectorExpr:
			if pkg, ok := x.X.(*ast.Ident); ok {
				return "*" + pkg.Name + "." + x.Sel.Name
			}
		}
	}
	return ""
}

// isPropagated reports whether e is err != nil, or that without errors which are
// dealt with: err != nil && !errors.Is(err, …).
func isPropagated(e ast.Expr) bool {
	for {
		and, ok := e.(*ast.BinaryExpr)
		if !ok || and.Op != token.LAND || !isNotErrorsIs(and.Y) {
			return isErrNotNil(e)
		}
		e = and.X
	}
}

func isNotErrorsIs(e ast.Expr) bool {
	not, ok := e.(*ast.UnaryExpr)
	if !ok || not.Op != token.NOT {
		return false
	}
	call, ok := not.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	is, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	pkg, ok := is.X.(*ast.Ident)
	return ok && pkg.Name == "errors" && is.Sel.Name == "Is"
}

func isErrNotNil(e ast.Expr) bool {
	b, ok := e.(*ast.BinaryExpr)
	if !ok || b.Op != token.NEQ {
		return false
	}
	x, ok1 := b.X.(*ast.Ident)
	y, ok2 := b.Y.(*ast.Ident)
	return ok1 && ok2 && strings.HasPrefix(strings.ToLower(x.Name), "err") && y.Name == "nil"
}

func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "." + fn.Name.Name
	}
	return fn.Name.Name
}

// rewrite puts each check behind its switch.
func rewrite(source []byte, checks []check) []byte {
	var out bytes.Buffer
	at := 0
	for _, c := range checks {
		out.Write(source[at:c.start])
		fmt.Fprintf(&out, "(!mutantOut(%d) && (", c.id)
		out.Write(source[c.start:c.end])
		out.WriteString("))")
		at = c.end
	}
	out.Write(source[at:])
	return out.Bytes()
}
