package wire

import (
	"bytes"
	"encoding/binary"
)

// Decoder is implemented by every structure that can be read on its own.
type Decoder interface {
	// DecodeFrom reads the value from r. Failure is kept in r; the value is
	// then meaningless.
	DecodeFrom(r *Reader)
}

// Unmarshal decodes data into v and refuses anything left over. It copies data
// once; the result holds slices of that copy and never of data. On error v is
// left in an unspecified state. Errors are [*DecodeError].
func Unmarshal(data []byte, v Decoder) error {
	r := NewReader(bytes.Clone(data))
	v.DecodeFrom(r)
	return r.Finish()
}

// Reader reads values from the front of a byte slice. The first failure sticks:
// later reads return zero values and [Reader.Finish] reports it, so a decoder
// reads all its fields and needs no check after each. Slices returned by a
// Reader point into its input and have no spare capacity.
type Reader struct {
	data []byte
	off  int
	end  int // reading may not go past here: the end of the innermost vector
	in   string
	err  *DecodeError
}

// NewReader returns a Reader over data, which the caller must not change while
// decoded values are in use.
func NewReader(data []byte) *Reader {
	return &Reader{data: data, end: len(data), in: "message"}
}

// Finish returns the first failure, or [ErrTrailing] when bytes are left.
func (r *Reader) Finish() error {
	if r.err == nil && r.off != len(r.data) {
		r.Fail(ErrTrailing)
	}
	if r.err != nil {
		return r.err
	}
	return nil
}

// Err returns the first failure or nil; bytes may still be left.
func (r *Reader) Err() error {
	if r.err != nil {
		return r.err
	}
	return nil
}

// Fail records err, unless a failure is recorded already, at the current offset.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = &DecodeError{Structure: r.in, Offset: r.off, Err: err}
	}
	r.end = r.off
}

// Begin names the structure that is now being read, for errors, and returns
// the enclosing one's name, to be given to [Reader.End].
func (r *Reader) Begin(structure string) (enclosing string) {
	enclosing, r.in = r.in, structure
	return enclosing
}

// End goes back to the enclosing structure.
func (r *Reader) End(enclosing string) { r.in = enclosing }

// Offset returns how many bytes have been read.
func (r *Reader) Offset() int { return r.off }

// More reports whether bytes are left in the innermost vector.
func (r *Reader) More() bool { return r.err == nil && r.off < r.end }

// Bytes reads exactly n bytes.
func (r *Reader) Bytes(n int) []byte {
	if r.err != nil {
		return nil
	}
	if n < 0 || n > r.end-r.off {
		r.Fail(ErrTruncated)
		return nil
	}
	if n == 0 {
		return nil
	}
	b := r.data[r.off : r.off+n : r.off+n]
	r.off += n
	return b
}

// Rest reads everything up to the end of the innermost vector.
func (r *Reader) Rest() []byte { return r.Bytes(r.end - r.off) }

// Uint8 reads one byte.
func (r *Reader) Uint8() uint8 {
	if b := r.Bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// Uint16 reads two bytes, big-endian.
func (r *Reader) Uint16() uint16 {
	if b := r.Bytes(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

// Uint32 reads four bytes, big-endian.
func (r *Reader) Uint32() uint32 {
	if b := r.Bytes(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

// Uint64 reads eight bytes, big-endian.
func (r *Reader) Uint64() uint64 {
	if b := r.Bytes(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// Varint reads a length (§2.1.2). It fails with [ErrVarint] when the length is
// not in its shortest form or its prefix is 11. The length is not compared
// with what is left.
func (r *Reader) Varint() int {
	if !r.More() {
		r.Fail(ErrTruncated)
		return 0
	}
	var n, least int
	switch r.data[r.off] >> 6 {
	case 0:
		return int(r.Uint8())
	case 1:
		n, least = int(r.Uint16()&(1<<14-1)), 1<<6
	case 2:
		n, least = int(r.Uint32()&(1<<30-1)), 1<<14
	default:
		r.Fail(ErrVarint)
		return 0
	}
	if r.err == nil && n < least {
		r.Fail(ErrVarint)
	}
	if r.err != nil {
		return 0
	}
	return n
}

// Opaque reads opaque<V>. An empty one is nil.
func (r *Reader) Opaque() []byte { return r.Bytes(r.Varint()) }

// EnterVector reads a vector's length and confines reading to its elements
// until [Reader.LeaveVector] is given the returned value.
func (r *Reader) EnterVector() (outer int) {
	n := r.Varint()
	outer = r.end
	if n > r.end-r.off {
		r.Fail(ErrTruncated)
		return outer
	}
	r.end = r.off + n
	return outer
}

// LeaveVector ends a vector; it fails with [ErrTrailing] when its elements do
// not fill it.
func (r *Reader) LeaveVector(outer int) {
	if r.More() {
		r.Fail(ErrTrailing)
	}
	if r.err == nil {
		r.end = outer
	}
}

// ReadVector reads a vector of structures.
func ReadVector[T any, P interface {
	*T
	Decoder
}](r *Reader) []T {
	var list []T
	outer := r.EnterVector()
	for r.More() {
		before := r.off
		var zero T
		list = append(list, zero)
		P(&list[len(list)-1]).DecodeFrom(r)
		if r.err == nil && r.off == before {
			r.Fail(ErrValue) // an element of no bytes would repeat for ever
		}
	}
	r.LeaveVector(outer)
	return list
}

// ReadOptional reads optional<T> (§2.1.1); absent is nil.
func ReadOptional[T any, P interface {
	*T
	Decoder
}](r *Reader) *T {
	if !r.Present() {
		return nil
	}
	v := new(T)
	P(v).DecodeFrom(r)
	return v
}

// Present reads the presence byte of optional<T>; anything but 0 and 1 fails.
func (r *Reader) Present() bool {
	v := r.Uint8()
	if v > 1 {
		r.off--
		r.Fail(ErrValue)
	}
	return v == 1
}

// ReadUint16Vector reads a vector of two-byte values.
func ReadUint16Vector[T ~uint16](r *Reader) []T {
	b := r.Opaque()
	if len(b)%2 != 0 {
		r.Fail(ErrTruncated)
		return nil
	}
	if len(b) == 0 {
		return nil
	}
	list := make([]T, len(b)/2)
	for i := range list {
		list[i] = T(binary.BigEndian.Uint16(b[2*i:]))
	}
	return list
}

// ReadUint32Vector reads a vector of four-byte values.
func ReadUint32Vector[T ~uint32](r *Reader) []T {
	b := r.Opaque()
	if len(b)%4 != 0 {
		r.Fail(ErrTruncated)
		return nil
	}
	if len(b) == 0 {
		return nil
	}
	list := make([]T, len(b)/4)
	for i := range list {
		list[i] = T(binary.BigEndian.Uint32(b[4*i:]))
	}
	return list
}
