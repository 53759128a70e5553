package interop

import (
	"fmt"
	"slices"
	"testing"
)

// both runs a scenario with the engine and a peer, each creating the group once,
// in every suite that they share.
func both(t *testing.T, kind string, run func(t *testing.T, suite uint16, a, b peer)) {
	t.Parallel()
	p := start(t, kind)
	for _, suite := range p.info().Suites {
		t.Run(fmt.Sprintf("suite-%d", suite), func(t *testing.T) {
			t.Run("ours-creates", func(t *testing.T) { run(t, suite, &engine{}, p) })
			t.Run("theirs-creates", func(t *testing.T) { run(t, suite, p, &engine{}) })
		})
	}
}

func TestLifeOpenMLS(t *testing.T) { both(t, "OpenMLS", life) }

func TestLifeTSMLS(t *testing.T) {
	both(t, "ts-mls", func(t *testing.T, suite uint16, a, b peer) {
		if suite <= 3 {
			life(t, suite, a, b)
		} else {
			brief(t, suite, a, b)
		}
	})
}

// ReInit and branch; OpenMLS offers neither (docs/interop.md).
func TestSuccessionTSMLS(t *testing.T) {
	t.Parallel()
	p := start(t, "ts-mls")
	for _, suites := range [][2]uint16{{1, 3}, {2, 1}, {3, 2}} {
		t.Run(fmt.Sprintf("suite-%d", suites[0]), func(t *testing.T) {
			t.Run("ours-creates", func(t *testing.T) { succession(t, suites[0], suites[1], &engine{}, p) })
			t.Run("theirs-creates", func(t *testing.T) { succession(t, suites[0], suites[1], p, &engine{}) })
		})
	}
}

func TestGrowthOpenMLS(t *testing.T) {
	both(t, "OpenMLS", func(t *testing.T, suite uint16, a, b peer) { growth(t, suite, 17, a, b) })
}

func TestHalfEmptyOpenMLS(t *testing.T) { both(t, "OpenMLS", halfEmpty) }

func TestGrowthTSMLS(t *testing.T) {
	t.Parallel()
	p := start(t, "ts-mls")
	for _, suite := range []uint16{1, 2, 3} {
		t.Run(fmt.Sprintf("suite-%d/ours-creates", suite), func(t *testing.T) { growth(t, suite, 17, &engine{}, p) })
		t.Run(fmt.Sprintf("suite-%d/theirs-creates", suite), func(t *testing.T) { growth(t, suite, 17, p, &engine{}) })
	}
}

// Sizes around powers of two, and one in the hundreds.
func sized(t *testing.T, kind string, guests int, suites ...uint16) {
	t.Parallel()
	p := start(t, kind)
	sizes := []int{2, 3, 4, 5, 9, 33, 64, 129, 200}
	for _, size := range sizes {
		for i, suite := range suites {
			if i > 0 && size != 200 {
				continue
			}
			t.Run(fmt.Sprintf("suite-%d/ours-creates-%d", suite, size), func(t *testing.T) { crowd(t, suite, size, guests, &engine{}, p) })
			t.Run(fmt.Sprintf("suite-%d/theirs-creates-%d", suite, size), func(t *testing.T) { crowd(t, suite, size, guests, p, p) })
		}
	}
}

func TestSizesOpenMLS(t *testing.T) { sized(t, "OpenMLS", 8, 1, 2, 3) }
func TestSizesTSMLS(t *testing.T)   { sized(t, "ts-mls", 2, 1, 2, 3) }

// All three in one group, each creating it once.
func TestTogether(t *testing.T) {
	t.Parallel()
	kinds := []peer{&engine{}, start(t, "OpenMLS"), start(t, "ts-mls")}
	for _, suite := range kinds[1].info().Suites {
		if !slices.Contains(kinds[2].info().Suites, suite) {
			continue
		}
		for i, founder := range kinds {
			t.Run(fmt.Sprintf("suite-%d/%s-creates", suite, founder.name()), func(t *testing.T) {
				together(t, suite, founder, kinds[(i+1)%3], kinds[(i+2)%3])
			})
		}
	}
	t.Run("growth", func(t *testing.T) { growth(t, 1, 18, kinds...) })
}

func together(t *testing.T, suite uint16, a, b, c peer) {
	w := newWorld(t, suite)
	ann, bob, cat := w.person(a), w.person(b), w.person(c)
	w.found(ann)
	w.commit(ann, commitRequest{}, []*person{bob, cat, w.person(b)})
	w.chat(w.members...)
	for _, p := range []*person{cat, bob, ann} {
		w.commit(p, commitRequest{}, nil)
	}
	for i, p := range []*person{ann, bob, cat} {
		next := []*person{bob, cat, ann}[i]
		w.byReference(p, next)
		w.keys(p)
		w.external(p, next)
		w.lateMessages(p)
		w.private(p)
	}
	w.restart()
	w.chat(w.members...)
}
