package policy

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/wire"
)

// wantRefusal wants an error that is want and says why: several rules refuse with
// the same variable, and each has to be the one that speaks.
func wantRefusal(t *testing.T, name string, err, want error, why string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), why) {
		t.Errorf("%s: %v; want %v that says %q", name, err, want, why)
	}
}

func TestEachCapabilityIsRequired(t *testing.T) {
	d := newPerson(1).device(t, 11)
	for name, take := range map[string]func(*wire.Capabilities){
		"app_data_dictionary": func(c *wire.Capabilities) { c.Extensions = nil },
		"AppDataUpdate":       func(c *wire.Capabilities) { c.Proposals = []wire.ProposalType{wire.ProposalTypeSelfRemove} },
		"SelfRemove":          func(c *wire.Capabilities) { c.Proposals = []wire.ProposalType{wire.ProposalTypeAppDataUpdate} },
		"basic credentials":   func(c *wire.Capabilities) { c.Credentials = []wire.CredentialType{wire.CredentialTypeX509} },
	} {
		leaf := d.leaf()
		take(&leaf.Capabilities)
		_, err := CheckLeaf(leaf)
		wantRefusal(t, name, err, ErrCapabilities, "")
		for _, read := range []func(Leaf) error{
			func(l Leaf) error { _, err := NewRoster(leavesIn(l)); return err },
			func(l Leaf) error { _, err := TrustedRoster(leavesIn(l)); return err },
		} {
			wantRefusal(t, name, read(Leaf{0, leaf}), ErrCapabilities, "")
		}
	}
}

// TestLeafSizeIsBounded: a leaf may hold as much as is allowed and not a byte or a name
// more, whether it is added, read with a tree, or put in the place of another.
func TestLeafSizeIsBounded(t *testing.T) {
	d := newPerson(1).device(t, 11)
	for name, c := range map[string]struct {
		fill func(leaf *wire.LeafNode, more int)
		why  string
	}{
		"one extension": {func(leaf *wire.LeafNode, more int) {
			leaf.Extensions = wire.Extensions{{ExtensionType: 0xff00, ExtensionData: make([]byte, MaxLeafExtensions-extensionHeader+more)}}
		}, "4097 bytes"},
		"many empty extensions": {func(leaf *wire.LeafNode, more int) {
			leaf.Extensions = make(wire.Extensions, MaxLeafExtensions/extensionHeader+more)
		}, "4100 bytes"},
		"versions": {func(leaf *wire.LeafNode, more int) {
			c := &leaf.Capabilities
			c.Versions = append(c.Versions, make([]wire.ProtocolVersion, freeNames(c)+more)...)
		}, "257 capabilities"},
		"suites": {func(leaf *wire.LeafNode, more int) {
			c := &leaf.Capabilities
			c.CipherSuites = append(c.CipherSuites, make([]wire.CipherSuite, freeNames(c)+more)...)
		}, "257 capabilities"},
		"extensions": {func(leaf *wire.LeafNode, more int) {
			c := &leaf.Capabilities
			c.Extensions = append(c.Extensions, make([]wire.ExtensionType, freeNames(c)+more)...)
		}, "257 capabilities"},
		"proposals": {func(leaf *wire.LeafNode, more int) {
			c := &leaf.Capabilities
			c.Proposals = append(c.Proposals, make([]wire.ProposalType, freeNames(c)+more)...)
		}, "257 capabilities"},
		"credentials": {func(leaf *wire.LeafNode, more int) {
			c := &leaf.Capabilities
			c.Credentials = append(c.Credentials, make([]wire.CredentialType, freeNames(c)+more)...)
		}, "257 capabilities"},
	} {
		full, over := d.leaf(), d.leaf()
		c.fill(full, 0)
		c.fill(over, 1)
		_, err := CheckLeaf(full)
		wantErr(t, err, nil)
		_, err = CheckLeaf(over)
		wantRefusal(t, name, err, ErrLeafSize, c.why)
		_, err = NewRoster(leavesIn(Leaf{0, over}))
		wantRefusal(t, name+", in a tree", err, ErrLeafSize, c.why)
	}
}

// freeNames is how many capabilities a leaf may name beside those that it names.
func freeNames(c *wire.Capabilities) int {
	return MaxLeafCapabilities - len(c.Versions) - len(c.CipherSuites) - len(c.Extensions) - len(c.Proposals) - len(c.Credentials)
}

