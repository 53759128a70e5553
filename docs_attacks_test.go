package compax

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestEveryAttackHasItsTests holds docs/negative-tests.md whole: each numbered row
// stands there once and names at least one test, and there are at least sixty
// tests in all. That each of them exists is held by the test of all documents.
func TestEveryAttackHasItsTests(t *testing.T) {
	raw, err := os.ReadFile("docs/negative-tests.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\| (\d+) \|.*$`)
	name := regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)`")
	mls, delivery, found := strings.Cut(string(raw), "\n## Delivery\n")
	if !found {
		t.Fatal("no section Delivery")
	}
	all := map[string]bool{}
	for _, m := range name.FindAllStringSubmatch(string(raw), -1) {
		all[m[1]] = true
	}
	if len(all) < 60 {
		t.Errorf("%d tests are named, want at least 60", len(all))
	}
	for section, want := range map[string]struct {
		text string
		rows []int
	}{
		"MLS":      {mls, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28}},
		"Delivery": {delivery, []int{1, 2, 3, 4, 5, 6, 7, 8, 10}},
	} {
		tests := map[int]int{}
		for _, m := range row.FindAllStringSubmatch(want.text, -1) {
			n, _ := strconv.Atoi(m[1]) // digits by the pattern
			if _, twice := tests[n]; twice {
				t.Errorf("%s: row %d stands there twice", section, n)
			}
			tests[n] = len(name.FindAllString(m[0], -1))
		}
		for _, n := range want.rows {
			if tests[n] == 0 {
				t.Errorf("%s: row %d is missing or names no test", section, n)
			}
		}
	}
}
