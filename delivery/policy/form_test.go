package policy

import (
	"bytes"
	"strings"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/wire"
)

// TestBasePolicyForm: each part that rooms here do not have is refused by itself.
func TestBasePolicyForm(t *testing.T) {
	good := BasePolicy{}.Bytes()
	if want := []byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0}; !bytes.Equal(good, want) {
		t.Fatalf("the plainest policy is %x", good)
	}
	for name, b := range map[string][]byte{
		"depends on a parent":   {0, 1, 0, 1, 0, 0, 0, 0, 0, 0},
		"names a parent":        {0, 0, 1, 'x', 1, 0, 0, 0, 0, 0, 0},
		"one device each":       {0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"pseudonyms":            {0, 0, 0, 1, 0, 0, 1, 0, 0, 0},
		"a persistent room":     {0, 0, 0, 1, 0, 0, 0, 1, 0, 0},
		"components of its own": {0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0x8c, 1},
		"a bool of 2":           {2, 0, 0, 1, 0, 0, 0, 0, 0, 0},
		"a bound of 0":          {0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"a byte more":           append(bytes.Clone(good), 0),
	} {
		if _, err := ParseBasePolicy(b); err == nil {
			t.Errorf("%s: accepted", name)
		} else {
			wantErr(t, err, ErrComponent)
		}
	}
}

// TestDictionaryForm: each component's data is refused where it is not its form.
func TestDictionaryForm(t *testing.T) {
	ada, bob := newPerson(1), newPerson(2)
	group, _ := newRoom(t, delivery.RoomGroup, ada)
	direct, _ := newRoom(t, delivery.RoomDirect, ada, bob)
	self, _ := newRoom(t, delivery.RoomSelf, ada)
	fixed, free := BasePolicy{FixedMembership: true}.Bytes(), BasePolicy{}.Bytes()
	long := "mimi://a.example/r/" + strings.Repeat("x", maxRoomURI)
	two := Participants{{ada.id, "a.example", RoleAdmin}, {bob.id, "a.example", RoleMember}}
	for name, c := range map[string]struct {
		room *Room
		id   wire.ComponentID
		data []byte
	}{
		"no kind":                       {group, ComponentKind, nil},
		"a kind of two bytes":           {group, ComponentKind, []byte{1, 1}},
		"kind 0":                        {group, ComponentKind, []byte{0}},
		"kind 4":                        {group, ComponentKind, []byte{4}},
		"no URI":                        {group, ComponentRoomURI, nil},
		"a URI that is too long":        {group, ComponentRoomURI, []byte(long)},
		"a URI that is no text":         {group, ComponentRoomURI, []byte("mimi://a.example/r/\xff")},
		"a URI of another scheme":       {group, ComponentRoomURI, []byte("http://a.example/r/x")},
		"a group of fixed members":      {group, ComponentBasePolicy, fixed},
		"a direct room of free members": {direct, ComponentBasePolicy, free},
		"a direct room of one":          {direct, ComponentParticipants, two[:1].Bytes()},
		"a self room of two":            {self, ComponentParticipants, two.Bytes()},
		"a group of nobody":             {group, ComponentParticipants, Participants{}.Bytes()},
	} {
		d := c.room.Dictionary()
		d = d.With(c.id, c.data)
		_, err := ParseDictionary(&d)
		if err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		wantErr(t, err, ErrComponent)
	}
	for _, id := range Components() {
		var d wire.AppDataDictionary
		whole := group.Dictionary()
		for _, other := range Components() {
			if data, _ := whole.Get(other); other != id {
				d = d.With(other, data)
			}
		}
		_, err := ParseDictionary(&d)
		wantErr(t, err, ErrComponent)
	}
}

// TestParticipantForm: a person has one name, in one form, and a role of a room.
func TestParticipantForm(t *testing.T) {
	ada := newPerson(1).id.String()
	for name, c := range map[string]struct {
		uri  string
		role Role
	}{
		"too long":              {"mimi://" + strings.Repeat("a", maxUserURI) + "/u/" + ada, RoleMember},
		"another scheme":        {"http://a.example/u/" + ada, RoleMember},
		"no user":               {"mimi://a.example/r/" + ada, RoleMember},
		"a domain with a slash": {"mimi://a.example/x/u/" + ada, RoleMember},
		"a domain with a query": {"mimi://a.example?/u/" + ada, RoleMember},
		"a domain with a space": {"mimi://a example/u/" + ada, RoleMember},
		"upper case":            {"mimi://a.example/u/" + strings.ToUpper(ada), RoleMember},
		"no identity":           {"mimi://a.example/u/" + ada[2:], RoleMember},
		"no role":               {"mimi://a.example/u/" + ada, RoleNone},
		"a role beyond":         {"mimi://a.example/u/" + ada, RoleAdmin + 1},
	} {
		data, mark := wire.OpenVector(nil)
		data = wire.AppendUint32(wire.AppendOpaque(data, c.uri), uint32(c.role))
		_, err := ParseParticipants(wire.CloseVector(data, mark))
		if err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		wantErr(t, err, ErrComponent)
	}
	// More than a room lists are refused before any of them is looked at.
	if _, err := (Participants{}).add(make([]pair, MaxParticipants+1)); err == nil || !strings.Contains(err.Error(), "more than 10000") {
		t.Errorf("%d participants: %v", MaxParticipants+1, err)
	}
}

// TestRevocationsForm: whole revocations, in order, each once, up to the bound.
func TestRevocationsForm(t *testing.T) {
	ada := newPerson(1)
	var all []identity.Revocation
	for seed := byte(10); seed < 13; seed++ {
		all = append(all, ada.device(t, seed).revocation(t, ada))
	}
	good := RevocationsUpdate(all...)
	sorted, err := ParseRevocations(good)
	if err != nil {
		t.Fatal(err)
	}
	forged := sorted[0].Bytes()
	forged[len(forged)-1] ^= 1
	opaque := func(parts ...[]byte) []byte { return wire.AppendOpaque(nil, bytes.Join(parts, nil)) }
	for name, b := range map[string][]byte{
		"not whole":    opaque(sorted[0].Bytes(), []byte{0}),
		"not signed":   opaque(forged),
		"out of order": opaque(sorted[1].Bytes(), sorted[0].Bytes()),
		"twice":        opaque(sorted[0].Bytes(), sorted[0].Bytes()),
		"too many":     opaque(bytes.Repeat(sorted[0].Bytes(), maxRevocations+1)),
		"a byte more":  append(bytes.Clone(good), 0),
	} {
		_, err := ParseRevocations(b)
		if err == nil {
			t.Errorf("%s: accepted", name)
			continue
		}
		wantErr(t, err, ErrComponent)
		if name == "too many" && !strings.Contains(err.Error(), "not up to") {
			t.Errorf("too many were verified before they were counted: %v", err)
		}
	}
	full := make(Revocations, maxRevocations)
	_, err = full.Union(sorted)
	wantErr(t, err, ErrComponent)
}
