package node

// docs/operating.md is held to what can be configured, both ways.

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/askucher/compax-core/delivery/server"
)

func TestOperatingPageListsEverySetting(t *testing.T) {
	page := operatingPage(t)
	fields := map[string]bool{}
	settings(reflect.TypeFor[file](), "", fields)
	if len(fields) < 30 {
		t.Fatalf("only %d settings found", len(fields))
	}
	listed := firstColumn(section(t, page, "## The configuration file", "### Budgets"))
	compare(t, "setting", fields, listed)

	variables := map[string]bool{}
	for _, name := range []string{EnvConfig, EnvMetricsToken, EnvHome, EnvDatabase, EnvArchiveRetention} {
		variables[name] = true
	}
	compare(t, "variable", variables, firstColumn(section(t, page, "## The environment", "## Day by day")))
}

func TestOperatingPageListsEveryBudgetAndRule(t *testing.T) {
	page := operatingPage(t)
	budgets := map[string]bool{}
	for name, b := range server.DefaultBuckets() {
		budgets[name] = true
		if row := fmt.Sprintf("| `%s` | %g | %.0f |", name, b.Burst, b.PerHour); !strings.Contains(page, row) {
			t.Errorf("docs/operating.md has no row that begins with %q", row)
		}
	}
	compare(t, "bucket", budgets, firstColumn(section(t, page, "### Budgets", "### Rules")))

	rules := map[string]bool{}
	for rule, mode := range server.Rules() {
		rules[string(rule)] = true
		if row := fmt.Sprintf("| `%s` | %s |", rule, mode); !strings.Contains(page, row) {
			t.Errorf("docs/operating.md has no row that begins with %q", row)
		}
	}
	compare(t, "rule", rules, firstColumn(section(t, page, "### Rules", "## The environment")))
}

// The numbers of the page are those that check fills in.
func TestOperatingPageGivesTheDefaults(t *testing.T) {
	page := operatingPage(t)
	c := Config{}
	if err := c.check(); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]any{
		"dir": c.Dir, "listen": c.Listen, "domain": c.Domain, "name": c.Name, "metrics.bind": c.MetricsListen,
	} {
		if row := fmt.Sprintf("| `%s` | `%v` |", name, value); !strings.Contains(page, row) {
			t.Errorf("docs/operating.md has no row that begins with %q", row)
		}
	}
	for name, value := range map[string]int{
		"retention_days": c.RetentionDays, "max_members": c.MaxMembers, "max_devices": c.MaxDevices, "max_revocations": c.MaxRevocations, "max_connections": c.MaxConnections,
		"max_connections_per_address": c.MaxPerAddress, "drain_seconds": c.DrainSeconds,
	} {
		if row := fmt.Sprintf("| `%s` | %d |", name, value); !strings.Contains(page, row) {
			t.Errorf("docs/operating.md has no row that begins with %q", row)
		}
	}
}

// settings collects the names of all fields of a section of the file. What maps
// hold has tables of its own.
func settings(section reflect.Type, prefix string, into map[string]bool) {
	for i := range section.NumField() {
		f := section.Field(i)
		name := prefix + f.Tag.Get("json")
		switch f.Type.Kind() {
		case reflect.Struct:
			settings(f.Type, name+".", into)
		case reflect.Map:
		default:
			into[name] = true
		}
	}
}

func operatingPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section cuts a page from one heading to another.
func section(t *testing.T, page, from, to string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, "\n"+from)
	if !found {
		t.Fatalf("docs/operating.md has no heading %q", from)
	}
	text, _, found := strings.Cut(rest, "\n"+to)
	if !found {
		t.Fatalf("docs/operating.md has no heading %q", to)
	}
	return text
}

var named = regexp.MustCompile("`([a-zA-Z_.]+)`")

// firstColumn lists what stands as code in the first column of the tables.
func firstColumn(text string) map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(text) {
		cell, _, _ := strings.Cut(strings.TrimPrefix(line, "|"), "|")
		if strings.HasPrefix(line, "| `") {
			for _, m := range named.FindAllStringSubmatch(cell, -1) {
				out[m[1]] = true
			}
		}
	}
	return out
}

func compare(t *testing.T, kind string, want, listed map[string]bool) {
	t.Helper()
	for name := range want {
		if !listed[name] {
			t.Errorf("docs/operating.md does not list the %s %s", kind, name)
		}
	}
	for name := range listed {
		if !want[name] {
			t.Errorf("docs/operating.md lists the %s %s, which there is not", kind, name)
		}
	}
}
