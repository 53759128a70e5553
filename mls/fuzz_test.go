package mls_test

import (
	"bytes"
	"errors"
	"sync"
	"testing"

	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/wire"
	"github.com/askucher/compax-core/mlstest"
)

// scene is a group in the middle of an epoch, with a public follower beside the
// members and genuine messages of every kind that may come next.
type scene struct {
	w        *mlstest.World
	insider  *mlstest.Client
	member   *mlstest.Client
	follower *follower.Group
	messages [][]byte
	state    []byte
}

var sceneOf = sync.OnceValue(func() *scene {
	t := new(testing.T) // fails by panicking: a scene is made before any fuzzing
	w := mlstest.NewWorld(t, testSuite, 21, mlstest.Capable())
	for len(w.Members) < 6 {
		w.Add(w.Members[len(w.Members)-1], 1)
	}
	gone := w.Members[3]
	w.Commit(w.Members[0], mls.CommitParams{Proposals: mlstest.Remove(gone)})
	s := &scene{w: w, insider: w.Members[0], member: w.Members[1]}
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	update, err := w.Members[2].Group.ProposeUpdate(mls.ProposeParams{Random: w.Random(), Now: w.Now}, mls.LeafChange{})
	must(err)
	w.Propose(w.Members[2], update)
	public, err := follower.Unmarshal(s.member.Group.Public().Marshal())
	must(err)
	var m wire.MLSMessage
	must(wire.Unmarshal(update.Message, &m))
	public, err = public.HoldProposal(follower.Authenticated(m.PublicMessage), s.options())
	must(err)
	s.follower = public
	add := mls.AddProposal(&w.Client().KeyPackage(w.Now).KeyPackage)
	psk, err := s.insider.Group.ResumptionPSKProposal(w.Random(), s.insider.Group.GroupID(), s.insider.Group.Epoch())
	must(err)
	commits := []mls.CommitParams{
		{}, {Proposals: []wire.Proposal{add}}, {Proposals: mlstest.Remove(w.Members[2]), Skip: []wire.ProposalRef{update.Ref}},
		{Proposals: []wire.Proposal{psk, mls.AppDataUpdateProposal(0x8001, []byte("x"))}},
		{Proposals: []wire.Proposal{add}, OmitPath: true, Skip: []wire.ProposalRef{update.Ref}},
	}
	for _, p := range commits {
		p.Random, p.Now = w.Random(), w.Now
		c, err := s.insider.Group.Commit(p)
		must(err)
		s.messages = append(s.messages, c.Message)
	}
	for _, p := range []wire.Proposal{add, psk, mls.RemoveProposal(2), mls.SelfRemoveProposal(), mls.GroupContextExtensionsProposal(mlstest.Capable())} {
		out, err := s.insider.Group.Propose(mls.ProposeParams{Now: w.Now, Proposal: p})
		must(err)
		s.messages = append(s.messages, out.Message)
	}
	info, err := s.insider.Group.GroupInfo(true, nil)
	must(err)
	joiner := w.Client()
	external, err := joiner.Config.ExternalJoin(mls.ExternalJoinParams{
		Random: w.Random(), Now: w.Now, GroupInfo: info, Signer: joiner.Signer, Credential: joiner.Credential(),
	})
	must(err)
	s.messages = append(s.messages, external.Message)
	s.state = mlstest.State(s.member.Group)
	return s
})

func (s *scene) options() follower.Options {
	return follower.Options{Now: s.w.Now, AppData: mlstest.Replace}
}

