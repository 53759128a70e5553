package node

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestEveryFaultHasItsLine: one that is wrong hides no other, in both languages.
func TestEveryFaultHasItsLine(t *testing.T) {
	for name, text := range map[string]string{
		"faults.json": `{
  "listen": "nowhere",
  "nobody": 1,
  "retention_days": "soon",
  "metrics": {
    "bind": 7,
    "token": "short"
  },
  "congestion": {"cpu_busy": 9,
    "cpu_congested": 1,
    "refuse_calls_at": "maybe"},
  "buckets": {
    "enrol": {"burst": -1}, "rooom": {}
  },
  "pow": {"step": 1.5}
}
`,
		"faults.toml": `
listen = "nowhere"
nobody = 1
retention_days = "soon"
[metrics]
bind = 7
token = "short"

[congestion]
cpu_congested = 1
refuse_calls_at = "maybe"
cpu_busy = 9
[buckets.enrol]
burst = -1
[buckets.rooom]
[pow]
step = 1.5
`,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name)
			check(t, os.WriteFile(path, []byte(text), 0o600))
			_, err := Load(func(k string) string { return map[string]string{EnvConfig: path}[k] })
			var faults Faults
			if !errors.As(err, &faults) {
				t.Fatalf("%v", err)
			}
			lines := map[string]map[string]int{
				"faults.json": {"listen": 2, "nobody": 3, "retention_days": 4, "metrics.bind": 6, "metrics.token": 7, "congestion.cpu_busy": 9,
					"congestion.refuse_calls_at": 11, "buckets.enrol": 13, "buckets.rooom": 13, "pow.step": 15},
				"faults.toml": {"listen": 2, "nobody": 3, "retention_days": 4, "metrics.bind": 6, "metrics.token": 7, "congestion.cpu_busy": 12,
					"congestion.refuse_calls_at": 11, "buckets.enrol": 13, "buckets.rooom": 15, "pow.step": 17},
			}[name]
			got := map[string]int{}
			for _, f := range faults {
				got[f.Setting] = f.Line
				if f.File != path || f.Text == "" {
					t.Errorf("%+v", f)
				}
			}
			for setting, line := range lines {
				if got[setting] != line {
					t.Errorf("%s: line %d, want %d", setting, got[setting], line)
				}
			}
			if len(got) != len(lines) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestTheEnvironmentsFaultsAreNotTheFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "server.json")
	check(t, os.WriteFile(path, []byte(`{"home": "a1b2c3"}`), 0o600))
	_, err := Load(func(k string) string { return map[string]string{EnvConfig: path, EnvHome: "xyz"}[k] })
	var faults Faults
	if !errors.As(err, &faults) || len(faults) != 1 || faults[0].File != "" || faults[0].Setting != "home" {
		t.Errorf("%v", err)
	}
	check(t, os.WriteFile(path, []byte("{\n\"pow\": {\"step\": 1,\n\"step\": 2}}"), 0o600))
	_, err = Load(func(k string) string { return map[string]string{EnvConfig: path}[k] })
	if !errors.As(err, &faults) || len(faults) != 1 || faults[0].Line != 3 || faults[0].Setting != "pow.step" {
		t.Errorf("set twice: %v", err)
	}
}
