// Command mutants takes each validation check out of the code, one at a time,
// and sees whether a test fails. A check that can go without any test failing is
// a survivor: either a test is missing or the check is.
//
// A check is the condition of an if, or of a case in a switch without a tag,
// whose body ends by returning an error (or false from a function that returns
// bool). Each operand of a top-level || counts for itself. Conditions of the
// form err != nil, also with exceptions (&& !errors.Is(…)), count only when the
// error comes from a call that is named for checking (verify, check, valid, ensure,
// require), or with -propagated.
//
// All checks are compiled once, each behind a switch, through the go command's
// -overlay: no file of the repository is touched. A first run finds which checks
// each test binary reaches; then each binary runs once for each check it
// reaches. A comment "mutants: equivalent: why" on the line before a check says
// that no test can notice it: it does not count as a survivor, stands in the list
// (docs/mutants.md) with its reason, and a run that notices it fails.
//
// A run that is ended (SIGINT, SIGTERM or -limit) writes the table of what it
// knows by then: what no finished run noticed is not determined.
//
// Start reading at run; find.go finds checks, build.go compiles them, list.go keeps
// the list.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	var opt options
	flag.StringVar(&opt.root, "root", "..", "root of the module under test")
	flag.BoolVar(&opt.propagated, "propagated", false, "also take out every err != nil")
	flag.BoolVar(&opt.short, "short", true, "run the tests with -short")
	flag.BoolVar(&opt.first, "first", false, "stop each run at its first failing test: faster, names fewer tests")
	flag.BoolVar(&opt.own, "own", false, "run only the tests of the packages themselves, not of those that use them: faster, more survive")
	flag.DurationVar(&opt.timeout, "timeout", 2*time.Minute, "a run that takes longer counts as failed")
	flag.StringVar(&opt.checks, "checks", "", "only the checks whose line in the table matches this regular expression, such as server/create.go")
	flag.StringVar(&opt.tests, "tests", "", "only the tests that match this regular expression, as go test's -run: faster, more survive")
	flag.StringVar(&opt.list, "listed", "docs/mutants.md", "the list of the checks that no test can notice, relative to the root; it is compared unless -checks says otherwise")
	flag.BoolVar(&opt.write, "list", false, "write that list and run nothing")
	limit := flag.Duration("limit", 0, "end after this time and write the table of what is known by then; 0 = no limit")
	flag.StringVar(&opt.report, "report", "bin/mutants.txt", "where the whole table goes, relative to the root")
	flag.IntVar(&opt.workers, "workers", 2, "runs at a time")
	flag.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: mutants [flags] PACKAGE… (folders relative to the root, such as mls/tree)")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *limit)
		defer cancel()
	}
	survivors, err := run(ctx, opt, flag.Args())
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	case survivors > 0:
		os.Exit(1)
	}
}
