package server

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// member is a device with an MLS engine: what a real client does, in tests only
// (the service itself cannot reach package mls).
type member struct {
	*device
	t       testing.TB
	signer  *suite.SignatureKey
	config  mls.Config
	bundles []*mls.KeyPackageBundle
	rooms   map[delivery.RoomID]*view
}

// view is how far a member is in a room.
type view struct {
	group *mls.Group
	seq   uint64
	texts []string
}

func (in *instance) member(d *device) *member {
	t := in.w.t
	t.Helper()
	in.join(d)
	cs, err := suite.Lookup(in.w.suite)
	check(t, err)
	signer, err := cs.NewSignatureKey(d.key.Seed())
	check(t, err)
	m := &member{device: d, t: t, signer: signer, rooms: map[delivery.RoomID]*view{}}
	m.config = mls.Config{Signers: []*suite.SignatureKey{signer}, Credentials: policy.Credentials{}, AppData: policy.ApplyUpdate}
	return m
}

// people makes members, one device each, with packages published.
func (in *instance) people(names ...string) []*member {
	out := make([]*member, len(names))
	for i, n := range names {
		out[i] = in.member(newPerson(n).attest(in.w.t, n))
		out[i].publish(5, false)
	}
	return out
}

func (m *member) now() time.Time { return m.at.w.clock.Now() }

func (m *member) credential() wire.Credential { return wire.BasicCredential(m.cred.Bytes()) }

func (m *member) bundle(edit ...func(*mls.KeyPackageParams)) *mls.KeyPackageBundle {
	m.t.Helper()
	p := mls.KeyPackageParams{
		CipherSuite: m.at.w.suite, Random: rand.Reader, Signer: m.signer, Credential: m.credential(), Capabilities: policy.Capabilities(),
		NotBefore: m.now().Add(-time.Hour), NotAfter: m.now().Add(80 * 24 * time.Hour), LeafExtensions: policy.LeafExtensions(),
	}
	for _, f := range edit {
		f(&p)
	}
	b, err := mls.NewKeyPackage(p)
	check(m.t, err)
	return b
}

func (m *member) publish(n int, lastResort bool) {
	m.t.Helper()
	var req delivery.PublishRequest
	for range n {
		b := m.bundle(func(p *mls.KeyPackageParams) { p.LastResort = lastResort })
		m.bundles = append(m.bundles, b)
		req.Packages = append(req.Packages, b.Message())
	}
	check(m.t, m.json(delivery.RoutePublish, req, nil))
}

// create makes a room with this device in it and others listed.
func (m *member) create(kind delivery.RoomKind, others ...*member) delivery.RoomID {
	m.t.Helper()
	id, body := m.creation(kind, others...)
	_, err := m.call(delivery.RouteCreateRoom, body, "")
	check(m.t, err)
	return id
}

func (m *member) creation(kind delivery.RoomKind, others ...*member) (delivery.RoomID, []byte) {
	m.t.Helper()
	id, err := delivery.NewRoomID(testHome, rand.Reader)
	check(m.t, err)
	c := policy.Creation{Room: id, Kind: kind, Domain: "localhost", SenderKey: m.at.SenderKey(), Creator: m.owner.id, Suite: m.at.w.suite}
	for _, o := range others {
		c.Others = append(c.Others, o.owner.id)
	}
	x, err := c.Extensions()
	check(m.t, err)
	return id, m.found(id, x)
}

// successor makes a room that goes on with another one, as this device knows it.
func (m *member) successor(old delivery.RoomID, edit ...func(*policy.Creation)) delivery.RoomID {
	m.t.Helper()
	id, err := delivery.NewRoomID(testHome, rand.Reader)
	check(m.t, err)
	g := m.in(old).group
	room, err := policy.RoomOf(g.Context().Extensions)
	check(m.t, err)
	roster, err := policy.TrustedRoster(policy.Leaves(g.Public()))
	check(m.t, err)
	c := policy.Creation{
		Room: id, Kind: room.Kind, Domain: "localhost", SenderKey: m.at.SenderKey(), Creator: m.owner.id, Suite: m.at.w.suite,
		Succeeds: room.Settled(roster, policy.HeldOf(g.Public())),
	}
	for _, f := range edit {
		f(&c)
	}
	x, err := c.Extensions()
	check(m.t, err)
	_, err = m.call(delivery.RouteCreateRoom, m.found(id, x), "")
	check(m.t, err)
	return id
}

