package sim

import (
	"flag"
	"fmt"
	"testing"
)

var (
	seed  = flag.Uint64("sim.seed", 0, "replay this seed alone")
	seeds = flag.Int("sim.seeds", 2, "how many seeds of each plan to run")
	steps = flag.Int("sim.steps", 120, "steps of a run")
)

// TestHistories runs every kind of world from several seeds.
func TestHistories(t *testing.T) {
	faults := Faults{LoseRequest: 0.03, LoseAnswer: 0.03, Double: 0.03, CutAnswer: 0.02}
	for name, p := range map[string]Plan{
		"calm":     {People: 4},
		"faults":   {People: 4, Faults: faults},
		"crashes":  {People: 4, Crash: 0.15},
		"restarts": {People: 4, Faults: faults, Stop: 0.1, Crash: 0.15},
		"absence":  {People: 4, Away: 0.1, Weeks: true},
		"lost":     {People: 4, Away: 0.05, Lose: true},
		"restored": {People: 4, Stop: 0.1, Backup: true},
		"orphan":   {People: 5, Stop: 0.15, Backup: true, Orphan: true},
		"races":    {People: 4, Race: 0.4},
		"bots":     {People: 3, Bots: 1, Faults: faults, Crash: 0.15, Stop: 0.05},
		"copied":   {People: 4, Copy: 0.08, Crash: 0.1, Race: 0.2},
		"images":   {People: 4, Copy: 0.08, Crash: 0.1, Race: 0.2, Image: true},
		"storm":    {People: 6, Faults: faults, Crash: 0.1, Stop: 0.05, Away: 0.05, Weeks: true, Lose: true, Backup: true, Race: 0.1, Bots: 1},
	} {
		idle := map[string]int{} // in how many runs something never happened
		for i := range *seeds {
			p.Seed, p.Steps = uint64(1000*i+7), *steps
			if *seed != 0 {
				p.Seed = *seed
			}
			t.Run(fmt.Sprintf("%s/%d", name, p.Seed), func(t *testing.T) {
				w := NewWorld(t.TempDir(), p)
				defer func() {
					if err := w.Close(); err != nil {
						t.Error(err)
					}
				}()
				err := w.Run(t.Context())
				if err == nil {
					err = w.Judge(t.Context())
				}
				if err != nil {
					t.Fatalf("seed %d: %v\nreplay with -run 'TestHistories/%s' -sim.seed %d; the story:\n%s", p.Seed, err, name, p.Seed, w.Story())
				}
				t.Logf("%d messages acknowledged, %+v, %+v", len(w.said), w.network.Counts(), w.tally)
				for _, what := range w.Idle() {
					idle[what]++
				}
				if len(w.said) < p.Steps/20 {
					t.Errorf("only %d messages were acknowledged in %d steps: the run shows nothing", len(w.said), p.Steps)
				}
			})
			if *seed != 0 {
				break
			}
		}
		for what, n := range idle {
			if *seed == 0 && *seeds > 1 && n == *seeds {
				t.Errorf("%s: the plan was not exercised: never in %d runs: %s", name, n, what)
			}
		}
	}
}
