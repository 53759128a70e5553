package sdk_test

import (
	"bytes"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/mls/wire"
	"github.com/askucher/compax-core/sdk"
)

// replaced is a chat of two in which a copy of Ada's profile has taken her place, and
// Ada, whose process is not started again yet.
func replaced(t *testing.T) (ada, twin, bob *person, room delivery.RoomID) {
	t.Helper()
	h := newHome(t)
	ada, bob = newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := bob.NewRoom(t.Context(), "Copies")
	must(t, err)
	bob.invite(room, ada)
	ada.say(room, "one")
	twin = ada.copied()
	ada.say(room, "two")
	twin.opens(nil)
	twin.say(room, "from the copy")
	must(t, ada.Close())
	return ada, twin, bob, room
}

// TestCopyComesBackAtTheSecondTry: the service holds a device back that comes in again
// where its copy is. It reads its other chats, and comes in when it is asked again.
func TestCopyComesBackAtTheSecondTry(t *testing.T) {
	ada, _, bob, room := replaced(t)
	ctx := t.Context()
	other, err := bob.NewRoom(ctx, "Other")
	must(t, err)
	var b *between
	ada.opens(func(c *sdk.Config) {
		b = &between{Transport: c.Transport}
		c.Transport = b
	})
	slow := jsonOf(t, delivery.Refuse(delivery.CodeSlowDown, "resync").Problem())
	b.answer = func(_, path string, _ url.Values) (int, string, []byte) {
		if strings.HasSuffix(path, room.String()+"/append") {
			return 429, delivery.ProblemType, slow
		}
		return 0, "", nil
	}
	bob.invite(other, ada)
	bob.say(other, "here")
	if err := ada.Sync(ctx); delivery.CodeOf(err) != delivery.CodeSlowDown {
		t.Errorf("held back: %v", err)
	}
	ada.reads(other, "here")
	b.answer = nil
	ada.say(room, "back")
	bob.reads(room, "one", "two", "from the copy", "back")
}

// TestCopyHasLeft: a copy has left the chat for the account, or the account was removed
// since the copy is there. The device is out, and says so.
func TestCopyHasLeft(t *testing.T) {
	for name, end := range map[string]func(ada, twin, bob *person, room delivery.RoomID) error{
		"left": func(_, twin, _ *person, room delivery.RoomID) error { return twin.Leave(t.Context(), room) },
		"removed": func(ada, _, bob *person, room delivery.RoomID) error {
			return bob.Remove(t.Context(), room, ada.Identity())
		},
	} {
		t.Run(name, func(t *testing.T) {
			ada, twin, bob, room := replaced(t)
			must(t, end(ada, twin, bob, room))
			ada.opens(nil)
			must(t, ada.Sync(t.Context()))
			if got := ada.status(room); got != sdk.StatusOut {
				t.Errorf("the chat is %s", got)
			}
			if _, err := ada.Send(t.Context(), room, sdk.Draft{Text: "hello"}); !errors.Is(err, sdk.ErrOut) {
				t.Errorf("saying something: %v", err)
			}
		})
	}
}

// TestImageOfARunningMachine: two copies hold one session, so no login tells. What one
// reads of the other does: it logs in, the other one is cut off, and both say so.
func TestImageOfARunningMachine(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Image")
	must(t, err)
	ada.invite(room, bob)
	ada.say(room, "one")
	sealed, err := ada.LeaveSession([]byte("here"))
	must(t, err)
	must(t, ada.Close())
	twin := ada.copied()
	left := func(c *sdk.Config) { c.Left = sdk.Left{Sealed: sealed, Place: []byte("here")} }
	ada.opens(left)
	warned := twin.opens(left)
	must(t, ada.Refresh(ctx, room))
	must(t, twin.Refresh(ctx, room))
	ada.say(room, "from the first")
	twin.opened(room, warned)
	if err := ada.Refresh(ctx, room); !errors.Is(err, client.ErrCopied) {
		t.Errorf("the first one goes on: %v", err)
	}
	twin.say(room, "from the copy")
	bob.reads(room, "one", "from the first", "from the copy")
}

// opened reads a chat to its end and expects a word of a copy.
func (p *person) opened(room delivery.RoomID, warned *[]string) {
	p.t.Helper()
	must(p.t, p.Refresh(p.t.Context(), room))
	must(p.t, p.Refresh(p.t.Context(), room)) // the next request logs in
	if !warnsOfCopy(*warned) {
		p.t.Errorf("it warns of %q", *warned)
	}
}