func (m *member) succeed(old, next delivery.RoomID) error {
	return m.json(delivery.RouteSucceed, delivery.SucceedRequest{Successor: next}, nil, old.String())
}

func (m *member) found(id delivery.RoomID, x wire.Extensions) []byte {
	m.t.Helper()
	step, err := m.config.Create(mls.CreateParams{
		Random: rand.Reader, Now: m.now(), CipherSuite: m.at.w.suite, GroupID: id[:], Extensions: x,
		Leaf: mls.CreatorLeaf{
			Signer: m.signer, Credential: m.credential(), Capabilities: policy.Capabilities(), Extensions: policy.LeafExtensions(),
			NotBefore: m.now().Add(-time.Hour), NotAfter: m.now().Add(80 * 24 * time.Hour),
		},
	})
	check(m.t, err)
	m.rooms[id] = &view{group: step.Next}
	info, err := step.Next.GroupInfo(false, nil)
	check(m.t, err)
	return (&delivery.CreateRoomRequest{GroupInfo: info, Tree: step.Next.RatchetTree()}).AppendTo(nil)
}

func (m *member) in(id delivery.RoomID) *view {
	m.t.Helper()
	v := m.rooms[id]
	if v == nil {
		m.t.Fatal("the member does not know the room")
	}
	return v
}

// claim takes packages of a person.
func (m *member) claim(id delivery.RoomID, who identity.PublicKey) []*wire.KeyPackage {
	m.t.Helper()
	var r delivery.ClaimResponse
	check(m.t, m.json(delivery.RouteClaim, delivery.ClaimRequest{Identity: who, Suite: uint16(m.at.w.suite), Room: id}, &r))
	var out []*wire.KeyPackage
	for _, raw := range r.Packages {
		var w wire.MLSMessage
		check(m.t, wire.Unmarshal(raw, &w))
		out = append(out, w.KeyPackage)
	}
	return out
}

// adding are the proposals that add people with all their devices.
func (m *member) adding(id delivery.RoomID, people ...person) []wire.Proposal {
	m.t.Helper()
	room, err := policy.RoomOf(m.in(id).group.Context().Extensions)
	check(m.t, err)
	var out []wire.Proposal
	var ids []identity.PublicKey
	for _, p := range people {
		for _, k := range m.claim(id, p.id) {
			out = append(out, mls.AddProposal(k))
		}
		ids = append(ids, p.id)
	}
	if u, needed := room.Participants.Adding(policy.RoleMember, "localhost", ids...); needed {
		out = append(out, mls.AppDataUpdateProposal(policy.ComponentParticipants, u.Bytes()))
	}
	return out
}

// prepare makes a commit; held proposals of the home bring their revocations.
func (m *member) prepare(id delivery.RoomID, proposals ...wire.Proposal) *mls.Commit {
	m.t.Helper()
	c, err := m.tryPrepare(id, proposals...)
	check(m.t, err)
	return c
}

func (m *member) tryPrepare(id delivery.RoomID, proposals ...wire.Proposal) (*mls.Commit, error) {
	g := m.in(id).group
	room, err := policy.RoomOf(g.Context().Extensions)
	if err != nil {
		return nil, err
	}
	if due := policy.RevocationsDue(room, policy.HeldOf(g.Public())); due != nil {
		proposals = append(proposals, mls.AppDataUpdateProposal(policy.ComponentRevocations, due))
	}
	return g.Commit(mls.CommitParams{Random: rand.Reader, Now: m.now(), Proposals: proposals})
}

func request(c *mls.Commit) delivery.AppendRequest {
	return delivery.AppendRequest{Entry: c.Message, Welcome: c.Welcome, GroupInfo: c.GroupInfo}
}

// post appends.
func (m *member) post(id delivery.RoomID, r delivery.AppendRequest) (delivery.Accepted, error) {
	var a delivery.Accepted
	raw, err := m.call(delivery.RouteAppend, r.AppendTo(nil), "", id.String())
	if err != nil {
		return a, err
	}
	return a, unmarshal(raw, &a)
}

// commit makes a commit, has it accepted, and goes on in its epoch.
func (m *member) commit(id delivery.RoomID, proposals ...wire.Proposal) delivery.Accepted {
	m.t.Helper()
	m.sync(id)
	c := m.prepare(id, proposals...)
	a, err := m.post(id, request(c))
	check(m.t, err)
	v := m.in(id)
	st, err := c.Apply(v.group, m.now())
	check(m.t, err)
	v.group, v.seq = st.Next, a.Seq
	return a
}

