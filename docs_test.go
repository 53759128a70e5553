package compax

// Prose is tested: what the documents name exists. README's commands are run
// by the scripts package, over the real binary.

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	linkTarget = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	codeSpan   = regexp.MustCompile("`([^`\n]+)`")
	pathShape  = regexp.MustCompile(`^\.?[a-z0-9_]+([./][a-zA-Z0-9_.-]+)*/?$`)
	makeTarget = regexp.MustCompile(`\bmake ([a-z]+)`)
)

// documents returns every Markdown file of the repository with its text.
func documents(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipFolder(path, d)
		}
		if filepath.Ext(path) == ".md" {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			out[path] = string(text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 5 {
		t.Fatalf("only %d documents found", len(out))
	}
	return out
}

func TestDocumentsNameWhatExists(t *testing.T) {
	roots := topLevelNames(t)
	for doc, text := range documents(t) {
		for _, ref := range references(text, roots) {
			path := ref.path
			if ref.link {
				path = filepath.Join(filepath.Dir(doc), path)
			}
			if _, err := os.Stat(filepath.FromSlash(path)); err != nil {
				t.Errorf("%s names %s, which does not exist", doc, ref.path)
			}
		}
	}
}

func TestDocumentsNameMakeTargetsThatExist(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for doc, text := range documents(t) {
		for _, m := range makeTarget.FindAllStringSubmatch(inCode(text), -1) {
			if !strings.Contains(string(makefile), "\n"+m[1]+": ") {
				t.Errorf("%s names `make %s`, which the Makefile does not have", doc, m[1])
			}
		}
	}
}

func TestDocumentsNameTestsThatExist(t *testing.T) {
	known := testNames(t)
	for doc, text := range documents(t) {
		for _, m := range codeSpan.FindAllStringSubmatch(text, -1) {
			name, _, _ := strings.Cut(m[1], "/")
			if testName.MatchString(name) && !known[name] {
				t.Errorf("%s names %s, which does not exist", doc, name)
			}
		}
	}
}

var (
	testName     = regexp.MustCompile(`^(Test|Fuzz|Benchmark|Example)[A-Z]\w*$`)
	testFunction = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)[A-Z]\w*)\(`)
)

// testNames are the test, fuzz, benchmark and example functions of the module.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipFolder(path, d)
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, m := range testFunction.FindAllSubmatch(text, -1) {
			out[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// reference is a path that a document names: a link is relative to the
// document, a code span to the root of the repository.
type reference struct {
	path string
	link bool
}

// references returns the links and the code spans of text that name something
// in the repository. A span counts when its first element is one of roots.
func references(text string, roots map[string]bool) []reference {
	var out []reference
	for _, m := range linkTarget.FindAllStringSubmatch(text, -1) {
		target, _, _ := strings.Cut(m[1], "#")
		if target != "" && !strings.Contains(target, "://") {
			out = append(out, reference{path: target, link: true})
		}
	}
	for _, m := range codeSpan.FindAllStringSubmatch(text, -1) {
		first, _, _ := strings.Cut(m[1], "/")
		if pathShape.MatchString(m[1]) && roots[first] {
			out = append(out, reference{path: m[1]})
		}
	}
	return out
}

// inCode returns the fenced blocks and code spans of text.
func inCode(text string) string {
	var out strings.Builder
	for i, part := range strings.Split(text, "```") {
		if i%2 == 1 {
			out.WriteString(part + "\n")
			continue
		}
		for _, m := range codeSpan.FindAllStringSubmatch(part, -1) {
			out.WriteString(m[1] + "\n")
		}
	}
	return out.String()
}

// topLevelNames are the first elements of paths in this repository: of what
// is there, and of the import table's rows.
func topLevelNames(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out[e.Name()] = true
	}
	for pattern := range parseTable(t, mayImport) {
		first, _, _ := strings.Cut(pattern, "/")
		out[first] = true
	}
	return out
}

func TestReferences(t *testing.T) {
	text := "See [a](docs/a.md#part), [site](https://example.org/x) and `store/sqlite`, not `x509/y` or `store and bus`."
	want := []reference{{"docs/a.md", true}, {"store/sqlite", false}}
	if got := references(text, map[string]bool{"store": true}); !slices.Equal(got, want) {
		t.Errorf("references = %v, want %v", got, want)
	}
}

func TestDecisionsAreNumberedAndListed(t *testing.T) {
	index, err := os.ReadFile("docs/adr/README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("docs/adr/[0-9]*.md")
	if err != nil {
		t.Fatal(err)
	}
	numbers := map[string]string{}
	for _, file := range files {
		name := filepath.Base(file)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		title, _, _ := strings.Cut(strings.TrimPrefix(string(text), "# "), "\n")
		number, rest, _ := strings.Cut(title, ". ")
		if !strings.HasPrefix(name, number+"-") {
			t.Errorf("%s is titled %q", file, title)
		}
		if !strings.Contains(string(index), "["+number+"]("+name+") "+rest+"\n") {
			t.Errorf("docs/adr/README.md does not list %s as %q", name, rest)
		}
		if other, twice := numbers[number]; twice {
			t.Errorf("%s and %s share a number", name, other)
		}
		numbers[number] = name
		for _, part := range []string{"Status: ", "## Context", "## Choice", "## Consequences"} {
			if !strings.Contains(string(text), "\n"+part) {
				t.Errorf("%s has no %q", file, part)
			}
		}
	}
	if len(numbers) < 10 {
		t.Errorf("only %d decisions found", len(numbers))
	}
}