// TestAttackRemovalThatNobodySigned: a service that shows a copied device a SelfRemove of
// its own account, which no member signed, does not make it believe that it has left.
func TestAttackRemovalThatNobodySigned(t *testing.T) {
	ada, _, bob, room := replaced(t)
	bob.reads(room, "one", "two", "from the copy")
	epoch := bob.epoch(room)
	forged := func(leaf uint32) []byte {
		public := wire.PublicMessage{
			Content: wire.FramedContent{
				GroupID: room[:], Epoch: epoch, ContentType: wire.ContentTypeProposal,
				Sender:   wire.Sender{SenderType: wire.SenderTypeMember, LeafIndex: leaf},
				Proposal: &wire.Proposal{ProposalType: wire.ProposalTypeSelfRemove, SelfRemove: &wire.SelfRemove{}},
			},
			Auth:          wire.FramedContentAuthData{Signature: make([]byte, 64)},
			MembershipTag: make([]byte, 32),
		}
		return wire.Marshal(&wire.MLSMessage{WireFormat: wire.WireFormatPublicMessage, PublicMessage: &public})
	}
	var b *between
	ada.opens(func(c *sdk.Config) {
		b = &between{Transport: c.Transport}
		c.Transport = b
	})
	shown := 0
	b.answer = func(_, path string, _ url.Values) (int, string, []byte) {
		if !strings.HasSuffix(path, room.String()+"/proposals") {
			return 0, "", nil
		}
		shown++
		page := delivery.LogPage{Head: 9, First: 1}
		for leaf := range uint32(2) {
			page.Entries = append(page.Entries, delivery.Entry{Seq: uint64(leaf) + 1, Epoch: epoch, Kind: delivery.KindProposal, Bytes: forged(leaf)})
		}
		return 200, delivery.BinaryType, page.AppendTo(nil)
	}
	if err := ada.Refresh(t.Context(), room); err == nil || shown == 0 {
		t.Errorf("it was shown %d times, and says %v", shown, err)
	}
	if got := ada.status(room); got != sdk.StatusOpen {
		t.Errorf("the chat is %s", got)
	}
	b.answer = nil
	ada.say(room, "here I am")
	bob.reads(room, "one", "two", "from the copy", "here I am")
}

// TestAttackEvidenceOfACopy: a service that shows a device what nobody signed as this
// device's own commit, or one of its own messages under that label, does not make it believe
// in a copy of its profile, and the chat goes on.
func TestAttackEvidenceOfACopy(t *testing.T) {
	for name, forge := range map[string]func(room sdk.Room, own []byte) []byte{
		"its own message as a commit": func(_ sdk.Room, own []byte) []byte { return own },
		"a commit without a signature": func(room sdk.Room, _ []byte) []byte {
			public := wire.PublicMessage{
				Content: wire.FramedContent{
					GroupID: room.ID[:], Epoch: room.Epoch, ContentType: wire.ContentTypeCommit,
					Sender: wire.Sender{SenderType: wire.SenderTypeMember, LeafIndex: 0}, // who made the room
					Commit: &wire.Commit{},
				},
				Auth:          wire.FramedContentAuthData{Signature: make([]byte, 64), ConfirmationTag: make([]byte, 32)},
				MembershipTag: make([]byte, 32),
			}
			return wire.Marshal(&wire.MLSMessage{WireFormat: wire.WireFormatPublicMessage, PublicMessage: &public})
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
			room := ada.room("Labels")
			ada.invite(room, bob)
			must(t, ada.Close())
			var b *between
			warned := ada.opens(func(c *sdk.Config) {
				b = &between{Transport: c.Transport}
				c.Transport = b
			})
			var own []byte
			b.body = func(path string, r io.Reader) io.Reader {
				if !strings.HasSuffix(path, room.String()+"/append") {
					return r
				}
				raw, err := io.ReadAll(r)
				must(t, err)
				a, err := delivery.ParseAppend(raw)
				must(t, err)
				own = a.Entry
				return bytes.NewReader(raw)
			}
			ada.say(room, "one")
			b.body = nil
			before, err := ada.RoomOf(t.Context(), room)
			must(t, err)
			shown := 0
			b.answer = func(_, path string, _ url.Values) (int, string, []byte) {
				if !strings.HasSuffix(path, room.String()+"/log") {
					return 0, "", nil
				}
				shown++
				entry := delivery.Entry{Seq: before.Cursor + 1, Epoch: before.Epoch, Kind: delivery.KindCommit, Bytes: forge(before, own)}
				page := delivery.LogPage{Head: entry.Seq, First: 1, Entries: []delivery.Entry{entry}}
				return 200, delivery.BinaryType, page.AppendTo(nil)
			}
			if err := ada.Refresh(t.Context(), room); shown == 0 {
				t.Errorf("it was never shown: %v", err)
			}
			if warnsOfCopy(*warned) {
				t.Errorf("it believes in a copy: %q", *warned)
			}
			b.answer = nil
			ada.say(room, "two")
			bob.reads(room, "one", "two")
		})
	}
}
