package content

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Extension keys of section 8.2.1.
const (
	ExtSenderURI = 1
	ExtRoomURI   = 2
)

const (
	// MaxExtensionValue bounds the encoding of one extension in bytes.
	MaxExtensionValue = 4095
	maxExtensionKey   = 255
	// maxExtensionDepth is what is left below the extensions map itself.
	maxExtensionDepth = 3
)

// Extension is one entry of the extensions map, its key and its value as they
// are encoded. Values that nobody here understands stay as they are.
type Extension struct {
	key   string // encoded integer or text
	value []byte // encoded
}

// Extensions is the extensions map of a message, in the order of its encoding.
type Extensions []Extension

// SetText returns the extensions with a text under an integer key.
func (x Extensions) SetText(key int64, text string) Extensions {
	return x.set(Extension{string(appendInt(nil, key)), appendText(nil, text)})
}

// SetRaw returns the extensions with an encoded CBOR value under an integer
// key. Encode checks it.
func (x Extensions) SetRaw(key int64, value []byte) Extensions {
	return x.set(Extension{string(appendInt(nil, key)), bytes.Clone(value)})
}

// Raw returns the encoded value under an integer key.
func (x Extensions) Raw(key int64) ([]byte, bool) {
	i, ok := x.find(string(appendInt(nil, key)))
	if !ok {
		return nil, false
	}
	return bytes.Clone(x[i].value), true
}

func (x Extensions) find(key string) (int, bool) {
	return slices.BinarySearchFunc(x, key, func(e Extension, key string) int { return strings.Compare(e.key, key) })
}

func (x Extensions) set(e Extension) Extensions {
	out := slices.Clone(x)
	i, ok := out.find(e.key)
	if ok {
		out[i] = e
		return out
	}
	return slices.Insert(out, i, e)
}

// text returns a text value, empty when it is none.
func (x Extensions) text(key int64) string {
	i, ok := x.find(string(appendInt(nil, key)))
	if !ok {
		return ""
	}
	r := reader{b: x[i].value}
	s, err := r.text("extension")
	if err != nil {
		return ""
	}
	return s
}

func appendInt(b []byte, n int64) []byte {
	if n < 0 {
		return appendHead(b, majorNegint, uint64(-1-n))
	}
	return appendUint(b, uint64(n))
}

func (x Extensions) appendTo(b []byte) []byte {
	b = appendHead(b, majorMap, uint64(len(x)))
	for _, e := range x {
		b = append(b, e.key...)
		b = append(b, e.value...)
	}
	return b
}

// check reads the extensions as Decode does.
func (x Extensions) check() error {
	r := reader{b: x.appendTo(nil)}
	_, err := r.extensions()
	if err == nil && r.rest() != 0 {
		err = r.fail("an extension is more than one value")
	}
	return err
}

func (r *reader) extensions() (Extensions, error) {
	n, err := r.expect(majorMap, "extensions")
	if err != nil {
		return nil, err
	}
	var out Extensions
	for range n {
		key, err := r.key("an extension key", false)
		if err != nil {
			return nil, err
		}
		if err := checkExtensionKey(r, key); err != nil {
			return nil, err
		}
		if len(out) > 0 && out[len(out)-1].key >= string(key) {
			return nil, r.fail("extension keys are not in order or occur twice")
		}
		value, err := r.value(maxExtensionDepth)
		if err != nil {
			return nil, err
		}
		if len(value) > MaxExtensionValue {
			return nil, fmt.Errorf("%w: an extension of %d bytes, at most %d allowed", ErrLimit, len(value), MaxExtensionValue)
		}
		e := Extension{string(key), value}
		if isTextExtension(e.key) && value[0]>>5 != majorText {
			return nil, r.fail("the sender's or the room's URI is not text")
		}
		out = append(out, e)
	}
	return out, nil
}

func checkExtensionKey(r *reader, key []byte) error {
	if key[0]>>5 != majorText {
		return nil
	}
	k := reader{b: key}
	s, err := k.text("an extension key")
	if err != nil {
		return err
	}
	if len(s) == 0 || len(s) > maxExtensionKey {
		return r.fail("an extension key of %d bytes, not 1 to %d", len(s), maxExtensionKey)
	}
	return nil
}

func isTextExtension(key string) bool {
	return key == string(appendInt(nil, ExtSenderURI)) || key == string(appendInt(nil, ExtRoomURI))
}
