package interop

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestMatrix holds the table of docs/interop.md to what the peers that take part
// say of themselves, and the rows to the features that the scenarios know.
func TestMatrix(t *testing.T) {
	text, err := os.ReadFile("../docs/interop.md")
	if err != nil {
		t.Fatal(err)
	}
	columns, rows := table(t, string(text))
	var keys []string
	for key := range rows {
		keys = append(keys, key)
	}
	want := append(allFeatures(), "version", "suites")
	slices.Sort(keys)
	slices.Sort(want)
	if !slices.Equal(keys, want) {
		t.Fatalf("docs/interop.md has the rows %v, the scenarios %v", keys, want)
	}
	took := 0
	for i, kind := range columns {
		switch {
		case kind == "Compax":
			column(t, rows, i, (&engine{}).info())
		case wanted(kind):
			took++
			column(t, rows, i, start(t, kind).info())
		default:
			t.Logf("%s takes no part in this run: its column is not compared", kind)
		}
	}
	if want := os.Getenv("COMPAX_INTEROP"); want != "" && took != len(strings.Split(want, ",")) {
		t.Errorf("COMPAX_INTEROP=%s, and %d of them have a column", want, took)
	}
}

// table reads the first table whose first cell is "key".
func table(t *testing.T, text string) (columns []string, rows map[string][]string) {
	rows = map[string][]string{}
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		switch {
		case len(cells) < 3:
			if columns != nil {
				return columns, rows
			}
		case cells[0] == "key":
			columns = cells[2:]
		case columns != nil && !strings.HasPrefix(cells[0], "---"):
			if len(cells) != len(columns)+2 {
				t.Fatalf("row %s has %d cells", cells[0], len(cells))
			}
			rows[cells[0]] = cells[2:]
		}
	}
	t.Fatal("docs/interop.md has no table that begins with key and ends")
	return nil, nil
}

func column(t *testing.T, rows map[string][]string, i int, said info) {
	for _, f := range features {
		want := "no"
		if slices.Contains(said.Can, f.key) {
			want = "yes"
		}
		if have := rows[f.key][i]; have != want {
			t.Errorf("docs/interop.md: %s %s: %q, and it says %q", said.Peer, f.key, have, want)
		}
	}
	for _, key := range said.Can {
		if !slices.Contains(allFeatures(), key) {
			t.Errorf("%s offers %s, which no scenario uses", said.Peer, key)
		}
	}
	suites := strings.Trim(strings.ReplaceAll(fmt.Sprint(said.Suites), " ", ", "), "[]")
	if have := rows["suites"][i]; have != suites {
		t.Errorf("docs/interop.md: %s has the suites %s, and says %s", said.Peer, have, suites)
	}
	if have := rows["version"][i]; said.Peer != "Compax" && have != said.Peer {
		t.Errorf("docs/interop.md: version %s, and it says %s", have, said.Peer)
	}
}
