package follower

import (
	"bytes"
	"maps"
	"slices"

	"github.com/askucher/compax-core/mls/wire"
)

// terms is what the extensions of a GroupContext say, decoded.
type terms struct {
	required   *wire.RequiredCapabilities // nil for none
	senders    wire.ExternalSenders
	dictionary *wire.AppDataDictionary // nil for none
}

// readTerms decodes the extensions that the package knows. None may occur twice
// (§13.4); that members support the others is checked on the tree.
func readTerms(x wire.Extensions) (terms, error) {
	var t terms
	if twice, found := x.Duplicate(); found {
		return t, invalid(ErrExtensions, "type %#04x occurs twice", uint16(twice))
	}
	var required wire.RequiredCapabilities
	found, err := x.Decode(wire.ExtensionTypeRequiredCapabilities, &required)
	if err != nil {
		return t, invalid(ErrExtensions, "required_capabilities: %w", err)
	}
	if found {
		t.required = &required
	}
	if _, err := x.Decode(wire.ExtensionTypeExternalSenders, &t.senders); err != nil {
		return t, invalid(ErrExtensions, "external_senders: %w", err)
	}
	var d wire.AppDataDictionary
	if found, err = x.Decode(wire.ExtensionTypeAppDataDictionary, &d); err != nil {
		return t, invalid(ErrExtensions, "app_data_dictionary: %w", err)
	}
	if found {
		t.dictionary = &d
	}
	return t, nil
}

// checkReplacement checks the extensions of a GroupContextExtensions proposal
// against those it replaces (§12.1.7, extensions draft §4.7) and returns their
// terms. That members support them is checked on the tree after the commit.
func (g *Group) checkReplacement(x wire.Extensions, o *Options) (terms, error) {
	t, err := readTerms(x)
	if err != nil {
		return t, err
	}
	if r := g.terms.required; r != nil && slices.Contains(r.ProposalTypes, wire.ProposalTypeAppDataUpdate) {
		before, _ := g.context.Extensions.Find(wire.ExtensionTypeAppDataDictionary)
		after, _ := x.Find(wire.ExtensionTypeAppDataDictionary) // absent is nil, and no dictionary is empty
		if !bytes.Equal(before, after) {
			return t, invalid(ErrExtensions, "app_data_dictionary is changed by AppDataUpdate only")
		}
	}
	return t, g.checkSenders(t.senders, o)
}

// checkSenders asks the application about the external senders that are new.
func (g *Group) checkSenders(senders wire.ExternalSenders, o *Options) error {
	if o.Credentials == nil {
		return nil
	}
	known := make(map[string]bool, len(g.terms.senders))
	for i := range g.terms.senders {
		known[string(wire.Marshal(&g.terms.senders[i]))] = true
	}
	for i := range senders {
		if known[string(wire.Marshal(&senders[i]))] {
			continue
		}
		if err := o.Credentials.ValidateExternalSender(&senders[i], o.Now); err != nil {
			return invalid(ErrExtensions, "external sender %d: %w", i, err)
		}
	}
	return nil
}

// appData is the dictionary's change by the AppDataUpdate proposals of a list
// (extensions draft §4.7). It returns the extensions with it, or x itself when
// there is no such proposal.
func appData(x wire.Extensions, list []Proposal, o *Options) (wire.Extensions, error) {
	type change struct {
		removes int
		updates [][]byte
	}
	changes := map[wire.ComponentID]*change{}
	var order []wire.ComponentID
	for i := range list {
		u := list[i].Proposal.AppDataUpdate
		if u == nil {
			continue
		}
		c := changes[u.ComponentID]
		if c == nil {
			c = &change{}
			changes[u.ComponentID] = c
			order = append(order, u.ComponentID)
		}
		if u.Op == wire.AppDataUpdateOperationRemove {
			c.removes++
		} else {
			c.updates = append(c.updates, u.Update)
		}
	}
	if len(order) == 0 {
		return x, nil
	}
	if o.AppData == nil {
		return nil, invalid(ErrProposal, "AppDataUpdate: component %#04x is not known here", uint16(order[0]))
	}
	var d wire.AppDataDictionary
	if _, err := x.Decode(wire.ExtensionTypeAppDataDictionary, &d); err != nil {
		return nil, invalid(ErrExtensions, "app_data_dictionary: %w", err)
	}
	entries := make(map[wire.ComponentID][]byte, len(d.ComponentData))
	for _, e := range d.ComponentData {
		entries[e.ComponentID] = e.Data
	}
	for _, id := range order {
		c := changes[id]
		old, had := entries[id]
		switch {
		case c.removes > 1 || c.removes == 1 && len(c.updates) > 0:
			return nil, invalid(ErrProposalList, "component %#04x is removed and changed more than once", uint16(id))
		case c.removes == 1 && !had:
			return nil, invalid(ErrProposal, "AppDataUpdate: component %#04x has nothing to remove", uint16(id))
		case c.removes == 1:
			delete(entries, id)
		default:
			data, err := o.AppData(id, old, c.updates)
			if err != nil {
				return nil, invalid(ErrProposal, "AppDataUpdate: component %#04x: %w", uint16(id), err)
			}
			entries[id] = data
		}
	}
	after := wire.AppDataDictionary{ComponentData: make([]wire.ComponentData, 0, len(entries))}
	for _, id := range slices.Sorted(maps.Keys(entries)) {
		after.ComponentData = append(after.ComponentData, wire.ComponentData{ComponentID: id, Data: entries[id]})
	}
	return x.With(wire.NewExtension(wire.ExtensionTypeAppDataDictionary, &after)), nil
}

// CheckAuthenticatedData checks the authenticated data of a message in a group that
// frames it as SafeAAD (extensions draft §4.9); in others it is free. Handshakes
// are checked with everything else about them.
func (g *Group) CheckAuthenticatedData(data []byte) error {
	if g.terms.dictionary == nil {
		return nil
	}
	if _, framed := g.terms.dictionary.Get(wire.ComponentSafeAAD); !framed {
		return nil
	}
	var s wire.SafeAAD
	if err := wire.Unmarshal(data, &s); err != nil {
		return invalid(ErrContent, "authenticated_data is no SafeAAD: %w", err)
	}
	return nil
}