// onlySecretsTell says that an error is one that public state cannot see.
func onlySecretsTell(err error) bool {
	for _, e := range []error{
		mls.ErrMembershipTag, mls.ErrConfirmationTag, mls.ErrPath, mls.ErrMissingPSK, mls.ErrDecrypt, mls.ErrOwnMessage,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// FuzzFollowerAgainstMember changes a genuine handshake message, as a dishonest
// member could, and gives it to a member and to a follower. Both must come to
// the same verdict, apart from what only secrets can tell, and to the same next
// GroupContext byte for byte.
func FuzzFollowerAgainstMember(f *testing.F) {
	for i := range uint8(11) {
		f.Add(i, true, []byte{})
		f.Add(i, true, []byte{0, 40, 7, 0, 90, 200, 1, 44, 3})
		f.Add(i, false, []byte{0, 10, 1})
	}
	f.Fuzz(func(t *testing.T, which uint8, resign bool, changes []byte) {
		s := sceneOf()
		message := bytes.Clone(s.messages[int(which)%len(s.messages)])
		for ; len(changes) >= 3; changes = changes[3:] {
			at := int(changes[0])<<8 | int(changes[1])
			message[at%len(message)] ^= changes[2]
		}
		var m wire.MLSMessage
		if wire.Unmarshal(message, &m) != nil || m.PublicMessage == nil {
			if _, err := s.member.Group.Process(message, mls.ProcessParams{Now: s.w.Now}); err == nil {
				t.Fatal("a member takes what does not decode as a PublicMessage")
			}
			return
		}
		content := &m.PublicMessage.Content
		if resign && content.Sender.SenderType == wire.SenderTypeMember && content.ContentType != wire.ContentTypeApplication {
			content.Sender.LeafIndex = s.insider.Group.OwnLeaf()
			message = s.insider.Group.ForgePublic(*content, m.PublicMessage.Auth.ConfirmationTag, nil)
			if err := wire.Unmarshal(message, &m); err != nil {
				t.Fatalf("what was encoded does not decode: %v", err)
			}
		}
		received, memberErr := s.member.Group.Process(message, mls.ProcessParams{Now: s.w.Now})
		var next *follower.Group
		var followerErr error
		ac := follower.Authenticated(m.PublicMessage)
		switch ac.Content.ContentType {
		case wire.ContentTypeCommit:
			var staged *follower.Staged
			if staged, followerErr = s.follower.StageCommit(ac, s.options()); followerErr == nil {
				next = staged.Apply()
			}
		default:
			next, followerErr = s.follower.HoldProposal(ac, s.options())
		}
		switch {
		case followerErr != nil && memberErr == nil:
			t.Fatalf("the member takes what the follower refuses: %v", followerErr)
		case followerErr == nil && memberErr != nil && !onlySecretsTell(memberErr):
			t.Fatalf("the follower takes what the member refuses: %v", memberErr)
		case memberErr == nil:
			group := groupAfter(t, received)
			if staged, ok := received.(*mls.StagedCommit); ok && staged.SelfRemoved {
				break
			}
			if !bytes.Equal(group.Public().EncodedContext(), next.EncodedContext()) ||
				len(group.Proposals()) != len(next.Proposals()) {
				t.Fatal("member and follower go on differently")
			}
		}
		if !bytes.Equal(s.state, mlstest.State(s.member.Group)) {
			t.Fatal("the member's group changed")
		}
	})
}

func groupAfter(t *testing.T, r mls.Received) *mls.Group {
	switch r := r.(type) {
	case *mls.ProposalReceived:
		return r.Next
	case *mls.StagedCommit:
		return r.Next
	}
	t.Fatalf("%T is no handshake", r)
	return nil
}

// FuzzProcess gives a member any bytes.
func FuzzProcess(f *testing.F) {
	s := sceneOf()
	for _, m := range s.messages {
		f.Add(m)
	}
	f.Add(s.insider.Seal("text"))
	state := mlstest.State(s.member.Group)
	f.Fuzz(func(t *testing.T, message []byte) {
		_, err := s.member.Group.Process(message, mls.ProcessParams{Now: s.w.Now})
		if err != nil {
			holdsNoSecret(t, s.member.Group, err.Error())
		}
		if !bytes.Equal(state, mlstest.State(s.member.Group)) {
			t.Fatal("the group changed")
		}
	})
}

// FuzzLoad gives Load stored state that was damaged in a way that its checksums
// do not notice, as a program with a fault could have written it: it must not
// panic, and what it loads must be storable again.
func FuzzLoad(f *testing.F) {
	s := sceneOf()
	records := s.member.Records()
	config := s.member.Config
	for i := range records {
		f.Add(uint16(i), uint16(3), byte(1))
	}
	f.Fuzz(func(t *testing.T, which, at uint16, change byte) {
		list := append([]mls.Record(nil), records...)
		i := int(which) % len(list)
		list[i] = mls.DamageRecord(list[i], int(at), change)
		g, err := config.Load(list)
		if err != nil {
			if !errors.Is(err, mls.ErrState) && !errors.Is(err, mls.ErrParams) {
				t.Fatalf("an error of another kind: %v", err)
			}
			return
		}
		if _, err := config.Load(g.Records()); err != nil {
			t.Fatalf("what was loaded is not stored in a way that loads: %v", err)
		}
	})
}

// FuzzUnmarshalRecords reads any bytes as records.
func FuzzUnmarshalRecords(f *testing.F) {
	f.Add(mls.MarshalRecords(sceneOf().member.Group.Records()))
	f.Fuzz(func(t *testing.T, data []byte) {
		records, err := mls.UnmarshalRecords(data)
		if err == nil && !bytes.Equal(mls.MarshalRecords(records), data) {
			t.Fatal("the records are not written as they were read")
		}
	})
}