func leavesIn(leaves ...Leaf) func(func(uint32, *wire.LeafNode) bool) {
	return func(yield func(uint32, *wire.LeafNode) bool) {
		for _, l := range leaves {
			if !yield(l.Index, l.Node) {
				return
			}
		}
	}
}

// TestCredentialsOfTheEngine: what mls and the follower ask.
func TestCredentialsOfTheEngine(t *testing.T) {
	ada := newPerson(1)
	old, good := ada.device(t, 11), ada.device(t, 11, func(a *identity.Attestation) { a.Version = 2 })
	signer := ada.device(t, 11, func(a *identity.Attestation) { a.Role = identity.RoleBotSigner })
	disguised := good.leaf() // the right bytes under another type
	disguised.Credential.CredentialType = wire.CredentialTypeX509
	stolen := good.leaf()
	stolen.SignatureKey = ada.device(t, 12).leaf().SignatureKey
	validate := func(leaf, previous *wire.LeafNode) error {
		return Credentials{}.ValidateCredential(leaf, previous, time.Time{})
	}
	wantErr(t, validate(good.leaf(), nil), nil)
	wantErr(t, validate(good.leaf(), old.leaf()), nil)
	wantErr(t, validate(good.leaf(), good.leaf()), nil)
	wantErr(t, validate(old.leaf(), good.leaf()), ErrCredential)
	wantErr(t, validate(ada.device(t, 12).leaf(), good.leaf()), ErrCredential) // another key
	for _, previous := range []*wire.LeafNode{nil, good.leaf()} {
		wantErr(t, validate(disguised, previous), ErrCredential)
		wantErr(t, validate(stolen, previous), ErrCredential)
		wantErr(t, validate(signer.leaf(), previous), ErrRole)
	}
	wantErr(t, Credentials{}.ValidateMembers([]*wire.LeafNode{good.leaf()}, time.Time{}), nil)
	wantErr(t, Credentials{}.ValidateMembers([]*wire.LeafNode{good.leaf(), signer.leaf()}, time.Time{}), ErrRole)
	forged := good.leaf()
	forged.Credential.Identity = bytes.Clone(forged.Credential.Identity)
	forged.Credential.Identity[identity.CredentialSize-1] ^= 1
	wantErr(t, Credentials{}.ValidateMembers([]*wire.LeafNode{good.leaf(), forged}, time.Time{}), ErrCredential)
	_, err := NewRoster(leavesIn(Leaf{0, forged}))
	wantErr(t, err, ErrCredential)
	_, err = TrustedRoster(leavesIn(Leaf{0, signer.leaf()}))
	wantErr(t, err, ErrRole)
	_, err = NewRoster(leavesIn(Leaf{0, signer.leaf()}))
	wantErr(t, err, ErrRole)
	_, err = InviterOf(nil, 0, func([]byte) error { return nil })
	wantRefusal(t, "no inviter", err, ErrCredential, "does not say who made it")
}

func TestExternalSenderIsAHome(t *testing.T) {
	key := newPerson(1).id
	sender := func(edit func(*wire.ExternalSender)) error {
		s := HomeSender(home, key[:])
		edit(&s)
		return Credentials{}.ValidateExternalSender(&s, time.Time{})
	}
	wantErr(t, sender(func(*wire.ExternalSender) {}), nil)
	for name, edit := range map[string]func(*wire.ExternalSender){
		"another type":      func(s *wire.ExternalSender) { s.Credential.CredentialType = wire.CredentialTypeX509 },
		"another name":      func(s *wire.ExternalSender) { s.Credential = wire.BasicCredential([]byte("somebody")) },
		"a short key":       func(s *wire.ExternalSender) { s.SignatureKey = s.SignatureKey[1:] },
		"a key of no point": func(s *wire.ExternalSender) { s.SignatureKey = make([]byte, 32) },
	} {
		wantRefusal(t, name, sender(edit), ErrExtensions, "an external sender")
	}
}

