// Package testdata finds the large files that tests read in place instead of
// carrying copies of them: the official RFC 9420 vectors, the MIMI content
// examples, the wallet vectors; and the programs that tests compare with.
//
// They live in a folder named shared. The folder is $COMPAX_SHARED when that
// is set, and otherwise stands beside the repository (../shared). A clone
// without it still tests, with the project's own recorded cases: what needs
// the folder skips and says where the data comes from. With CI=true what is
// missing is a failure, so that no run reports green by not looking.
//
// Only tests and test-support packages may import this package; the import
// table in arch_test.go holds that. Start reading at Path.
package testdata

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// origins says, by first path element, where the data of a folder comes from,
// for whoever has to fetch it.
var origins = map[string]string{
	"mls-vectors":           "github.com/mlswg/mls-implementations, folder test-vectors",
	"mimi-content-examples": "github.com/ietf-wg-mimi/draft-ietf-mimi-content, folder examples",
	"wallet-vectors":        "the BIPs, SLIPs, EIPs and libraries named in its SOURCES.md",
	"botapi":                "github.com/PaulSonOfLars/telegram-bot-api-spec and github.com/aiogram/aiogram, folder .butcher",
	"specs":                 "the RFC Editor and the IETF Datatracker",
}

// Path returns the absolute path of rel below the shared folder. rel is
// slash-separated and stays below the folder ("mls-vectors/tree-math.json").
// When the folder or the file is not there, the test is skipped with a line
// that names the file and its origin; when CI=true it fails instead.
func Path(t testing.TB, rel string) string {
	t.Helper()
	if !filepath.IsLocal(filepath.FromSlash(rel)) {
		t.Fatalf("testdata: %q must be a relative path below the shared folder", rel)
	}
	dir, err := sharedDir()
	if err == nil {
		path := filepath.Join(dir, filepath.FromSlash(rel))
		if _, err = os.Stat(path); err == nil {
			return path
		}
	}
	missing(t, rel, err)
	return ""
}

// Shared returns the content of the file rel below the shared folder, under
// the same terms as Path.
func Shared(t testing.TB, rel string) []byte {
	t.Helper()
	data, err := os.ReadFile(Path(t, rel))
	if err != nil {
		t.Fatalf("testdata: reading %s: %v", rel, err)
	}
	return data
}

// missing ends the test: a failure in CI, a skip that says what to fetch elsewhere.
func missing(t testing.TB, rel string, cause error) {
	t.Helper()
	folder, _, _ := strings.Cut(rel, "/")
	origin, known := origins[folder]
	if !known {
		origin = "unknown: add it to internal/testdata"
	}
	text := fmt.Sprintf("%s is not here (%v).\nOrigin: %s.\nPut it into ../shared beside the repository, or set COMPAX_SHARED to the folder that holds %s.",
		rel, cause, origin, folder)
	absent(t, text)
}

// Program returns the path of a program that a test compares with ("node").
// When it is not installed, the test ends as with [Path]; how says how to get it.
func Program(t testing.TB, name, how string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		absent(t, fmt.Sprintf("%s is not installed (%v): %s.", name, err, how))
	}
	return path
}

// absent ends the test for what it needs and is not here.
func absent(t testing.TB, text string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("testdata: %s", text)
	}
	t.Skipf("SKIPPED, NOT TESTED: %s", text)
}

// sharedDir is the folder, looked up once a process.
var sharedDir = sync.OnceValues(func() (string, error) {
	wd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the working directory: %w", err)
	}
	return locate(os.Getenv("COMPAX_SHARED"), wd)
})

// locate returns the shared folder: env when set, else the folder shared
// beside the repository that holds wd. In a linked git worktree it also looks
// beside the main checkout, which is where such a folder usually stands.
func locate(env, wd string) (string, error) {
	if env != "" {
		if err := isDir(env); err != nil {
			return "", fmt.Errorf("COMPAX_SHARED: %w", err)
		}
		return filepath.Abs(env)
	}
	root, err := moduleRoot(wd)
	if err != nil {
		return "", err
	}
	beside := []string{root}
	if main, ok := mainCheckout(root); ok {
		beside = append(beside, main)
	}
	var tried []error
	for _, checkout := range beside {
		dir := filepath.Join(filepath.Dir(checkout), "shared")
		err := isDir(dir)
		if err == nil {
			return dir, nil
		}
		tried = append(tried, err)
	}
	return "", errors.Join(tried...)
}

// moduleRoot walks up from dir to the folder that holds go.mod.
func moduleRoot(dir string) (string, error) {
	for at := dir; ; {
		if _, err := os.Stat(filepath.Join(at, "go.mod")); err == nil {
			return at, nil
		}
		up := filepath.Dir(at)
		if up == at {
			return "", fmt.Errorf("no go.mod in %s or above it", dir)
		}
		at = up
	}
}

// mainCheckout returns the main checkout of a linked git worktree: there .git
// is a file that reads "gitdir: <main>/.git/worktrees/<name>".
func mainCheckout(root string) (string, bool) {
	data, err := os.ReadFile(filepath.Join(root, ".git"))
	if err != nil {
		return "", false
	}
	gitdir, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
	if !ok {
		return "", false
	}
	if !filepath.IsAbs(gitdir) {
		gitdir = filepath.Join(root, gitdir)
	}
	worktrees := filepath.Dir(gitdir)
	if filepath.Base(worktrees) != "worktrees" {
		return "", false
	}
	return filepath.Dir(filepath.Dir(worktrees)), true
}

func isDir(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &fs.PathError{Op: "open", Path: path, Err: errors.New("not a directory")}
	}
	return nil
}
