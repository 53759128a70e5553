package content

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// The CBOR of MIMI content: RFC 8949 in the deterministic encoding of section
// 4.2.1, with the restrictions of draft-ietf-mimi-content-08 section 6. A codec
// of its own rather than a library: a few hundred lines without reflection,
// which reads exactly one encoding of each value and adds next to nothing to
// the browser's engine.

// ErrEncoding says that bytes are not deterministic CBOR of the expected shape.
// Such a message is shown as not understood; asking for it again does not help.
var ErrEncoding = errors.New("content: not a well-formed message")

// ErrLimit says that a message exceeds one of the limits of this package or of
// draft-ietf-mimi-content-08 section 9.1.
var ErrLimit = errors.New("content: message exceeds a limit")

// Major types of RFC 8949 section 3.1.
const (
	majorUint   = 0
	majorNegint = 1
	majorBytes  = 2
	majorText   = 3
	majorArray  = 4
	majorMap    = 5
	majorTag    = 6
	majorSimple = 7
)

const (
	simpleFalse = 0xf4
	simpleTrue  = 0xf5
	simpleNull  = 0xf6

	maxSafeInteger = 1<<53 - 1 // section 6.2: map keys are exact as doubles
)

func appendHead(b []byte, major byte, n uint64) []byte {
	m := major << 5
	switch {
	case n < 24:
		return append(b, m|byte(n))
	case n <= math.MaxUint8:
		return append(b, m|24, byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, m|25), uint16(n))
	case n <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, m|26), uint32(n))
	default:
		return binary.BigEndian.AppendUint64(append(b, m|27), n)
	}
}

func appendUint(b []byte, n uint64) []byte { return appendHead(b, majorUint, n) }

func appendBytes(b, s []byte) []byte {
	return append(appendHead(b, majorBytes, uint64(len(s))), s...)
}

func appendText(b []byte, s string) []byte {
	return append(appendHead(b, majorText, uint64(len(s))), s...)
}

func appendArray(b []byte, n int) []byte { return appendHead(b, majorArray, uint64(n)) }

// reader reads deterministic CBOR. Byte strings alias the input.
type reader struct {
	b   []byte
	off int
}

func (r *reader) fail(format string, args ...any) error {
	return fmt.Errorf("%w: at byte %d: %s", ErrEncoding, r.off, fmt.Sprintf(format, args...))
}

func (r *reader) rest() int { return len(r.b) - r.off }

// head reads a major type with its argument and demands the shortest form.
func (r *reader) head() (major byte, n uint64, err error) {
	if r.rest() == 0 {
		return 0, 0, r.fail("the message ends too early")
	}
	first := r.b[r.off]
	major, info := first>>5, first&31
	if info < 24 {
		r.off++
		return major, uint64(info), nil
	}
	if info > 27 {
		return 0, 0, r.fail("indefinite or reserved length")
	}
	size := 1 << (info - 24)
	if r.rest() < 1+size {
		return 0, 0, r.fail("the message ends too early")
	}
	for _, x := range r.b[r.off+1 : r.off+1+size] {
		n = n<<8 | uint64(x)
	}
	// What fits one size smaller must have been written so.
	if major != majorSimple {
		if size == 1 && n < 24 || size > 1 && n>>(size*4) == 0 {
			return 0, 0, r.fail("a number is not in its shortest form")
		}
	}
	r.off += 1 + size
	return major, n, nil
}

// expect reads a head of one major type.
func (r *reader) expect(major byte, what string) (uint64, error) {
	at := r.off
	m, n, err := r.head()
	if err != nil {
		return 0, err
	}
	if m != major {
		r.off = at
		return 0, r.fail("%s has another CBOR type (%d, not %d)", what, m, major)
	}
	return n, nil
}

func (r *reader) uint(what string, limit uint64) (uint64, error) {
	at := r.off
	n, err := r.expect(majorUint, what)
	if err != nil {
		return 0, err
	}
	if n > limit {
		r.off = at
		return 0, r.fail("%s is %d, at most %d allowed", what, n, limit)
	}
	return n, nil
}

// span takes n bytes of the input.
func (r *reader) span(what string, n uint64) ([]byte, error) {
	if n > uint64(r.rest()) {
		return nil, r.fail("%s is longer than the message", what)
	}
	s := r.b[r.off : r.off+int(n) : r.off+int(n)]
	r.off += int(n)
	return s, nil
}

func (r *reader) bytes(what string) ([]byte, error) {
	n, err := r.expect(majorBytes, what)
	if err != nil {
		return nil, err
	}
	return r.span(what, n)
}

func (r *reader) text(what string) (string, error) {
	n, err := r.expect(majorText, what)
	if err != nil {
		return "", err
	}
	s, err := r.span(what, n)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(s) {
		return "", r.fail("%s is not UTF-8", what)
	}
	return string(s), nil
}

// array reads the head of an array of exactly n items.
func (r *reader) array(what string, n uint64) error {
	got, err := r.expect(majorArray, what)
	if err != nil {
		return err
	}
	if got != n {
		return r.fail("%s has %d items, not %d", what, got, n)
	}
	return nil
}

