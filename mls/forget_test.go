package mls_test

import (
	"errors"
	"testing"

	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/wire"
	"github.com/askucher/compax-core/mlstest"
)

// A group whose secrets were wiped is of no use: what it would derive from zeros
// anybody can derive.
func TestForgottenGroupsGiveNothing(t *testing.T) {
	const component = wire.ComponentID(0x8001)
	seal := func(g *mls.Group, w *mlstest.World) error {
		_, err := g.Seal(mls.SealParams{Random: w.Random(), Content: []byte("text")})
		return err
	}
	t.Run("sealed", func(t *testing.T) {
		w := trio(t, 3)
		for _, first := range []bool{true, false} { // with the ratchet underived, and derived
			old := w.Members[0].Group
			w.Members[0].Seal("text")
			if err := seal(old, w); !errors.Is(err, mls.ErrForgotten) {
				t.Errorf("sealing again, first %v: %v", first, err)
			}
		}
	})
	t.Run("opened", func(t *testing.T) {
		w := trio(t, 3)
		for range 2 {
			old, message := w.Members[0].Group, w.Members[1].Seal("text")
			if _, err := w.Members[0].Process(w.Now, message); err != nil {
				t.Fatal(err)
			}
			if _, err := old.Process(message, mls.ProcessParams{Now: w.Now}); !errors.Is(err, mls.ErrForgotten) {
				t.Errorf("opening again: %v", err)
			}
		}
	})
	t.Run("exported", func(t *testing.T) {
		w := trio(t, 3)
		old := w.Members[0].Group
		exported, err := old.ExportSafe(component)
		if err != nil {
			t.Fatal(err)
		}
		exported.Forget()
		if _, err := old.ExportSafe(component + 1); !errors.Is(err, mls.ErrForgotten) {
			t.Errorf("exporting again: %v", err)
		}
	})
	t.Run("committed", func(t *testing.T) {
		w := trio(t, 3)
		old := w.Members[0].Group
		w.Commit(w.Members[1], mls.CommitParams{})
		for name, err := range map[string]error{
			"seal": seal(old, w),
			"commit": func() error {
				_, err := old.Commit(mls.CommitParams{Random: w.Random(), Now: w.Now})
				return err
			}(),
			"propose": func() error {
				_, err := old.Propose(mls.ProposeParams{Random: w.Random(), Now: w.Now, Proposal: mls.RemoveProposal(1)})
				return err
			}(),
			"export":      func() error { _, err := old.Export("label", nil, 32); return err }(),
			"export safe": func() error { _, err := old.ExportSafe(component); return err }(),
			"group info":  func() error { _, err := old.GroupInfo(false, nil); return err }(),
		} {
			if !errors.Is(err, mls.ErrForgotten) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("discarded", func(t *testing.T) {
		w := trio(t, 3)
		c := w.Members[0]
		commit := commitOf(t, w, c, mls.CommitParams{})
		c.Take(*commit.Keep())
		c.Take(*c.Group.Discard())
		if _, err := commit.Apply(c.Group, w.Now); !errors.Is(err, mls.ErrForgotten) {
			t.Errorf("applying a commit that was discarded: %v", err)
		}
		goesOn(t, w)
	})
}
