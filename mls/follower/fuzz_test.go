package follower

import (
	"bytes"
	"crypto/sha256"
	"testing"

	"github.com/askucher/compax-core/mls/wire"
)

// FuzzStageCommit gives any handshake to a group. Whatever it is, the group stays
// what it was; what is accepted leads to a state that its stored change leads to
// as well, one epoch on. The message is signed again, so that the fuzzer reaches
// what lies behind signatures.
func FuzzStageCommit(f *testing.F) {
	w := grown(f, 6)
	w.hold(w.propose(1, w.update(1)))
	self := w.hold(w.propose(2, selfRemove()))
	seeds := []*wire.AuthenticatedContent{
		w.commit(member(0), nil, bad{}),
		w.commit(member(3), []wire.ProposalOrRef{self}, bad{}),
		w.commit(member(4), values(w.client("new").add(), remove(5), w.psk()), bad{}),
		w.commit(member(5), values(gce(w.g.Context().Extensions), appUpdate(testComponent, "x")), bad{}),
		w.commit(joining, values(w.externalInit(), remove(2)), bad{}),
		w.commit(member(0), values(w.reinit()), bad{noPath: true}),
		w.propose(3, w.update(3)),
		w.proposeAs(wire.Sender{SenderType: wire.SenderTypeExternal}, w.outside, remove(4)),
	}
	for _, ac := range seeds {
		f.Add(wire.Marshal(ac))
	}
	before := state(w.g)
	f.Fuzz(func(t *testing.T, data []byte) {
		ac := new(wire.AuthenticatedContent)
		if wire.Unmarshal(data, ac) != nil {
			return
		}
		if key := w.signers[0]; ac.Content.Sender.SenderType == wire.SenderTypeMember {
			ac.Content.Sender.LeafIndex = 0
			if sig, err := key.SignWithLabel("FramedContentTBS", ac.TBS(w.g.EncodedContext())); err == nil {
				ac.Auth.Signature = sig
			}
		}
		if g, err := w.g.HoldProposal(ac, w.options); err == nil && len(g.Proposals()) < len(w.g.Proposals()) {
			t.Fatal("holding a proposal lost one")
		}
		s, err := w.g.StageCommit(ac, w.options)
		if err == nil {
			next := s.Apply()
			loaded, err := Load(w.g.Marshal(), s.Delta())
			if err != nil {
				t.Fatal(err)
			}
			if next.Epoch() != w.g.Epoch()+1 || !bytes.Equal(loaded.Marshal(), next.Marshal()) {
				t.Fatal("the stored change leads to another state")
			}
		}
		if !bytes.Equal(state(w.g), before) {
			t.Fatal("the group changed")
		}
	})
}

// FuzzState loads any bytes, with a right checksum, as a base and as a change. A
// base that loads is written as the same bytes again.
func FuzzState(f *testing.F) {
	w := grown(f, 5)
	s, err := w.g.StageCommit(w.commit(member(1), values(remove(4), w.client("new").add()), bad{}), w.options)
	w.must(err)
	for _, b := range [][]byte{w.g.Marshal(), s.Delta(), s.Apply().Marshal()} {
		f.Add(b[:len(b)-sha256.Size])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b := seal(bytes.Clone(data), 0)
		if g, err := Unmarshal(b); err == nil && !bytes.Equal(g.Marshal(), b) {
			t.Fatal("a base is written as other bytes")
		}
		if g, err := w.g.ApplyDelta(b); err == nil && g.Epoch() != w.g.Epoch()+1 {
			t.Fatal("a change leads to another epoch")
		}
	})
}