// seal encrypts a text.
func (m *member) seal(id delivery.RoomID, text string) []byte {
	m.t.Helper()
	v := m.in(id)
	s, err := v.group.Seal(mls.SealParams{Random: rand.Reader, Content: []byte(text)})
	check(m.t, err)
	v.group = s.Next
	return s.Message
}

func (m *member) say(id delivery.RoomID, text string) delivery.Accepted {
	m.t.Helper()
	a, err := m.post(id, delivery.AppendRequest{Entry: m.seal(id, text)})
	check(m.t, err)
	return a
}

func (m *member) propose(id delivery.RoomID, p wire.Proposal) (delivery.Accepted, error) {
	m.t.Helper()
	v := m.in(id)
	s, err := v.group.Propose(mls.ProposeParams{Random: rand.Reader, Now: m.now(), Proposal: p})
	check(m.t, err)
	a, err := m.post(id, delivery.AppendRequest{Entry: s.Message})
	if err == nil {
		v.group = s.Next
	}
	return a, err
}

// log reads entries after a seq.
func (m *member) log(id delivery.RoomID, after uint64) (delivery.LogPage, error) {
	raw, err := m.call(delivery.RouteLog, nil, fmt.Sprintf("?after=%d", after), id.String())
	if err != nil {
		return delivery.LogPage{}, err
	}
	return delivery.ParseLogPage(raw)
}

// sync reads the log and processes it.
func (m *member) sync(id delivery.RoomID) *view {
	m.t.Helper()
	v := m.in(id)
	for {
		page, err := m.log(id, v.seq)
		check(m.t, err)
		if len(page.Entries) == 0 {
			return v
		}
		for _, e := range page.Entries {
			check(m.t, m.process(v, e))
		}
	}
}

func (m *member) process(v *view, e delivery.Entry) error {
	if e.Seq <= v.seq {
		return fmt.Errorf("seq %d after %d", e.Seq, v.seq)
	}
	v.seq = e.Seq
	if e.Kind == delivery.KindIncarnation {
		return nil
	}
	got, err := v.group.Process(e.Bytes, mls.ProcessParams{Now: time.UnixMilli(e.AcceptedMS)})
	switch {
	case errors.Is(err, mls.ErrOwnMessage), errors.Is(err, mls.ErrPastEpoch), errors.Is(err, mls.ErrKeyConsumed), errors.Is(err, mls.ErrRemoved):
		return nil
	case err != nil:
		return fmt.Errorf("seq %d: %w", e.Seq, err)
	}
	switch r := got.(type) {
	case *mls.Application:
		v.group = r.Next
		v.texts = append(v.texts, string(r.Content))
	case *mls.ProposalReceived:
		v.group = r.Next
	case *mls.StagedCommit:
		v.group = r.Next
	}
	return nil
}

// join enters the rooms that the mailbox has Welcomes for.
func (m *member) join() []delivery.RoomID {
	m.t.Helper()
	_, err := m.at.Relay(m.t.Context())
	check(m.t, err)
	var mail delivery.MailResponse
	check(m.t, m.json(delivery.RouteMailbox, nil, &mail))
	var rooms []delivery.RoomID
	var ack delivery.AckRequest
	for _, item := range mail.Items {
		ack.IDs = append(ack.IDs, fmt.Sprint(item.ID))
		if item.Kind != delivery.MailWelcome {
			continue
		}
		tree, err := m.call(delivery.RouteTree, nil, fmt.Sprintf("?epoch=%d", item.Epoch), item.Room.String())
		check(m.t, err)
		j, err := m.config.Join(mls.JoinParams{Welcome: item.Welcome, Bundles: m.bundles, Tree: tree, Now: m.now()})
		check(m.t, err)
		m.rooms[*item.Room] = &view{group: j.Next, seq: item.StartSeq}
		rooms = append(rooms, *item.Room)
	}
	if len(ack.IDs) > 0 {
		check(m.t, m.json(delivery.RouteAck, ack, nil))
	}
	return rooms
}

