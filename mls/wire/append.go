package wire

import "encoding/binary"

// MaxVectorLength is the largest length, in bytes, that a vector can have:
// the codec's varints carry 30 bits (RFC 9420 §2.1.2).
const MaxVectorLength = 1<<30 - 1

// Encoder is implemented by every structure of this package.
type Encoder interface {
	// AppendTo appends the value's encoding to b and returns the result.
	AppendTo(b []byte) []byte
}

// Marshal returns the encoding of v.
func Marshal(v Encoder) []byte { return v.AppendTo(make([]byte, 0, 512)) }

// AppendUint8 appends one byte.
func AppendUint8(b []byte, v uint8) []byte { return append(b, v) }

// AppendUint16 appends two bytes, big-endian.
func AppendUint16(b []byte, v uint16) []byte { return binary.BigEndian.AppendUint16(b, v) }

// AppendUint32 appends four bytes, big-endian.
func AppendUint32(b []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(b, v) }

// AppendUint64 appends eight bytes, big-endian.
func AppendUint64(b []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(b, v) }

// AppendVarint appends n as a minimal variable-size integer of one, two or
// four bytes (RFC 9420 §2.1.2). It panics when n is negative or larger than
// [MaxVectorLength], which no value held by this package can reach without
// first occupying a gibibyte of memory.
func AppendVarint(b []byte, n int) []byte {
	switch {
	case n < 0 || n > MaxVectorLength:
		panic("mls/wire: a vector of 2^30 bytes or more cannot be encoded")
	case n < 1<<6:
		return append(b, byte(n))
	case n < 1<<14:
		return binary.BigEndian.AppendUint16(b, 1<<14|uint16(n))
	default:
		return binary.BigEndian.AppendUint32(b, 2<<30|uint32(n))
	}
}

// AppendOpaque appends v as opaque<V>: its length as a varint, then its bytes.
func AppendOpaque[T ~[]byte | ~string](b []byte, v T) []byte {
	return append(AppendVarint(b, len(v)), v...)
}

// OpenVector starts a vector whose length is not known yet. The caller appends
// the elements and then calls [CloseVector] with the returned mark.
func OpenVector(b []byte) (_ []byte, mark int) { return append(b, 0), len(b) }

// CloseVector writes the length of everything appended since [OpenVector]
// gave mark. The elements move by up to three bytes when the length needs more
// than one byte.
func CloseVector(b []byte, mark int) []byte {
	n := len(b) - mark - 1
	if n < 1<<6 {
		b[mark] = byte(n)
		return b
	}
	var prefix [4]byte
	p := AppendVarint(prefix[:0], n)
	b = append(b, p[1:]...)
	copy(b[mark+len(p):], b[mark+1:mark+1+n])
	copy(b[mark:], p)
	return b
}

// AppendVector appends a vector of structures.
func AppendVector[T any, P interface {
	*T
	Encoder
}](b []byte, list []T) []byte {
	b, mark := OpenVector(b)
	for i := range list {
		b = P(&list[i]).AppendTo(b)
	}
	return CloseVector(b, mark)
}

// AppendOptional appends optional<T> (§2.1.1): 0 for nil, else 1 and the value.
func AppendOptional[T any, P interface {
	*T
	Encoder
}](b []byte, v *T) []byte {
	if v == nil {
		return append(b, 0)
	}
	return P(v).AppendTo(append(b, 1))
}

// AppendUint16Vector appends a vector of two-byte values.
func AppendUint16Vector[T ~uint16](b []byte, list []T) []byte {
	b = AppendVarint(b, 2*len(list))
	for _, v := range list {
		b = AppendUint16(b, uint16(v))
	}
	return b
}

// AppendUint32Vector appends a vector of four-byte values.
func AppendUint32Vector[T ~uint32](b []byte, list []T) []byte {
	b = AppendVarint(b, 4*len(list))
	for _, v := range list {
		b = AppendUint32(b, uint32(v))
	}
	return b
}
