package policy

import (
	"bytes"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/mls/wire"
)

// The components of a room's app_data_dictionary (extensions draft §4.6). The
// first two are MIMI's, the others are ours, in the private range.
const (
	// ComponentParticipants holds a [Participants] list; MIMI protocol §6.3.
	ComponentParticipants wire.ComponentID = 0x0022
	// ComponentBasePolicy holds a [BasePolicy]; MIMI room policy §5.
	ComponentBasePolicy wire.ComponentID = 0x0027
	// ComponentKind holds the [delivery.RoomKind] as one byte; it never changes.
	ComponentKind wire.ComponentID = 0x8c01
	// ComponentRoomURI holds the room's mimi:// name; it never changes.
	ComponentRoomURI wire.ComponentID = 0x8c02
	// ComponentRevocations holds [Revocations]; it only grows.
	ComponentRevocations wire.ComponentID = 0x8c03
)

// Components are all of them, ascending: what a leaf says it understands.
func Components() []wire.ComponentID {
	return []wire.ComponentID{ComponentParticipants, ComponentBasePolicy, ComponentKind, ComponentRoomURI, ComponentRevocations}
}

const maxRoomURI = 512

// Room is what a room's dictionary says, decoded and checked.
type Room struct {
	Kind         delivery.RoomKind
	URI          string // mimi://domain/r/room id
	Participants Participants
	Base         BasePolicy
	Revocations  Revocations
}

// ParseDictionary decodes and checks the dictionary of a room (ErrComponent). A
// component that this build does not know is left alone.
func ParseDictionary(d *wire.AppDataDictionary) (*Room, error) {
	r := new(Room)
	for _, c := range []struct {
		id   wire.ComponentID
		read func([]byte) error
	}{
		{ComponentKind, r.readKind},
		{ComponentRoomURI, r.readURI},
		{ComponentParticipants, func(b []byte) (err error) { r.Participants, err = ParseParticipants(b); return err }},
		{ComponentBasePolicy, func(b []byte) (err error) { r.Base, err = ParseBasePolicy(b); return err }},
		{ComponentRevocations, func(b []byte) (err error) { r.Revocations, err = ParseRevocations(b); return err }},
	} {
		data, found := d.Get(c.id)
		if !found {
			return nil, fmt.Errorf("%w: component %#04x is missing", ErrComponent, uint16(c.id))
		}
		if err := c.read(data); err != nil {
			return nil, err
		}
	}
	return r, r.checkKind()
}

func (r *Room) readKind(data []byte) error {
	if len(data) != 1 || data[0] < byte(delivery.RoomGroup) || data[0] > byte(delivery.RoomSelf) {
		return fmt.Errorf("%w: the room's kind is not one byte from 1 to 3", ErrComponent)
	}
	r.Kind = delivery.RoomKind(data[0])
	return nil
}

func (r *Room) readURI(data []byte) error {
	if len(data) > maxRoomURI || !utf8.Valid(data) || !bytes.HasPrefix(data, []byte("mimi://")) {
		return fmt.Errorf("%w: the room's URI is not a mimi:// name of at most %d bytes", ErrComponent, maxRoomURI)
	}
	r.URI = string(data)
	return nil
}

// checkKind holds what the kind demands of participants and base policy.
func (r *Room) checkKind() error {
	want := map[delivery.RoomKind]int{delivery.RoomDirect: 2, delivery.RoomSelf: 1}[r.Kind]
	if r.Base.FixedMembership != (want != 0) {
		return fmt.Errorf("%w: fixed membership is for direct and self rooms, and they have it", ErrComponent)
	}
	if want != 0 && len(r.Participants) != want {
		return fmt.Errorf("%w: this kind of room has %d participants, not %d", ErrComponent, want, len(r.Participants))
	}
	if len(r.Participants) == 0 {
		return fmt.Errorf("%w: no participants", ErrComponent)
	}
	return nil
}

// Dictionary encodes the room.
func (r *Room) Dictionary() wire.AppDataDictionary {
	var d wire.AppDataDictionary
	d = d.With(ComponentKind, []byte{byte(r.Kind)})
	d = d.With(ComponentRoomURI, []byte(r.URI))
	d = d.With(ComponentParticipants, r.Participants.Bytes())
	d = d.With(ComponentBasePolicy, r.Base.Bytes())
	return d.With(ComponentRevocations, r.Revocations.Bytes())
}

// ApplyUpdate is the application logic of AppDataUpdate (extensions draft
// §4.7): the component's new data after the updates of one commit, in order. It
// knows form, not authority; [CheckCommit] knows who may (ErrComponent).
func ApplyUpdate(id wire.ComponentID, current []byte, updates [][]byte) ([]byte, error) {
	switch id {
	case ComponentParticipants:
		list, err := ParseParticipants(current)
		if err != nil {
			return nil, err
		}
		for _, raw := range updates {
			u, err := ParseParticipantsUpdate(raw)
			if err != nil {
				return nil, err
			}
			if list, err = list.Apply(u); err != nil {
				return nil, err
			}
		}
		return list.Bytes(), nil
	case ComponentBasePolicy:
		last := updates[len(updates)-1] // BaseRoomUpdate replaces the whole
		if _, err := ParseBasePolicy(last); err != nil {
			return nil, err
		}
		return slices.Clone(last), nil
	case ComponentRevocations:
		known, err := ParseRevocations(current)
		if err != nil {
			return nil, err
		}
		for _, raw := range updates {
			more, err := ParseRevocations(raw)
			if err != nil {
				return nil, err
			}
			if known, err = known.Union(more); err != nil {
				return nil, err
			}
		}
		return known.Bytes(), nil
	case ComponentKind, ComponentRoomURI:
		return nil, fmt.Errorf("%w: kind and URI are for ever", ErrComponent)
	}
	return nil, fmt.Errorf("%w: component %#04x is not known", ErrComponent, uint16(id))
}