// TestContextIsRefused: each part of a GroupContext that is not a room's.
func TestContextIsRefused(t *testing.T) {
	_, ctx := newRoom(t, delivery.RoomGroup, newPerson(1))
	requires := func(edit func(*wire.RequiredCapabilities)) wire.Extension {
		c := required()
		edit(&c)
		return wire.NewExtension(wire.ExtensionTypeRequiredCapabilities, &c)
	}
	capabilities := requires(func(*wire.RequiredCapabilities) {})
	capabilities.ExtensionData = append(bytes.Clone(capabilities.ExtensionData), 0)
	two := wire.ExternalSenders{HomeSender(home, make([]byte, 32)), HomeSender(identity.Home{9}, make([]byte, 32))}
	for name, c := range map[string]struct {
		with wire.Extension
		want error
	}{
		"capabilities with a byte more": {capabilities, ErrCapabilities},
		"no dictionary required":        {requires(func(c *wire.RequiredCapabilities) { c.ExtensionTypes = nil }), ErrCapabilities},
		"one proposal too few":          {requires(func(c *wire.RequiredCapabilities) { c.ProposalTypes = c.ProposalTypes[1:] }), ErrCapabilities},
		"any credential":                {requires(func(c *wire.RequiredCapabilities) { c.CredentialTypes = nil }), ErrCapabilities},
		"a second external sender":      {wire.NewExtension(wire.ExtensionTypeExternalSenders, &two), ErrExtensions},
	} {
		changed := ctx
		changed.Extensions = ctx.Extensions.With(c.with)
		_, err := CheckContext(&changed, nil)
		wantRefusal(t, name, err, c.want, "")
	}
	_, err := Creation{Room: delivery.RoomID{1}, Kind: delivery.RoomGroup, Domain: "a", Suite: 2}.Extensions()
	wantRefusal(t, "suite 2", err, ErrExtensions, "suite 0x0002")
	var empty wire.AppDataDictionary
	_, err = ParseDictionary(&empty)
	wantRefusal(t, "an empty dictionary", err, ErrComponent, "is missing")
}

