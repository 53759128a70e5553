package policy

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/wire"
)

// HomeSender is the external sender that stands for a home: the key by which
// it proposes the removal of revoked devices. Rooms have exactly this one, at
// index 0.
func HomeSender(home identity.Home, key []byte) wire.ExternalSender {
	return wire.ExternalSender{SignatureKey: bytes.Clone(key), Credential: wire.BasicCredential([]byte(homeSenderPrefix + home.String()))}
}

const homeSenderPrefix = "compax-home-v1 "

// HomeSenderIndex is where the home stands in external_senders.
const HomeSenderIndex = 0

// required is what every room requires of its members (RFC 9420 §11.1).
func required() wire.RequiredCapabilities {
	return wire.RequiredCapabilities{
		ExtensionTypes:  []wire.ExtensionType{wire.ExtensionTypeAppDataDictionary},
		ProposalTypes:   []wire.ProposalType{wire.ProposalTypeAppDataUpdate, wire.ProposalTypeSelfRemove},
		CredentialTypes: []wire.CredentialType{wire.CredentialTypeBasic},
	}
}

// Creation is what a room is made of.
type Creation struct {
	Room      delivery.RoomID // its home is the home of SenderKey
	Kind      delivery.RoomKind
	Domain    string // of the home, for mimi:// names
	SenderKey []byte // delivery.Info.SenderKey
	Creator   identity.PublicKey
	Others    []identity.PublicKey // direct: the one other; group: who is listed from the start, if anybody
	Suite     wire.CipherSuite     // one of [Suites]; only checked
	MaxUsers  uint32               // groups; 0 = no bound
	Succeeds  *Room                // a room, as [Room.Settled] gives it, whose roles, bans, base policy and revocations come over
}

// Extensions gives the GroupContext extensions of the new room: the creator as
// admin, everybody else as member (ErrComponent, ErrExtensions).
func (c Creation) Extensions() (wire.Extensions, error) {
	if c.Suite != 0 && !slices.Contains(Suites, c.Suite) {
		return nil, fmt.Errorf("%w: suite %#04x", ErrExtensions, uint16(c.Suite))
	}
	list, _ := Participants(nil).Adding(RoleAdmin, c.Domain, c.Creator)
	r := &Room{Kind: c.Kind, URI: c.Room.URI(c.Domain), Participants: list.Added}
	for _, id := range c.Others {
		u, _ := r.Participants.Adding(RoleMember, c.Domain, id)
		r.Participants = append(r.Participants, u.Added...)
	}
	r.Base = BasePolicy{FixedMembership: c.Kind != delivery.RoomGroup, MaxUsers: c.MaxUsers}
	if c.Succeeds != nil {
		r.succeed(c.Succeeds)
	}
	d := r.Dictionary()
	if _, err := ParseDictionary(&d); err != nil {
		return nil, err
	}
	req, senders := required(), wire.ExternalSenders{HomeSender(c.Room.Home(), c.SenderKey)}
	return wire.Extensions{
		wire.NewExtension(wire.ExtensionTypeRequiredCapabilities, &req),
		wire.NewExtension(wire.ExtensionTypeExternalSenders, &senders),
		wire.NewExtension(wire.ExtensionTypeAppDataDictionary, &d),
	}, nil
}

// succeed takes over what a room decided: nobody rises, falls, comes back from a
// ban or brings a revoked device in because the conversation moved. A listing
// stays with the room that was listed.
func (r *Room) succeed(before *Room) {
	for _, p := range before.Participants {
		if i := r.Participants.index(p.Identity); i >= 0 {
			r.Participants[i].Role = p.Role
		} else {
			r.Participants = append(r.Participants, p)
		}
	}
	r.Base = before.Base
	r.Base.Discoverable = false
	r.Revocations = before.Revocations
}

// People are the participants who may be in the room, in the list's order.
func (r *Room) People() (ids []identity.PublicKey) {
	for _, p := range r.Participants {
		if p.Role >= RoleMember {
			ids = append(ids, p.Identity)
		}
	}
	return ids
}

// CheckContext reads the room out of a GroupContext and checks that it is one
// of ours: a suite of [Suites], the room's id as group id, the required
// capabilities, exactly the home as external sender (senderKey nil: whichever
// key it says), and a sound dictionary (ErrExtensions, ErrCapabilities,
// ErrComponent).
func CheckContext(ctx *wire.GroupContext, senderKey []byte) (*Room, error) {
	id, err := delivery.RoomIDFromBytes(ctx.GroupID)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrExtensions, err)
	}
	if id.Rules() != delivery.RulesVersion {
		return nil, fmt.Errorf("%w: rules version %d, this build knows %d", ErrExtensions, id.Rules(), delivery.RulesVersion)
	}
	if !slices.Contains(Suites, ctx.CipherSuite) {
		return nil, fmt.Errorf("%w: suite %#04x", ErrExtensions, uint16(ctx.CipherSuite))
	}
	var have wire.RequiredCapabilities
	if _, err := ctx.Extensions.Decode(wire.ExtensionTypeRequiredCapabilities, &have); err != nil || !covers(have, required()) {
		return nil, fmt.Errorf("%w: the room must require app_data_dictionary, AppDataUpdate, SelfRemove and basic credentials", ErrCapabilities)
	}
	if err := checkSenders(ctx, id.Home(), senderKey); err != nil {
		return nil, err
	}
	room, err := RoomOf(ctx.Extensions)
	if err != nil {
		return nil, err
	}
	if !strings.HasSuffix(room.URI, "/r/"+id.String()) {
		return nil, fmt.Errorf("%w: the room's URI names another room", ErrComponent)
	}
	return room, nil
}

func checkSenders(ctx *wire.GroupContext, home identity.Home, senderKey []byte) error {
	var senders wire.ExternalSenders
	if _, err := ctx.Extensions.Decode(wire.ExtensionTypeExternalSenders, &senders); err != nil || len(senders) != 1 {
		return fmt.Errorf("%w: external_senders must hold the room's home and nobody else", ErrExtensions)
	}
	if senderKey == nil {
		senderKey = senders[0].SignatureKey
	}
	want := HomeSender(home, senderKey)
	if !bytes.Equal(wire.Marshal(&senders[0]), wire.Marshal(&want)) {
		return fmt.Errorf("%w: external_senders names another home or key", ErrExtensions)
	}
	return nil
}

func covers(have, want wire.RequiredCapabilities) bool {
	return containsAll(have.ExtensionTypes, want.ExtensionTypes) &&
		containsAll(have.ProposalTypes, want.ProposalTypes) &&
		containsAll(have.CredentialTypes, want.CredentialTypes)
}

func containsAll[T comparable](have, want []T) bool {
	for _, v := range want {
		if !slices.Contains(have, v) {
			return false
		}
	}
	return true
}

// RoomOf reads the room out of the extensions of a GroupContext that
// [CheckContext] or a commit check has passed before (ErrComponent).
func RoomOf(x wire.Extensions) (*Room, error) {
	var d wire.AppDataDictionary
	if _, err := x.Decode(wire.ExtensionTypeAppDataDictionary, &d); err != nil {
		return nil, fmt.Errorf("%w: no readable app_data_dictionary", ErrComponent)
	}
	return ParseDictionary(&d)
}
