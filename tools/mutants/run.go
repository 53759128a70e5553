package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

type options struct {
	root, report, checks, tests   string
	list                          string
	propagated, short, first, own bool
	write                         bool
	timeout                       time.Duration
	workers                       int
}

// outcome is what became of one check.
type outcome struct {
	check
	reached bool
	cut     bool     // a run without it was ended before it was over
	killers []string // "package.Test", "package: timeout", "package: crash"
}

// run returns the number of survivors: checks that can go unnoticed without a reason,
// and those that are noticed and said not to be. A package
// whose tests fail with every check in place judges none of them: run goes on
// without it, writes the table and returns an error that names it. When ctx
// ends first, the table says what is known by then and run returns ctx's error.
func run(ctx context.Context, opt options, pkgs []string) (int, error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	over, err := makeOverlay(ctx, opt, pkgs, dir)
	if err != nil {
		return 0, err
	}
	if opt.write {
		return 0, writeList(opt, over.checks)
	}
	var failed []error
	if opt.checks == "" {
		if err := compareList(opt, pkgs, over.checks); err != nil {
			failed = append(failed, err)
		}
	}
	binaries, err := testPackages(ctx, opt, pkgs)
	if err != nil {
		return 0, err
	}
	outcomes := make([]outcome, len(over.checks))
	for i, c := range over.checks {
		outcomes[i].check = c
	}
	fmt.Fprintf(os.Stderr, "%d checks in %d packages, tests of %d packages\n", len(outcomes), len(pkgs), len(binaries))
	unjudged := map[string]bool{}
	for _, b := range binaries {
		unjudged[b.pkg] = true
	}
	for i, b := range binaries {
		b.path = filepath.Join(dir, fmt.Sprintf("t%d.test", i))
		err := judge(ctx, opt, b, over, outcomes, filepath.Join(dir, "reached"))
		if ctx.Err() != nil {
			failed = append(failed, fmt.Errorf("not finished: %w", ctx.Err()))
			break
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed = append(failed, err)
			if !errors.Is(err, errBroken) {
				break
			}
		}
		delete(unjudged, b.pkg)
	}
	survivors, err := report(opt, outcomes, slices.Sorted(maps.Keys(unjudged)))
	return survivors, errors.Join(append(failed, err)...)
}

var errBroken = errors.New("fails with every check in place")

// judge compiles b and runs it, where it has tests.
func judge(ctx context.Context, opt options, b testBinary, over overlay, outcomes []outcome, log string) error {
	if _, err := goCommand(ctx, opt.root, "test", "-c", "-vet=off", "-overlay", over.file, "-o", b.path, "./"+b.pkg); err != nil {
		return fmt.Errorf("compiling the tests of %s: %w", b.pkg, err)
	}
	if _, err := os.Stat(b.path); errors.Is(err, os.ErrNotExist) {
		return nil // no tests
	}
	return runBinary(ctx, opt, b, outcomes, log)
}

// runBinary runs b once for every check that it reaches and that no earlier
// binary noticed.
func runBinary(ctx context.Context, opt options, b testBinary, outcomes []outcome, log string) error {
	os.Remove(log)
	if failed := runTests(ctx, opt, b, "REACHED="+log); failed != nil {
		return fmt.Errorf("%s %w: %s", b.pkg, errBroken, strings.Join(failed, ", "))
	}
	reached, err := os.ReadFile(log)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	var todo []int
	for line := range strings.Lines(string(reached)) {
		id, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil || id < 1 || id > len(outcomes) {
			return fmt.Errorf("reading %s: no check %q", log, line)
		}
		o := &outcomes[id-1]
		o.reached = true
		if len(o.killers) == 0 {
			todo = append(todo, id)
		}
	}
	fmt.Fprintf(os.Stderr, "%s: %d checks to take out\n", b.pkg, len(todo))
	work := make(chan int)
	var wg sync.WaitGroup
	for range opt.workers {
		wg.Go(func() {
			for id := range work { // each id is one worker's
				killers := runTests(ctx, opt, b, "MUTANT="+strconv.Itoa(id))
				if ctx.Err() != nil { // what failed may have failed because it was ended
					outcomes[id-1].cut = true
					continue
				}
				outcomes[id-1].killers = killers
			}
		})
	}
	for n, id := range todo {
		if ctx.Err() != nil {
			outcomes[id-1].cut = true
			continue
		}
		if n > 0 && n%50 == 0 {
			fmt.Fprintf(os.Stderr, "%s: %d of %d\n", b.pkg, n, len(todo))
		}
		work <- id
	}
	close(work)
	wg.Wait()
	return ctx.Err()
}

