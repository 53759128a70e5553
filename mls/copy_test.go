package mls_test

import (
	"errors"
	"testing"

	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/wire"
)

// A state that is used in two places is noticed by either: what the copy sent is
// read where its key is unused, uses that key up there too, and says whose it is.
func TestCopyOfTheState(t *testing.T) {
	w := trio(t, 3)
	first := w.Members[0]
	copied := first.Copy()
	one, two := copied.Seal("one"), copied.Seal("two")
	for i, message := range [][]byte{two, one} { // late ones as well
		got, err := first.Process(w.Now, message)
		if err != nil {
			t.Fatal(err)
		}
		a, ok := got.(*mls.Application)
		if !ok || !a.Own || a.Generation != uint32(1-i) || a.Sender.Leaf != first.Group.OwnLeaf() {
			t.Fatalf("got %+v", got)
		}
		refused(t, w, first, message, mls.ErrOwnMessage)
	}
	sealed, err := first.Group.Seal(mls.SealParams{Random: w.Random(), Content: []byte("three")})
	if err != nil || sealed.Generation != 2 {
		t.Fatalf("after two messages of the copy the next key is %d (%v)", sealed.Generation, err)
	}
	for _, message := range [][]byte{one, two, sealed.Message} { // nobody else sees a difference
		got, err := w.Members[1].Process(w.Now, message)
		if err != nil || got.(*mls.Application).Own {
			t.Fatalf("%+v, %v", got, err)
		}
	}
}

// What both have sent under one generation neither can verify: it is named by its
// generation, and changes nothing.
func TestCopyUnderTheSameKey(t *testing.T) {
	w := trio(t, 3)
	first := w.Members[0]
	copied := first.Copy()
	theirs := copied.Seal("theirs")
	first.Seal("ours")
	first.Seal("ours too")
	refused(t, w, first, theirs, mls.ErrOwnMessage)
	_, err := first.Group.Process(theirs, mls.ProcessParams{Now: w.Now})
	var own *mls.OwnMessageError
	if !errors.As(err, &own) || own.Generation != 0 {
		t.Fatalf("got %v", err)
	}
}

// A member who knows every key of the epoch, but not the signature key, makes
// nobody believe that their state was copied.
func TestAttackPretendedCopy(t *testing.T) {
	w := trio(t, 3)
	by, victim := w.Members[0], w.Members[1]
	leaf := victim.Group.OwnLeaf()
	frame := content(by.Group, wire.ContentTypeApplication)
	frame.ApplicationData = []byte("I am you")
	refused(t, w, victim, by.Group.ForgePrivate(w.Random(), frame, mls.Forged{Leaf: &leaf, Keys: true}), mls.ErrSignature)
	if _, err := w.Members[2].Process(w.Now, victim.Seal("still me")); err != nil {
		t.Fatal(err)
	}

	commit := public(t, commitOf(t, w, victim.Copy(), mls.CommitParams{}).Message)
	commit.Auth.Signature[3] ^= 1
	by.Group.ForgeTag(commit)
	refused(t, w, victim, encode(commit), mls.ErrSignature)
	goesOn(t, w)
}
