package compax

// docs/mutants.md is held to the reasons in the sources, both ways. tools/mutants, which
// writes it, holds it to the checks themselves when it runs.

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestMutantsPageListsEveryReason(t *testing.T) {
	page, err := os.ReadFile("docs/mutants.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{} // "file: reason"; true when a source has it
	for _, m := range regexp.MustCompile("(?m)^- `([^`]+)`, `[^`]+`: `[^`]+`: (.+)$").FindAllStringSubmatch(string(page), -1) {
		listed[m[1]+": "+m[2]] = false
	}
	said := regexp.MustCompile(`(?m)^\s*// mutants: equivalent: (.+)$`)
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "tools" || d.Name() == "node_modules" || d.Name() != "." && strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range said.FindAllSubmatch(source, -1) {
			key := filepath.ToSlash(path) + ": " + string(m[1])
			if _, found := listed[key]; !found {
				t.Errorf("docs/mutants.md lacks %q: tools/mutants.sh -list writes it", key)
			}
			listed[key] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(listed) == 0 {
		t.Error("docs/mutants.md lists nothing")
	}
	for key, found := range listed {
		if !found {
			t.Errorf("docs/mutants.md lists %q, which no source says", key)
		}
	}
}