// null consumes a null when there is one.
func (r *reader) null() bool {
	if r.rest() > 0 && r.b[r.off] == simpleNull {
		r.off++
		return true
	}
	return false
}

func (r *reader) bool(what string) (bool, error) {
	if r.rest() > 0 && (r.b[r.off] == simpleTrue || r.b[r.off] == simpleFalse) {
		r.off++
		return r.b[r.off-1] == simpleTrue, nil
	}
	return false, r.fail("%s is not a boolean", what)
}

// key reads a map key: an integer that a double holds exactly or text, and
// bytes where allowed. It returns the key's encoding.
func (r *reader) key(what string, bytesToo bool) ([]byte, error) {
	at := r.off
	major, n, err := r.head()
	if err != nil {
		return nil, err
	}
	switch {
	case major == majorUint && n <= maxSafeInteger, major == majorNegint && n < maxSafeInteger:
	case major == majorText, major == majorBytes && bytesToo:
		s, err := r.span(what, n)
		if err != nil {
			return nil, err
		}
		if major == majorText && !utf8.Valid(s) {
			return nil, r.fail("%s is not UTF-8", what)
		}
	default:
		r.off = at
		return nil, r.fail("%s is neither an integer nor text", what)
	}
	return r.b[at:r.off:r.off], nil
}

// value reads any value in which arrays, maps and tags nest at most depth
// levels, and returns its encoding.
func (r *reader) value(depth int) ([]byte, error) {
	at := r.off
	major, n, err := r.head()
	if err != nil {
		return nil, err
	}
	if major >= majorArray && major <= majorTag && depth == 0 {
		r.off = at
		return nil, fmt.Errorf("%w: an extension is nested too deeply", ErrLimit)
	}
	switch major {
	case majorUint, majorNegint:
	case majorBytes:
		_, err = r.span("a byte string", n)
	case majorText:
		r.off = at
		_, err = r.text("a text string")
	case majorArray:
		err = r.values(n, depth-1)
	case majorMap:
		err = r.mapValue(n, depth-1)
	case majorTag:
		err = r.tagged(n, depth-1)
	case majorSimple:
		err = r.simple(at, n)
	}
	if err != nil {
		return nil, err
	}
	return r.b[at:r.off:r.off], nil
}

// values reads the n values of an array. Nothing is made in advance of what n
// promises: each value needs its bytes.
func (r *reader) values(n uint64, depth int) error {
	for range n {
		if _, err := r.value(depth); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) mapValue(n uint64, depth int) error {
	var previous []byte
	for range n {
		key, err := r.key("a map key", true)
		if err != nil {
			return err
		}
		if previous != nil && string(previous) >= string(key) {
			return r.fail("map keys are not in order or occur twice")
		}
		previous = key
		if _, err := r.value(depth); err != nil {
			return err
		}
	}
	return nil
}

// tagged reads the value of a tag; bignums must not fit into an integer.
func (r *reader) tagged(tag uint64, depth int) error {
	at := r.off
	inner, err := r.value(depth)
	if err != nil {
		return err
	}
	if tag == 2 || tag == 3 {
		big := reader{b: inner}
		digits, err := big.bytes("a bignum")
		if err != nil {
			r.off = at
			return r.fail("a bignum is not a byte string")
		}
		if len(digits) <= 8 || digits[0] == 0 {
			r.off = at
			return r.fail("a bignum is not in its shortest form")
		}
	}
	return nil
}

// simple checks a value of major type 7 whose head stands at byte at.
func (r *reader) simple(at int, n uint64) error {
	bad := func(what string) error {
		r.off = at
		return r.fail("%s", what)
	}
	switch r.b[at] & 31 {
	default: // 0 to 23 in the head itself
		return nil
	case 24:
		if n < 32 {
			return bad("a simple value is not in its shortest form")
		}
	case 25:
		if n&0x7c00 == 0x7c00 && n&0x3ff != 0 && n != 0x7e00 {
			return bad("a NaN that is not the quiet one")
		}
	case 26:
		f := math.Float32frombits(uint32(n))
		if f != f || fitsHalf(float64(f)) {
			return bad("a float is not in its shortest form")
		}
	case 27:
		f := math.Float64frombits(n)
		if f != f || float64(float32(f)) == f {
			return bad("a float is not in its shortest form")
		}
	}
	return nil
}

// fitsHalf reports whether f is exact in 16 bits: 11 bits of significand and an
// exponent from 2^-24 (the smallest subnormal) to 65504.
func fitsHalf(f float64) bool {
	if f == 0 || math.IsInf(f, 0) {
		return true
	}
	if math.Abs(f) > 65504 {
		return false
	}
	_, exponent := math.Frexp(f) // |f| = m * 2^exponent, m in [0.5, 1)
	unit := max(exponent-11, -24)
	scaled := math.Ldexp(f, -unit)
	return scaled == math.Trunc(scaled)
}