// external makes an external commit into a room, at its present epoch.
func (m *member) external(id delivery.RoomID, edit ...func(*mls.ExternalJoinParams)) *mls.Commit {
	m.t.Helper()
	info, err := m.call(delivery.RouteGroupInfo, nil, "", id.String())
	check(m.t, err)
	tree, err := m.call(delivery.RouteTree, nil, "", id.String())
	check(m.t, err)
	return m.externalWith(info, tree, edit...)
}

func (m *member) externalWith(info, tree []byte, edit ...func(*mls.ExternalJoinParams)) *mls.Commit {
	m.t.Helper()
	p := mls.ExternalJoinParams{
		Random: rand.Reader, Now: m.now(), GroupInfo: info, Tree: tree, Signer: m.signer, Credential: m.credential(),
		Capabilities: policy.Capabilities(), LeafExtensions: policy.LeafExtensions(),
	}
	for _, f := range edit {
		f(&p)
	}
	c, err := m.config.ExternalJoin(p)
	check(m.t, err)
	return c
}

// enter posts an external commit and goes on in its epoch.
func (m *member) enter(id delivery.RoomID, c *mls.Commit) error {
	m.t.Helper()
	a, err := m.post(id, request(c))
	if err != nil {
		return err
	}
	st, err := c.Apply(nil, m.now())
	check(m.t, err)
	m.rooms[id] = &view{group: st.Next, seq: a.Seq}
	return nil
}

func (m *member) head(id delivery.RoomID) delivery.RoomHead {
	m.t.Helper()
	var h delivery.RoomHead
	check(m.t, m.json(delivery.RouteRoom, nil, &h, id.String()))
	return h
}

// group makes a room of people, everybody joined.
func group(t testing.TB, people ...*member) delivery.RoomID {
	t.Helper()
	id := people[0].create(delivery.RoomGroup)
	var others []person
	for _, m := range people[1:] {
		others = append(others, m.owner)
	}
	if len(others) > 0 {
		people[0].commit(id, people[0].adding(id, others...)...)
	}
	for _, m := range people[1:] {
		if got := m.join(); len(got) != 1 || got[0] != id {
			t.Fatalf("joined %v", got)
		}
	}
	return id
}

// agree checks that members are in the same epoch with the same secrets.
func agree(t testing.TB, id delivery.RoomID, people ...*member) {
	t.Helper()
	first := people[0].sync(id).group
	for _, m := range people[1:] {
		g := m.sync(id).group
		if g.Epoch() != first.Epoch() || !g.EpochAuthenticator().Equal(first.EpochAuthenticator()) {
			t.Errorf("epochs %d and %d, or other secrets", first.Epoch(), g.Epoch())
		}
	}
}

// fingerprint is everything stored about a room that a refusal must not change.
func (w *world) fingerprint(t testing.TB, id delivery.RoomID) [32]byte {
	t.Helper()
	ctx := t.Context()
	room, err := w.store.Room(ctx, id)
	check(t, err)
	log, err := w.store.Log(ctx, id, delivery.LogRange{Limit: 10_000, MaxBytes: 1 << 30})
	check(t, err)
	members, err := w.store.Members(ctx, id)
	check(t, err)
	held, err := w.store.Held(ctx, id)
	check(t, err)
	state, err := w.store.State(ctx, id, room.Epoch)
	check(t, err)
	info, err := w.store.GroupInfo(ctx, id, room.Epoch)
	check(t, err)
	relays, err := w.store.PendingRelays(ctx, 1000)
	check(t, err)
	var next delivery.RoomID
	if room.Successor != nil {
		next, room.Successor = *room.Successor, nil // its bytes count, not where they lie
	}
	return sha256.Sum256(fmt.Appendf(nil, "%s %+v %+v %+v %+v %+v %x %+v", next, room, log, members, held, state, info, relays))
}

// refused posts and checks the refusal, and that nothing of the room changed.
func (m *member) refused(id delivery.RoomID, r delivery.AppendRequest, code delivery.Code) {
	m.t.Helper()
	m.refusedWith(id, r, code)
}

func (m *member) refusedWith(id delivery.RoomID, r delivery.AppendRequest, code delivery.Code) *delivery.Error {
	m.t.Helper()
	before := m.at.w.fingerprint(m.t, id)
	_, err := m.post(id, r)
	e := wantCode(m.t, err, code)
	if m.at.w.fingerprint(m.t, id) != before {
		m.t.Error("a refused append changed the room")
	}
	return e
}
