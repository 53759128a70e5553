// Command lint holds the analyzers beyond go vet and staticcheck, for
// "go vet -vettool": errors that are dropped or compared by identity, rows and
// statements that stay open, contexts kept in structs or not passed on.
//
// A finding that is right as it is gets a blank assignment or a rewrite, not a
// comment that silences it.
package main

import (
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/jingyugao/rowserrcheck/passes/rowserr"
	"github.com/kisielk/errcheck/errcheck"
	"github.com/polyfloyd/go-errorlint/errorlint"
	"github.com/ryanrolds/sqlclosecheck/pkg/analyzer"
	"github.com/sivchari/containedctx"
	"github.com/sonatard/noctx"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/unitchecker"
)

func main() {
	// A fmt.State never fails. Talk on a writer that was handed in (a command's
	// standard output or error) has nobody to tell when it fails. A bufio.Writer
	// keeps its error until Flush.
	errcheck.DefaultExcludedSymbols = append(errcheck.DefaultExcludedSymbols,
		"fmt.Fprint(io.Writer)", "fmt.Fprintf(io.Writer)", "fmt.Fprintln(io.Writer)", "io.WriteString(io.Writer)",
		"fmt.Fprint(*bufio.Writer)", "fmt.Fprintf(*bufio.Writer)", "fmt.Fprintln(*bufio.Writer)",
		"fmt.Fprint(fmt.State)", "fmt.Fprintf(fmt.State)", "fmt.Fprintln(fmt.State)", "io.WriteString(fmt.State)",
		"(fmt.State).Write")
	unitchecker.Main(
		productOnly(errcheck.Analyzer, "Close"),
		productOnly(wrapping()),
		rowserr.NewAnalyzer("github.com/jackc/pgx/v5"),
		analyzer.NewClosedAnalyzer(),
		outsideStores(productOnly(containedctx.Analyzer)),
		productOnly(noctx.Analyzer),
	)
}

// wrapping is errorlint, which also wants %w in fmt.Errorf.
func wrapping() *analysis.Analyzer {
	a := errorlint.NewAnalyzer()
	if err := a.Flags.Set("errorf", "true"); err != nil {
		panic(err) // the flag is part of the pinned version
	}
	return a
}

// productOnly leaves out findings in tests and in packages of test support (they
// import testing), where a failure shows by itself, and those on lines whose source has one of the words after a defer.
func productOnly(a *analysis.Analyzer, deferred ...string) *analysis.Analyzer {
	wrapped := *a
	wrapped.Run = func(pass *analysis.Pass) (any, error) {
		support := slices.ContainsFunc(pass.Pkg.Imports(), func(p *types.Package) bool { return p.Path() == "testing" })
		inner := *pass
		inner.Report = func(d analysis.Diagnostic) {
			at := pass.Fset.Position(d.Pos)
			if support || strings.HasSuffix(at.Filename, "_test.go") || isDeferred(pass, at, deferred) {
				return
			}
			pass.Report(d)
		}
		return a.Run(&inner)
	}
	return &wrapped
}

// outsideStores leaves the stores out: a transaction keeps the context that it was
// begun with, as database/sql's does, because its port's methods take none.
func outsideStores(a *analysis.Analyzer) *analysis.Analyzer {
	wrapped := *a
	wrapped.Run = func(pass *analysis.Pass) (any, error) {
		if path := pass.Pkg.Path(); strings.Contains(path, "/store/") || strings.HasSuffix(path, "/sqlitestore") {
			return nil, nil
		}
		return a.Run(pass)
	}
	return &wrapped
}

func isDeferred(pass *analysis.Pass, at token.Position, words []string) bool {
	if len(words) == 0 {
		return false
	}
	source, err := pass.ReadFile(at.Filename)
	if err != nil {
		return false
	}
	line := strings.Split(string(source), "\n")[at.Line-1]
	return strings.Contains(line, "defer ") && slices.ContainsFunc(words, func(w string) bool {
		return strings.Contains(line, w+"(")
	})
}
