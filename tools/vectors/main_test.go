package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.json": `[{"cipher_suite":1},{"cipher_suite":1},{"cipher_suite":2}]`,
		"b.json": `[{"x":1},{"x":2}]`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	held, err := count(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := "a.json\t1\tT\tpassed\na.json\t1\tT\tpassed\na.json\t2\tT\tpassed\n"
	for _, c := range []struct {
		name string
		logs map[string]string
		ok   bool
		says string
	}{
		{"everything", map[string]string{"p": all + "b.json\t0\tT\tpassed\nb.json\t0\tT\tpassed\n"}, true, "5 cases, 5 passed"},
		{"in two packages", map[string]string{"p": all, "q": "b.json\t0\tT\tpassed\nb.json\t0\tT\tpassed\n"}, true, "5 cases, 5 passed"},
		{"a file that nobody runs", map[string]string{"p": all}, false, "NOT ALL"},
		{"a failed case", map[string]string{"p": all + "b.json\t0\tT\tpassed\nb.json\t0\tT\tfailed\n"}, false, "NOT ALL"},
		{"a package that leaves a suite out", map[string]string{"p": all + "b.json\t0\tT\tpassed\nb.json\t0\tT\tpassed\n", "q": "a.json\t1\tT\tpassed\na.json\t1\tT\tpassed\n"}, false, "q 0  <- NOT ALL"},
		{"a case that is not there", map[string]string{"p": all + "b.json\t0\tT\tpassed\nb.json\t0\tT\tpassed\nb.json\t7\tT\tpassed\n"}, false, "does not hold"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ran := map[string]tally{}
			for pkg, log := range c.logs {
				if ran[pkg], err = parseLog(log); err != nil {
					t.Fatal(err)
				}
			}
			var out bytes.Buffer
			if ok := report(&out, held, ran); ok != c.ok || !strings.Contains(out.String(), c.says) {
				t.Errorf("ok = %v, want %v with %q:\n%s", ok, c.ok, c.says, out.String())
			}
		})
	}
}