// TestProposalIsRefused: each reason for which a proposal is not held.
func TestProposalIsRefused(t *testing.T) {
	ada, bob, cat, eve := newPerson(1), newPerson(2), newPerson(3), newPerson(5)
	room, _ := newRoom(t, delivery.RoomGroup, ada, bob, cat, eve)
	room.Participants[3].Role = RoleBanned
	self, _ := newRoom(t, delivery.RoomSelf, ada)
	a, b, c := ada.device(t, 11), bob.device(t, 21), cat.device(t, 31)
	newer := bob.device(t, 21, func(x *identity.Attestation) { x.Version = 2 })
	r := rosterOf(t, a, newer, c)
	lost := *room
	lost.Revocations = Revocations{bob.device(t, 22).revocation(t, bob)}
	poor := b.leaf()
	poor.Capabilities.Proposals = nil
	signer := bob.device(t, 21, func(x *identity.Attestation) { x.Role = identity.RoleBotSigner })
	replace := func(leaf *wire.LeafNode) *wire.Proposal {
		return &wire.Proposal{ProposalType: wire.ProposalTypeUpdate, Update: &wire.Update{LeafNode: *leaf}}
	}
	drop := update(ComponentBasePolicy, room.Base.Bytes())
	drop.AppDataUpdate.Op = wire.AppDataUpdateOperationRemove
	base := update(ComponentBasePolicy, room.Base.Bytes())
	people := func(u ParticipantsUpdate) *wire.Proposal { return update(ComponentParticipants, u.Bytes()) }
	newcomer := Participant{newPerson(9).id, "a.example", RoleAdmin}
	home := func(index uint32) wire.Sender {
		return wire.Sender{SenderType: wire.SenderTypeExternal, SenderIndex: index}
	}
	ref := []byte{1}
	for name, c := range map[string]struct {
		room *Room
		p    Proposal
		want error
		why  string
	}{
		"by nobody in the room": {room, Proposal{Ref: ref, Sender: wire.Sender{SenderType: wire.SenderTypeNewMemberProposal}, Proposal: add(a)}, ErrProposal, "only members"},
		"by a blank leaf":       {room, Proposal{Ref: ref, Sender: byMember(9), Proposal: add(a)}, ErrProposal, "no leaf"},
		"adding a revoked one":  {&lost, Proposal{Ref: ref, Sender: byMember(0), Proposal: add(bob.device(t, 22))}, ErrRevoked, "cannot be added"},
		"a poorer leaf":         {room, Proposal{Ref: ref, Sender: byMember(1), Proposal: replace(poor)}, ErrCapabilities, ""},
		"a request signer":      {room, Proposal{Ref: ref, Sender: byMember(1), Proposal: replace(signer.leaf())}, ErrRole, ""},
		"an older attestation":  {room, Proposal{Ref: ref, Sender: byMember(1), Proposal: replace(b.leaf())}, ErrCredential, ""},
		"leaving one's own":     {self, Proposal{Ref: ref, Sender: byMember(0), Proposal: selfRemove()}, ErrPartial, "revoke the device"},
		"removing nobody":       {room, Proposal{Ref: ref, Sender: byMember(0), Proposal: remove(9)}, ErrProposal, "is blank"},
		"dropping a component":  {room, Proposal{Ref: ref, Sender: byMember(0), Proposal: drop}, ErrComponent, "ever removed"},
		"a stranger's revocation": {room, Proposal{Ref: ref, Sender: byMember(0),
			Proposal: update(ComponentRevocations, RevocationsUpdate(newPerson(9).device(t, 91).revocation(t, newPerson(9))))}, ErrComponent, "not a participant"},
		"rules by a member":      {room, Proposal{Ref: ref, Sender: byMember(1), Proposal: base}, ErrAuthority, "the base policy"},
		"striking another off":   {room, Proposal{Ref: ref, Sender: byMember(1), Proposal: people(ParticipantsUpdate{Removed: []uint32{2}})}, ErrAuthority, "strikes others off"},
		"lifting a ban":          {room, Proposal{Ref: ref, Sender: byMember(1), Proposal: people(ParticipantsUpdate{Removed: []uint32{3}})}, ErrAuthority, "strikes others off"},
		"an admin by a member":   {room, Proposal{Ref: ref, Sender: byMember(1), Proposal: people(ParticipantsUpdate{Added: []Participant{newcomer}})}, ErrAuthority, "more than a member"},
		"by the home, by value":  {room, Proposal{Sender: home(0), Proposal: remove(1), AuthenticatedData: HomeRemoval(b.revocation(t, bob))}, ErrProposal, "removals only"},
		"by a second home":       {room, Proposal{Ref: ref, Sender: home(1), Proposal: remove(1), AuthenticatedData: HomeRemoval(b.revocation(t, bob))}, ErrProposal, "removals only"},
		"by the home, of nobody": {room, Proposal{Ref: ref, Sender: home(0), Proposal: remove(9), AuthenticatedData: HomeRemoval(b.revocation(t, bob))}, ErrProposal, "is blank"},
		"by the home, the wrong one": {room, Proposal{Ref: ref, Sender: home(0), Proposal: remove(1),
			AuthenticatedData: HomeRemoval(bob.device(t, 22).revocation(t, bob))}, ErrProposal, "another device"},
	} {
		_, err := CheckProposal(c.room, r, nil, c.p)
		wantRefusal(t, name, err, c.want, c.why)
	}
	// One's own name goes off the list, and so does that of somebody who left.
	for _, i := range []uint32{1, 2} {
		_, err := CheckProposal(room, rosterOf(t, a, b), nil, Proposal{Ref: ref, Sender: byMember(1), Proposal: people(ParticipantsUpdate{Removed: []uint32{i}})})
		wantErr(t, err, nil)
	}
}

// TestOneProposalForEachSubject: of what is about no leaf one sender has one held for
// each kind and component.
func TestOneProposalForEachSubject(t *testing.T) {
	ada, bob := newPerson(1), newPerson(2)
	room, _ := newRoom(t, delivery.RoomGroup, ada, bob)
	r := rosterOf(t, ada.device(t, 11), bob.device(t, 21))
	rules := Proposal{Ref: []byte{1}, Sender: byMember(0), Proposal: update(ComponentBasePolicy, room.Base.Bytes())}
	adding := Proposal{Ref: []byte{2}, Sender: byMember(0), Proposal: add(ada.device(t, 12))}
	list, _ := room.Participants.Adding(RoleMember, "a.example", newPerson(3).id)
	people := Proposal{Ref: []byte{3}, Sender: byMember(0), Proposal: update(ComponentParticipants, list.Bytes())}
	byBob := adding
	byBob.Sender = byMember(1)
	for _, c := range []struct {
		held, p Proposal
		want    error
	}{
		{rules, rules, ErrHeld}, {adding, adding, ErrHeld},
		{adding, rules, nil}, {rules, adding, nil}, {rules, people, nil}, {adding, byBob, nil},
	} {
		drop, err := CheckProposal(room, r, []Proposal{c.held}, c.p)
		wantErr(t, err, c.want)
		if drop != nil {
			t.Errorf("%s drives %s out", c.p.Proposal.ProposalType, c.held.Proposal.ProposalType)
		}
	}
}

