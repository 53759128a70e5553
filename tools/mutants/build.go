package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// switches is the file that the overlay adds to each package. MUTANT is the
// number of the check that is out; REACHED a file that gets the number of each
// check when it is first asked.
const switches = `package %s

import (
	"os"
	"strconv"
	"sync"
)

var (
	mutantActive, _ = strconv.Atoi(os.Getenv("MUTANT"))
	mutantLog       = os.Getenv("REACHED")
	mutantSeen      sync.Map
)

func mutantOut(id int) bool {
	if mutantLog != "" {
		if _, seen := mutantSeen.LoadOrStore(id, true); !seen {
			if f, err := os.OpenFile(mutantLog, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
				f.WriteString(strconv.Itoa(id) + "\n")
				f.Close()
			}
		}
	}
	return id == mutantActive
}
`

// overlay is everything compiled in place of the module's files.
type overlay struct {
	file   string // for -overlay
	checks []check
}

// makeOverlay finds the checks of pkgs and writes the rewritten files to dir.
// Checks are numbered from 1.
func makeOverlay(ctx context.Context, opt options, pkgs []string, dir string) (overlay, error) {
	replace := map[string]string{}
	wanted, err := regexp.Compile(opt.checks)
	if err != nil {
		return overlay{}, fmt.Errorf("-checks: %w", err)
	}
	var all []check
	for n, pkg := range pkgs {
		var listed struct {
			Name    string
			Dir     string
			GoFiles []string
		}
		out, err := goCommand(ctx, opt.root, "list", "-json=Name,Dir,GoFiles", "./"+pkg)
		if err != nil {
			return overlay{}, err
		}
		if err := json.Unmarshal(out, &listed); err != nil {
			return overlay{}, fmt.Errorf("go list %s: %w", pkg, err)
		}
		put := func(name string, content []byte) error {
			to := filepath.Join(dir, fmt.Sprintf("%d_%s", n, name))
			replace[filepath.Join(listed.Dir, name)] = to
			return os.WriteFile(to, content, 0o600)
		}
		count := len(all)
		for _, name := range listed.GoFiles {
			source, err := os.ReadFile(filepath.Join(listed.Dir, name))
			if err != nil {
				return overlay{}, err
			}
			checks, err := findChecks(pkg, name, source, opt.propagated)
			if err != nil {
				return overlay{}, err
			}
			checks = slices.DeleteFunc(checks, func(c check) bool { return !wanted.MatchString(c.String()) })
			for i := range checks {
				checks[i].id = len(all) + 1
				all = append(all, checks[i])
			}
			if len(checks) > 0 {
				if err := put(name, rewrite(source, checks)); err != nil {
					return overlay{}, err
				}
			}
		}
		if len(all) > count {
			if err := put("zz_mutants.go", fmt.Appendf(nil, switches, listed.Name)); err != nil {
				return overlay{}, err
			}
		}
	}
	config, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return overlay{}, err
	}
	file := filepath.Join(dir, "overlay.json")
	return overlay{file: file, checks: all}, os.WriteFile(file, config, 0o600)
}

// testBinary is one compiled package of tests.
type testBinary struct {
	pkg, dir, path string
}

// testPackages returns the packages whose tests depend on one of pkgs: pkgs
// themselves first, in the given order.
func testPackages(ctx context.Context, opt options, pkgs []string) ([]testBinary, error) {
	out, err := goCommand(ctx, opt.root, "list", "-test", "-f",
		`{{if .ForTest}}{{.ForTest}}|{{.Dir}}|{{join .Deps ","}}{{end}}`, "./...")
	if err != nil {
		return nil, err
	}
	moduleName, err := goCommand(ctx, opt.root, "list", "-m")
	if err != nil {
		return nil, err
	}
	module := strings.TrimSpace(string(moduleName))
	dirs := map[string]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.SplitN(strings.TrimSpace(line), "|", 3)
		if len(fields) != 3 {
			continue
		}
		deps := strings.Split(fields[2], ",")
		for _, pkg := range pkgs {
			full := module + "/" + pkg
			if fields[0] == module {
				continue // the root's tests judge the sources as they stand
			}
			if fields[0] == module+"/scripts" {
				continue // they run a binary that is built without the overlay
			}
			if fields[0] == full || !opt.own && slices.ContainsFunc(deps, func(d string) bool { d, _, _ = strings.Cut(d, " "); return d == full }) {
				// The root package is the module path alone: its folder is ".".
				dirs[strings.TrimPrefix(strings.TrimPrefix(fields[0], module), "/")] = fields[1]
			}
		}
	}
	var list []testBinary
	for pkg, dir := range dirs {
		list = append(list, testBinary{pkg: pkg, dir: dir})
	}
	rank := func(pkg string) int {
		if i := slices.Index(pkgs, pkg); i >= 0 {
			return i
		}
		return len(pkgs)
	}
	slices.SortFunc(list, func(a, b testBinary) int {
		if d := rank(a.pkg) - rank(b.pkg); d != 0 {
			return d
		}
		return strings.Compare(a.pkg, b.pkg)
	})
	return list, nil
}

func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("go %s: %w", strings.Join(args[:min(2, len(args))], " "), err), errors.New(stderr.String()))
	}
	return out, nil
}
