package mls_test

import (
	"testing"

	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mlstest"
)

// A loaded group shares no memory with the records it was read from: what it forgets
// does not change them, and changing them does not change it.
func TestLoadedGroupOwnsItsSecrets(t *testing.T) {
	w := trio(t, 3)
	c := w.Members[0]
	for _, m := range w.Members { // a secret tree in every stage, a past epoch, an update
		late := m.Seal("a")
		if m != c {
			if _, err := c.Process(w.Now, late); err != nil {
				t.Fatal(err)
			}
		}
	}
	exported, err := c.Group.ExportSafe(0x8001)
	if err != nil {
		t.Fatal(err)
	}
	c.Take(exported.Step)
	update, err := c.Group.ProposeUpdate(mls.ProposeParams{Random: w.Random(), Now: w.Now}, mls.LeafChange{})
	if err != nil {
		t.Fatal(err)
	}
	w.Propose(c, update)
	c.Take(*commitOf(t, w, c, mls.CommitParams{}).Keep())

	records := c.Group.Records()
	first, err := c.Config.Load(records)
	if err != nil {
		t.Fatal(err)
	}
	before := string(mlstest.State(first))
	second, err := c.Config.Load(records)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		for i := range r.Value {
			r.Value[i] ^= 0xff
		}
	}
	if string(mlstest.State(first)) != before || string(mlstest.State(second)) != before {
		t.Error("changing the records changed the group that was read from them")
	}
}