// TestCommitIsRefused: each reason that only a whole commit shows.
func TestCommitIsRefused(t *testing.T) {
	ada, bob, cat, eve := newPerson(1), newPerson(2), newPerson(3), newPerson(5)
	room, _ := newRoom(t, delivery.RoomGroup, ada, bob, cat, eve)
	a, b, b2, c := ada.device(t, 11), bob.device(t, 21), bob.device(t, 22), cat.device(t, 31)
	r := rosterOf(t, a, b, c)
	edited := func(edit func(*Room)) *Room {
		out := *room
		out.Participants = slices.Clone(room.Participants)
		edit(&out)
		return &out
	}
	banned := edited(func(r *Room) { r.Participants[1].Role = RoleBanned })
	revoked := edited(func(r *Room) { r.Revocations = Revocations{b2.revocation(t, bob)} })
	inTree := edited(func(r *Room) { r.Revocations = Revocations{c.revocation(t, cat)} })
	poor := b.leaf()
	poor.Capabilities.Extensions = nil
	external := func(room *Room, d device, held ...Proposal) Change {
		init := &wire.Proposal{ProposalType: wire.ProposalTypeExternalInit, ExternalInit: &wire.ExternalInit{}}
		return Change{Before: room, After: room, Committer: 3, External: true, Joined: d.leaf(), Proposals: values(init), Held: held}
	}
	leaves := Proposal{Ref: []byte{7}, Sender: byMember(1), Proposal: selfRemove()}
	withLeave := external(room, b2)
	withLeave.Proposals = append(withLeave.Proposals, leaves)
	removal := func(by, of uint32) Proposal {
		return Proposal{Ref: []byte{8}, Sender: byMember(by), Proposal: remove(of)}
	}
	for name, x := range map[string]struct {
		c    Change
		want error
		why  string
	}{
		"by a blank leaf":        {Change{Before: room, After: room, Committer: 9}, ErrRoster, "committer has no leaf"},
		"by somebody banned":     {Change{Before: banned, After: room, Committer: 1}, ErrAuthority, "not a participant"},
		"updating nobody":        {Change{Before: room, After: room, Updated: []Leaf{{9, a.leaf()}}}, ErrRoster, "is blank"},
		"a poorer leaf":          {Change{Before: room, After: room, Updated: []Leaf{{1, poor}}}, ErrCapabilities, ""},
		"two at one leaf":        {Change{Before: room, After: room, Proposals: values(add(b2)), Added: []Leaf{{1, b2.leaf()}}}, ErrRoster, "is taken"},
		"a revoked one stays":    {Change{Before: inTree, After: inTree}, ErrRevoked, "at leaf 2"},
		"too many leaves":        {Change{Before: room, After: edited(func(r *Room) { r.Base.MaxClients = 2 })}, ErrRoster, "3 leaves, at most 2"},
		"too many people":        {Change{Before: room, After: edited(func(r *Room) { r.Base.MaxUsers = 3 })}, ErrRoster, "4 participants, at most 3"},
		"a revoked one joins":    {external(revoked, b2), ErrRevoked, "it cannot join"},
		"a banned one joins":     {external(banned, b2), ErrExternal, "not a participant"},
		"who was never in joins": {external(room, eve.device(t, 51)), ErrExternal, "no device of its identity"},
		"who leaves joins":       {withLeave, ErrUnderRemoval, "is leaving"},
		"who is removed joins":   {external(room, b2, removal(0, 1)), ErrUnderRemoval, "being removed"},
		"past a removal":         {external(room, b2, removal(0, 2)), ErrRemovalFirst, ""},
	} {
		_, err := CheckCommit(r, x.c)
		wantRefusal(t, name, err, x.want, x.why)
	}
	for name, c := range map[string]Change{
		"as many leaves as may be": {Before: room, After: edited(func(r *Room) { r.Base.MaxClients = 3 })},
		"as many people as may be": {Before: room, After: edited(func(r *Room) { r.Base.MaxUsers = 4 })},
		"past its own removal":     external(room, b2, removal(1, 2)),
	} {
		if _, err := CheckCommit(r, c); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := NewRoster(leavesIn(Leaf{1, a.leaf()}, Leaf{1, b.leaf()}))
	wantRefusal(t, "two at one leaf", err, ErrRoster, "is taken")
}
