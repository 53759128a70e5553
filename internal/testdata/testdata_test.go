package testdata

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree makes folders and files (content "x") below a temporary folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestLocate(t *testing.T) {
	dir := tree(t, map[string]string{
		"shared/mls-vectors/a.json": "x",
		"repo/go.mod":               "module m",
		"repo/deep/er/a.go":         "package er",
		"elsewhere/wt/go.mod":       "module m",
		"elsewhere/wt/.git":         "gitdir: " + "../../repo/.git/worktrees/wt\n",
		"lone/repo/go.mod":          "module m",
		"nomodule/a":                "x",
	})
	want := filepath.Join(dir, "shared")
	for _, c := range []struct{ name, env, wd, want, err string }{
		{"beside the repository", "", "repo", want, ""},
		{"from a package folder", "", "repo/deep/er", want, ""},
		{"from a linked worktree", "", "elsewhere/wt", want, ""},
		{"named by the environment", want, "lone/repo", want, ""},
		{"environment names no folder", filepath.Join(dir, "absent"), "repo", "", "COMPAX_SHARED"},
		{"environment names a file", filepath.Join(dir, "nomodule", "a"), "repo", "", "not a directory"},
		{"lone clone", "", "lone/repo", "", "no such file"},
		{"no module", "", "nomodule", "", "no go.mod"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := locate(c.env, filepath.Join(dir, c.wd))
			if got != c.want {
				t.Errorf("locate = %q, want %q", got, c.want)
			}
			if (err != nil) != (c.err != "") || (err != nil && !strings.Contains(err.Error(), c.err)) {
				t.Errorf("error = %v, want one with %q", err, c.err)
			}
		})
	}
}

// ended records how a test would have ended.
type ended struct {
	testing.TB
	how, text string
}

func (e *ended) Helper()                           {}
func (e *ended) Fatalf(format string, args ...any) { e.how = "failed"; e.text = format; panic(e) }
func (e *ended) Skipf(format string, args ...any)  { e.how = "skipped"; e.text = format; panic(e) }

func TestMissingSkipsLoudlyAndFailsInCI(t *testing.T) {
	for what, look := range map[string]func(testing.TB){
		"file":    func(t testing.TB) { Path(t, "mls-vectors/no-such-file.json") },
		"program": func(t testing.TB) { Program(t, "no-such-program", "write it") },
	} {
		for ci, want := range map[string]string{"": "skipped", "true": "failed"} {
			t.Setenv("CI", ci)
			e := &ended{TB: t}
			func() {
				defer func() {
					if r := recover(); r != nil && r != any(e) {
						panic(r)
					}
				}()
				look(e)
			}()
			if e.how != want {
				t.Errorf("CI=%q: a missing %s: the test %q, want %s", ci, what, e.how, want)
			}
		}
	}
}

func TestPathRefusesToLeaveTheFolder(t *testing.T) {
	for _, rel := range []string{"../go.mod", "/etc/passwd", ""} {
		e := &ended{TB: t}
		func() {
			defer func() { _ = recover() }()
			Path(e, rel)
		}()
		if e.how != "failed" {
			t.Errorf("Path(%q) went on", rel)
		}
	}
}

func TestEveryOriginIsAFolderOfTheSharedData(t *testing.T) {
	for folder := range origins {
		if info, err := os.Stat(Path(t, folder)); err != nil || !info.IsDir() {
			t.Errorf("%s: not a folder (%v)", folder, err)
		}
	}
}

func TestRanWritesALineForEachCase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	t.Setenv("COMPAX_VECTORS_LOG", path)
	t.Run("two cases", func(t *testing.T) {
		Ran(t, "a.json", 1)
		Ran(t, "b.json", 0)
	})
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const name = "TestRanWritesALineForEachCase/two_cases"
	want := "b.json\t0\t" + name + "\tpassed\na.json\t1\t" + name + "\tpassed\n"
	if string(got) != want {
		t.Errorf("log is %q, want %q", got, want)
	}
}
