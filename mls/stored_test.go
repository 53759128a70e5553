package mls_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mlstest"
)

// Records that are each in order and do not belong together are refused, and the
// error says what is wrong with them.
func TestStoredPartsBelongTogether(t *testing.T) {
	w, c := eventful(t)
	early := c.Records()
	w.Commit(w.Members[0], mls.CommitParams{})
	w.Commit(w.Members[2], mls.CommitParams{})
	records := c.Records()
	stranger := w.Client().KeyPackage(w.Now).InitPrivate
	leaf := uint32(tree.LeafIndex(c.Group.OwnLeaf()).Node())
	blank := uint32(0)
	for width := c.Group.Public().Tree().Width(); c.Group.Public().Tree().PublicKey(tree.NodeIndex(blank)) != nil; blank++ {
		if blank > 2*width {
			t.Fatal("no blank node")
		}
	}
	of := func(prefix string) (list []mls.Record) {
		for _, r := range records {
			if strings.HasPrefix(r.Key, prefix) {
				list = append(list, r)
			}
		}
		slices.SortFunc(list, func(a, b mls.Record) int { return strings.Compare(a.Key, b.Key) })
		return list
	}
	changes, past := of("tree/"), of("past/")
	if len(changes) < 2 || len(past) == 0 {
		t.Fatalf("%d changes of the tree, %d past epochs", len(changes), len(past))
	}
	replace := func(r mls.Record) []mls.Record { return replaced(slices.Clone(records), r) }
	without := func(gone mls.Record) []mls.Record {
		return slices.DeleteFunc(slices.Clone(records), func(r mls.Record) bool { return r.Key == gone.Key })
	}
	core := recordOf(t, records, "core")
	for name, x := range map[string]struct {
		records []mls.Record
		why     string
	}{
		"another's leaf":          {replace(mls.DamageRecord(core, 6, 3)), "is not this client's"},
		"a key of a blank node":   {replace(c.Group.CoreWith(map[uint32][]byte{blank: stranger}, nil)), "of the blank node"},
		"without its leaf's key":  {replace(c.Group.CoreWith(map[uint32][]byte{leaf: nil}, nil)), "private key of the leaf is missing"},
		"a change in between":     {without(changes[len(changes)-2]), "is missing"},
		"the last change":         {without(changes[len(changes)-1]), "is missing"},
		"a core of before":        {replaced(slices.Clone(records), recordOf(t, early, "core")), "epoch"},
		"a past epoch of nothing": {append(slices.Clone(records), mls.MoveRecord(past[0], "past/00000000000fffff")), "of no known epoch"},
	} {
		_, err := c.Config.Load(x.records)
		if !errors.Is(err, mls.ErrState) || !strings.Contains(err.Error(), x.why) {
			t.Errorf("%s: %v; want one that says %q", name, err, x.why)
		}
	}
}

// A base of a later epoch than the core is another group's, or a store's that was cut.
func TestStoredBaseIsNotLater(t *testing.T) {
	w, c := eventful(t)
	core := recordOf(t, c.Records(), "core")
	base := recordOf(t, c.Records(), "tree")
	for range 200 { // until the tree is written whole again
		w.Commit(w.Members[0], mls.CommitParams{})
		if later := recordOf(t, c.Records(), "tree"); string(later.Value) != string(base.Value) {
			_, err := c.Config.Load(replaced(c.Records(), core))
			if !errors.Is(err, mls.ErrState) || !strings.Contains(err.Error(), "the group of") {
				t.Errorf("a base of a later epoch: %v", err)
			}
			return
		}
	}
	t.Fatal("the tree was never written again")
}

// Who was removed keeps the epoch that it was removed from, or nothing.
func TestStoredLastEpochOfARemovedMember(t *testing.T) {
	w := trio(t, 3)
	c := w.Members[2]
	w.Commit(w.Members[0], mls.CommitParams{})
	w.Commit(w.Members[0], mls.CommitParams{Proposals: mlstest.Remove(c)})
	records := c.Records()
	last := ""
	epochs := 0
	for _, r := range records {
		if strings.HasPrefix(r.Key, "past/") {
			last, epochs = max(last, r.Key), epochs+1
		}
	}
	if epochs < 2 {
		t.Fatalf("%d past epochs", epochs)
	}
	records = slices.DeleteFunc(records, func(r mls.Record) bool { return r.Key == last })
	if _, err := c.Config.Load(records); !errors.Is(err, mls.ErrState) || !strings.Contains(err.Error(), "before the removal") {
		t.Errorf("without the last epoch: %v", err)
	}
}

// What a commit of one's own, and an update that it covers, were made with has to be
// there when they come back, and to be of that commit.
func TestStoredSecretsOfOwnMessages(t *testing.T) {
	w := trio(t, 2)
	c := w.Members[1]
	commit := commitOf(t, w, c, mls.CommitParams{})
	c.Take(*commit.Keep())
	records := c.Records()
	for _, r := range records {
		if strings.HasPrefix(r.Key, "own/") {
			records = replaced(records, mls.DamageRecord(r, -1, 1))
		}
	}
	loaded, err := c.Config.Load(records)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := loaded.Process(commit.Message, mls.ProcessParams{Now: w.Now}); !errors.Is(err, mls.ErrState) || !strings.Contains(err.Error(), "of another commit") {
		t.Errorf("a commit of one's own with other secrets: %v", err)
	}

	w = trio(t, 2)
	c = w.Members[1]
	update, err := c.Group.ProposeUpdate(mls.ProposeParams{Random: w.Random(), Now: w.Now}, mls.LeafChange{})
	if err != nil {
		t.Fatal(err)
	}
	w.Propose(c, update)
	records = slices.DeleteFunc(c.Records(), func(r mls.Record) bool { return strings.HasPrefix(r.Key, "update/") })
	if loaded, err = c.Config.Load(records); err != nil {
		t.Fatal(err)
	}
	covering := commitOf(t, w, w.Members[0], mls.CommitParams{})
	if _, err := loaded.Process(covering.Message, mls.ProcessParams{Now: w.Now}); !errors.Is(err, mls.ErrState) || !strings.Contains(err.Error(), "own update is missing") {
		t.Errorf("an update whose key is gone: %v", err)
	}
}
