package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// preamble begins the list of the checks that no test can notice.
const preamble = `# Checks that no test notices

` + "`make mutants`" + ` takes each check that refuses something out of the code and sees a test
fail. These are the ones of which none can: each has its reason in a comment in the source,
` + "`mutants: equivalent: why`" + `, from which ` + "`tools/mutants.sh -list`" + ` writes this page. A run
fails when another check survives, when a test notices one of these, and when the page is
not what the sources say; a test of the repository holds the page to them, too.

`

// listed is a check in the list.
func (c check) listed() string {
	return fmt.Sprintf("- `%s/%s`, `%s`: `%s`: %s\n", c.pkg, c.file, c.function, c.source, c.equivalent)
}

// list is the page of the checks that are said to be equivalent.
func list(checks []check) string {
	var lines []string
	for _, c := range checks {
		if c.equivalent != "" {
			lines = append(lines, c.listed())
		}
	}
	slices.Sort(lines)
	return preamble + strings.Join(lines, "")
}

func writeList(opt options, checks []check) error {
	return os.WriteFile(filepath.Join(opt.root, opt.list), []byte(list(checks)), 0o644)
}

// compareList says how the list differs from what the sources of pkgs say, where
// there is one.
func compareList(opt options, pkgs []string, checks []check) error {
	if opt.list == "" {
		return nil
	}
	page, err := os.ReadFile(filepath.Join(opt.root, opt.list))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	want := map[string]bool{}
	for _, c := range checks {
		if c.equivalent != "" {
			want[c.listed()] = true
		}
	}
	var faults []error
	for line := range strings.Lines(string(page)) {
		path, _, _ := strings.Cut(strings.TrimPrefix(line, "- `"), "`")
		if !strings.HasPrefix(line, "- `") || !slices.Contains(pkgs, filepath.ToSlash(filepath.Dir(path))) {
			continue
		}
		if !want[line] {
			faults = append(faults, fmt.Errorf("%s lists what is not there: %s", opt.list, strings.TrimSpace(line)))
		}
		delete(want, line)
	}
	for line := range want {
		faults = append(faults, fmt.Errorf("%s does not list %s", opt.list, strings.TrimSpace(line)))
	}
	return errors.Join(faults...)
}