var failLine = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// runTests runs b with one more environment variable and returns what failed,
// nil when nothing did.
func runTests(ctx context.Context, opt options, b testBinary, env string) []string {
	ctx, cancel := context.WithTimeout(ctx, opt.timeout)
	defer cancel()
	args := []string{"-test.timeout=" + (opt.timeout - opt.timeout/10).String()}
	if opt.short {
		args = append(args, "-test.short")
	}
	if opt.tests != "" {
		args = append(args, "-test.run="+opt.tests)
	}
	if opt.first {
		args = append(args, "-test.failfast")
	}
	cmd := exec.CommandContext(ctx, b.path, args...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), env)
	// Its own group: an interrupt from the keyboard ends this program first, which
	// then knows why the run ended, and what the tests started ends with them.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	var failed []string
	for _, m := range failLine.FindAllSubmatch(out, -1) {
		failed = append(failed, b.pkg+"."+string(m[1]))
	}
	switch {
	case ctx.Err() != nil || bytes.Contains(out, []byte("panic: test timed out")):
		failed = append(failed, b.pkg+": timeout")
	case len(failed) == 0:
		failed = append(failed, b.pkg+": crash")
	}
	slices.Sort(failed)
	return slices.Compact(failed)
}

// tooSlow reports whether no test failed, and a run ended for its time alone. That shows
// nothing of a check that only makes the code faster, nor on a busy machine.
func tooSlow(killers []string) bool {
	return len(killers) > 0 && !slices.ContainsFunc(killers, func(k string) bool { return !strings.HasSuffix(k, ": timeout") })
}

// report writes the table and tells the survivors. unjudged are the packages
// whose tests did not run to their end: what none of the others noticed, they
// may notice.
func report(opt options, outcomes []outcome, unjudged []string) (survivors int, err error) {
	path := filepath.Join(opt.root, opt.report)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return 0, err
	}
	file, err := os.Create(path)
	if err != nil {
		return 0, err
	}
	table := bufio.NewWriter(file)
	var killed, unreached, apart, open, wrong int
	for _, o := range outcomes {
		verdict := ""
		switch {
		case o.equivalent != "" && tooSlow(o.killers):
			apart++
			verdict = "equivalent, but its run took too long: " + o.equivalent
		case o.equivalent != "" && len(o.killers) > 0:
			wrong++
			verdict = "NOT EQUIVALENT: noticed by " + strings.Join(o.killers, ", ") + ", though the source says: " + o.equivalent
		case o.equivalent != "":
			apart++
			verdict = "equivalent: " + o.equivalent
		case len(o.killers) > 0:
			killed++
			verdict = "noticed by " + strings.Join(o.killers, ", ")
		case o.cut:
			open++
			verdict = "not determined: its run was cut short"
		case len(unjudged) > 0 && o.reached:
			open++
			verdict = "not determined: survived so far, without the tests of " + strings.Join(unjudged, ", ")
		case len(unjudged) > 0:
			open++
			verdict = "not determined: not reached so far, without the tests of " + strings.Join(unjudged, ", ")
		case o.reached:
			survivors++
			verdict = "SURVIVED: reached, and no test fails without it"
		default:
			unreached++
			verdict = "SURVIVED: no test reaches it"
		}
		fmt.Fprintf(table, "%s\n\t%s\n", o.check, verdict)
		if strings.HasPrefix(verdict, "SURVIVED") || strings.HasPrefix(verdict, "NOT EQUIVALENT") {
			fmt.Printf("%s\n\t%s\n", o.check, verdict)
		}
	}
	if err := errors.Join(table.Flush(), file.Close()); err != nil {
		return 0, err
	}
	undetermined := ""
	if open > 0 {
		undetermined = fmt.Sprintf(" %d not determined,", open)
	}
	fmt.Printf("%d checks: %d noticed, %d survive a test that reaches them, %d reached by none,%s %d equivalent, %d said to be and are not (table: %s)\n",
		len(outcomes), killed, survivors, unreached, undetermined, apart, wrong, opt.report)
	return survivors + unreached + wrong, nil
}
