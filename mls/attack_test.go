package mls_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
	"github.com/askucher/compax-core/mlstest"
)

const testSuite = suite.X25519AES128GCMSHA256Ed25519

// trio is a group of n members, each of whom has committed.
func trio(t testing.TB, n int) *mlstest.World {
	t.Helper()
	w := mlstest.NewWorld(t, testSuite, 7, mlstest.Capable())
	for len(w.Members) < n {
		w.Add(w.Members[len(w.Members)-1], 1)
	}
	w.Commit(w.Members[n-1], mls.CommitParams{})
	return w
}

// refused checks that a client refuses a message for a reason and that its state
// is the same to the byte, in memory and as it would be stored.
func refused(t *testing.T, w *mlstest.World, c *mlstest.Client, message []byte, want error) {
	t.Helper()
	before := mlstest.State(c.Group)
	r, err := c.Group.Process(message, mls.ProcessParams{Now: w.Now})
	if !errors.Is(err, want) {
		t.Fatalf("%s: got %T and %v, want %v", c.Name, r, err, want)
	}
	if r != nil { // also no typed nil, which a caller's switch would take for a result
		t.Fatalf("%s: a refusal comes with a %T", c.Name, r)
	}
	if !bytes.Equal(before, mlstest.State(c.Group)) {
		t.Fatalf("%s: the refusal changed the state", c.Name)
	}
	holdsNoSecret(t, c.Group, err.Error())
}

// goesOn checks that a group works: everybody reads everybody, a commit of the
// member is taken by all.
func goesOn(t *testing.T, w *mlstest.World) {
	t.Helper()
	w.Chat(2 * len(w.Members))
	w.Commit(w.Members[0], mls.CommitParams{})
}

// public decodes a PublicMessage.
func public(t *testing.T, message []byte) *wire.PublicMessage {
	t.Helper()
	var m wire.MLSMessage
	if err := wire.Unmarshal(message, &m); err != nil {
		t.Fatal(err)
	}
	if m.PublicMessage == nil {
		t.Fatal("not a PublicMessage")
	}
	return m.PublicMessage
}

func encode(m *wire.PublicMessage) []byte {
	return wire.Marshal(&wire.MLSMessage{WireFormat: wire.WireFormatPublicMessage, PublicMessage: m})
}

// content is the frame of a content of a member.
func content(g *mls.Group, kind wire.ContentType) wire.FramedContent {
	return wire.FramedContent{
		GroupID: g.GroupID(), Epoch: g.Epoch(), ContentType: kind,
		Sender: wire.Sender{SenderType: wire.SenderTypeMember, LeafIndex: g.OwnLeaf()},
	}
}

// commitOf makes a commit by a member, honestly.
func commitOf(t testing.TB, w *mlstest.World, c *mlstest.Client, p mls.CommitParams) *mls.Commit {
	t.Helper()
	p.Random, p.Now = w.Random(), w.Now
	commit, err := c.Group.Commit(p)
	if err != nil {
		t.Fatal(err)
	}
	return commit
}

// forgedCommit signs whatever commit as a member, with the true membership key
// and some confirmation tag: public checks must refuse it before the tag counts.
func forgedCommit(c *mlstest.Client, commit *wire.Commit) []byte {
	frame := content(c.Group, wire.ContentTypeCommit)
	frame.Commit = commit
	return c.Group.ForgePublic(frame, make([]byte, c.Suite.HashSize()), nil)
}

func byValue(list ...wire.Proposal) []wire.ProposalOrRef {
	var out []wire.ProposalOrRef
	for i := range list {
		out = append(out, wire.ProposalOrRef{Type: wire.ProposalOrRefTypeProposal, Proposal: &list[i]})
	}
	return out
}

// failing is a source of randomness that fails after n bytes.
type failing struct {
	from io.Reader
	left int
}

var errNoRandomness = errors.New("no more randomness")

func (f *failing) Read(p []byte) (int, error) {
	if f.left <= 0 {
		return 0, errNoRandomness
	}
	if len(p) > f.left {
		p = p[:f.left]
	}
	n, err := f.from.Read(p)
	f.left -= n
	return n, err
}
