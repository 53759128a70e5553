package wire

import (
	"errors"
	"fmt"
)

// What can be wrong with bytes that are to be decoded. Every error of
// [Unmarshal] is a [*DecodeError] that wraps exactly one of these.
var (
	// ErrTruncated: the bytes end before the value does, or a declared
	// length reaches beyond the bytes that enclose it.
	ErrTruncated = errors.New("the bytes end too early")
	// ErrTrailing: bytes follow the value, or an element does not fill the
	// vector that encloses it.
	ErrTrailing = errors.New("bytes are left over after the value")
	// ErrVarint: a length is not in its shortest form or has the prefix 11,
	// which RFC 9420 §2.1.2 leaves invalid.
	ErrVarint = errors.New("the length is not a minimal varint")
	// ErrVersion: the protocol version is not mls10.
	ErrVersion = errors.New("the protocol version is not mls10")
	// ErrValue: an enumeration, a presence byte or an order has a value that
	// the structure does not allow.
	ErrValue = errors.New("the value is not allowed here")
)

// DecodeError says where decoding stopped and why. It never contains bytes of
// the input, which may be secret.
type DecodeError struct {
	Structure string // the innermost RFC structure being read
	Offset    int    // bytes from the start of the input
	Err       error  // one of the Err variables of this package
}

func (e *DecodeError) Error() string {
	return fmt.Sprintf("mls/wire: %s at byte %d: %v", e.Structure, e.Offset, e.Err)
}

func (e *DecodeError) Unwrap() error { return e.Err }
