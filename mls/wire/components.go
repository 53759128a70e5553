package wire

import (
	"cmp"
	"slices"
)

// ComponentID names a component of an application (extensions draft §4.1).
type ComponentID uint16

// The components of the extensions draft §7.5. 0x8000 and above are private.
const (
	ComponentAppComponents        ComponentID = 0x0001
	ComponentSafeAAD              ComponentID = 0x0002
	ComponentContentMediaTypes    ComponentID = 0x0003
	ComponentLastResortKeyPackage ComponentID = 0x0004
	ComponentAppAck               ComponentID = 0x0005
)

// ComponentOperationLabel is the label under which a component signs, encrypts
// or derives (extensions draft §4.1).
type ComponentOperationLabel struct {
	ComponentID ComponentID
	Label       []byte
}

// AppendTo implements [Encoder].
func (l *ComponentOperationLabel) AppendTo(b []byte) []byte {
	b = AppendOpaque(b, "MLS Component")
	b = AppendUint16(b, uint16(l.ComponentID))
	return AppendOpaque(b, l.Label)
}

// ComponentData is one component's entry in an [AppDataDictionary].
type ComponentData struct {
	ComponentID ComponentID
	Data        []byte
}

// AppendTo implements [Encoder].
func (d *ComponentData) AppendTo(b []byte) []byte {
	return AppendOpaque(AppendUint16(b, uint16(d.ComponentID)), d.Data)
}

// DecodeFrom implements [Decoder].
func (d *ComponentData) DecodeFrom(r *Reader) {
	d.ComponentID = ComponentID(r.Uint16())
	d.Data = r.Opaque()
}

// AppDataDictionary is the content of the app_data_dictionary extension
// (extensions draft §4.6). Entries ascend by component and none occurs twice;
// decoding refuses anything else with [ErrValue].
type AppDataDictionary struct {
	ComponentData []ComponentData
}

// AppendTo implements [Encoder].
func (d *AppDataDictionary) AppendTo(b []byte) []byte { return AppendVector(b, d.ComponentData) }

// DecodeFrom implements [Decoder].
func (d *AppDataDictionary) DecodeFrom(r *Reader) {
	in := r.Begin("AppDataDictionary")
	d.ComponentData = ReadVector[ComponentData](r)
	for i := 1; i < len(d.ComponentData); i++ {
		if d.ComponentData[i-1].ComponentID >= d.ComponentData[i].ComponentID {
			r.Fail(ErrValue)
			break
		}
	}
	r.End(in)
}

func (d *AppDataDictionary) search(id ComponentID) (int, bool) {
	return slices.BinarySearchFunc(d.ComponentData, id, func(e ComponentData, id ComponentID) int {
		return cmp.Compare(e.ComponentID, id)
	})
}

// Get returns the data of a component.
func (d *AppDataDictionary) Get(id ComponentID) (data []byte, found bool) {
	i, found := d.search(id)
	if !found {
		return nil, false
	}
	return d.ComponentData[i].Data, true
}

// With returns a dictionary in which id has the given data; d is not changed.
func (d *AppDataDictionary) With(id ComponentID, data []byte) AppDataDictionary {
	entries := slices.Clone(d.ComponentData)
	i, found := d.search(id)
	if found {
		entries[i].Data = data
	} else {
		entries = slices.Insert(entries, i, ComponentData{ComponentID: id, Data: data})
	}
	return AppDataDictionary{ComponentData: entries}
}

// Without returns a dictionary in which id has no entry; d is not changed.
func (d *AppDataDictionary) Without(id ComponentID) AppDataDictionary {
	entries := slices.Clone(d.ComponentData)
	if i, found := d.search(id); found {
		entries = slices.Delete(entries, i, i+1)
	}
	return AppDataDictionary{ComponentData: entries}
}

// ComponentsList is the content of the components app_components and safe_aad
// (extensions draft §5): supported ones in a leaf, required ones in a
// GroupContext.
type ComponentsList struct {
	ComponentIDs []ComponentID
}

// AppendTo implements [Encoder].
func (l *ComponentsList) AppendTo(b []byte) []byte { return AppendUint16Vector(b, l.ComponentIDs) }

// DecodeFrom implements [Decoder].
func (l *ComponentsList) DecodeFrom(r *Reader) {
	in := r.Begin("ComponentsList")
	l.ComponentIDs = ReadUint16Vector[ComponentID](r)
	r.End(in)
}

// SafeAADItem is one component's part of a message's authenticated data.
type SafeAADItem struct {
	ComponentID ComponentID
	AADItemData []byte
}

// AppendTo implements [Encoder].
func (i *SafeAADItem) AppendTo(b []byte) []byte {
	return AppendOpaque(AppendUint16(b, uint16(i.ComponentID)), i.AADItemData)
}

// DecodeFrom implements [Decoder].
func (i *SafeAADItem) DecodeFrom(r *Reader) {
	i.ComponentID = ComponentID(r.Uint16())
	i.AADItemData = r.Opaque()
}

// SafeAAD is the whole authenticated_data of every message in a group whose
// GroupContext has the component safe_aad (extensions draft §4.9). Items
// ascend by component and none occurs twice; decoding refuses anything else
// with [ErrValue].
type SafeAAD struct {
	AADItems []SafeAADItem
}

// AppendTo implements [Encoder].
func (s *SafeAAD) AppendTo(b []byte) []byte { return AppendVector(b, s.AADItems) }

// DecodeFrom implements [Decoder].
func (s *SafeAAD) DecodeFrom(r *Reader) {
	in := r.Begin("SafeAAD")
	s.AADItems = ReadVector[SafeAADItem](r)
	for i := 1; i < len(s.AADItems); i++ {
		if s.AADItems[i-1].ComponentID >= s.AADItems[i].ComponentID {
			r.Fail(ErrValue)
			break
		}
	}
	r.End(in)
}

// IsLastResort reports whether a KeyPackage with these extensions may be used
// more than once: by the component last_resort_key_package (extensions draft
// §6.4), or by the extension of earlier drafts. A dictionary that does not
// decode says nothing; the validator refuses it.
func IsLastResort(extensions Extensions) bool {
	if _, found := extensions.Find(ExtensionTypeLastResort); found {
		return true
	}
	var d AppDataDictionary
	if _, err := extensions.Decode(ExtensionTypeAppDataDictionary, &d); err != nil {
		return false
	}
	_, found := d.Get(ComponentLastResortKeyPackage)
	return found
}
