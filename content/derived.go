package content

import "math"

// Derived is what a receiver knows about a message beside its content, the
// MessageDerivedValues of section 4.6. It is never sent; exports and tools of
// the same draft write it.
type Derived struct {
	ID              MessageID
	HubAccepted     uint64 // milliseconds since 1970
	GroupID         []byte // of the MLS group
	SenderLeafIndex uint32
	SenderClientURL string
	SenderUserURL   string
	RoomURL         string
}

const derivedItems = 7

// Encode returns the one encoding of d.
func (d Derived) Encode() []byte {
	b := appendArray(nil, derivedItems)
	b = appendBytes(b, d.ID[:])
	b = appendUint(b, d.HubAccepted)
	b = appendBytes(b, d.GroupID)
	b = appendUint(b, uint64(d.SenderLeafIndex))
	b = appendText(b, d.SenderClientURL)
	b = appendText(b, d.SenderUserURL)
	return appendText(b, d.RoomURL)
}

// DecodeDerived reads what Encode writes (ErrEncoding). Timestamps in the
// extended form of RFC 9581 are not read.
func DecodeDerived(b []byte) (d Derived, err error) {
	r := reader{b: append([]byte(nil), b...)}
	if err = r.array("the derived values", derivedItems); err != nil {
		return Derived{}, err
	}
	if d.ID, err = r.id("message id"); err != nil {
		return Derived{}, err
	}
	if d.HubAccepted, err = r.uint("accepted timestamp", math.MaxUint64); err != nil {
		return Derived{}, err
	}
	if d.GroupID, err = r.bytes("group id"); err != nil {
		return Derived{}, err
	}
	leaf, err := r.uint("leaf index", math.MaxUint32)
	if err != nil {
		return Derived{}, err
	}
	d.SenderLeafIndex = uint32(leaf)
	for _, s := range []*string{&d.SenderClientURL, &d.SenderUserURL, &d.RoomURL} {
		if *s, err = r.text("a URL"); err != nil {
			return Derived{}, err
		}
	}
	if r.rest() != 0 {
		return Derived{}, r.fail("%d bytes follow the derived values", r.rest())
	}
	return d, nil
}
