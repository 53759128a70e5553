package identity

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Fields of the header's JSON object.
const (
	fieldDevice    = "device_pubkey"
	fieldHome      = "home"
	fieldMethod    = "method"
	fieldPath      = "path"
	fieldIssuedAt  = "issued_at"
	fieldNonce     = "nonce"
	fieldSignature = "signature"
)

// maxUnknownFields bounds what a later version may add to the header; such
// fields are not signed and are ignored.
const maxUnknownFields = 8

var envelopeEncoding = base64.RawURLEncoding.Strict()

// header writes base64url without padding of
//
//	{"device_pubkey":[32 numbers],"home":hex,"method":…,"path":…,
//	 "issued_at":number,"nonce":[16 numbers],"signature":hex}
func (u UnverifiedEnvelope) header() string {
	b := make([]byte, 0, 512+len(u.Target))
	b = append(b, `{"device_pubkey":`...)
	b = appendNumbers(b, u.DevicePubkey[:])
	b = append(b, `,"home":"`...)
	b = append(b, u.Home.String()...)
	b = append(b, `","method":`...)
	b = appendASCII(b, u.Method)
	b = append(b, `,"path":`...)
	b = appendASCII(b, u.Target)
	b = append(b, `,"issued_at":`...)
	b = strconv.AppendUint(b, u.IssuedAt, 10)
	b = append(b, `,"nonce":`...)
	b = appendNumbers(b, u.Nonce[:])
	b = append(b, `,"signature":"`...)
	b = append(b, u.Signature.String()...)
	b = append(b, `"}`...)
	return envelopeEncoding.EncodeToString(b)
}

func appendNumbers(b, numbers []byte) []byte {
	b = append(b, '[')
	for i, n := range numbers {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, uint64(n), 10)
	}
	return append(b, ']')
}

// appendASCII writes a JSON string of visible ASCII, which Seal has checked.
func appendASCII(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return append(b, '"')
}

// ParseEnvelopeHeader reads the value of an x-chat-relay header: at most
// MaxEnvelopeHeader bytes of base64url without padding, holding one JSON object
// with each known field exactly once, in any order and spacing (ErrFormat).
func ParseEnvelopeHeader(header string) (UnverifiedEnvelope, error) {
	if header == "" {
		return UnverifiedEnvelope{}, fmt.Errorf("%w: the %s header is empty", ErrFormat, EnvelopeHeader)
	}
	if len(header) > MaxEnvelopeHeader {
		return UnverifiedEnvelope{}, fmt.Errorf("%w: the %s header has %d bytes, at most %d allowed", ErrFormat, EnvelopeHeader, len(header), MaxEnvelopeHeader)
	}
	if strings.ContainsAny(header, "\r\n") {
		return UnverifiedEnvelope{}, fmt.Errorf("%w: the %s header has a line break", ErrFormat, EnvelopeHeader)
	}
	raw, err := envelopeEncoding.DecodeString(header)
	if err != nil {
		return UnverifiedEnvelope{}, fmt.Errorf("%w: the %s header is not base64url without padding: %w", ErrFormat, EnvelopeHeader, err)
	}
	p := headerParser{dec: json.NewDecoder(bytes.NewReader(raw)), seen: map[string]bool{}}
	p.dec.UseNumber()
	if err := p.object(); err != nil {
		return UnverifiedEnvelope{}, fmt.Errorf("%w: the %s header: %w", ErrFormat, EnvelopeHeader, err)
	}
	return p.u, nil
}

// headerParser reads the object token by token: unlike unmarshalling into a
// struct it refuses doubled fields, other cases of a name and wrong lengths.
type headerParser struct {
	dec  *json.Decoder
	seen map[string]bool
	u    UnverifiedEnvelope
}

func (p *headerParser) object() error {
	if err := p.delim('{'); err != nil {
		return err
	}
	unknown := 0
	for p.dec.More() {
		name, err := p.text("a field name")
		if err != nil {
			return err
		}
		if p.seen[name] {
			return fmt.Errorf("field %q twice", name)
		}
		p.seen[name] = true
		known, err := p.field(name)
		if err != nil {
			return err
		}
		if known {
			continue
		}
		if unknown++; unknown > maxUnknownFields {
			return errors.New("too many unknown fields")
		}
		var ignored json.RawMessage
		if err := p.dec.Decode(&ignored); err != nil {
			return err
		}
	}
	if err := p.delim('}'); err != nil {
		return err
	}
	for _, name := range []string{fieldDevice, fieldHome, fieldMethod, fieldPath, fieldIssuedAt, fieldNonce, fieldSignature} {
		if !p.seen[name] {
			return fmt.Errorf("field %q is missing", name)
		}
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the object")
	}
	return nil
}

// field reads the value of a known field.
func (p *headerParser) field(name string) (known bool, err error) {
	switch name {
	case fieldDevice:
		return true, p.numbers(name, p.u.DevicePubkey[:])
	case fieldNonce:
		return true, p.numbers(name, p.u.Nonce[:])
	case fieldHome:
		return true, p.hex(name, p.u.Home.UnmarshalText)
	case fieldSignature:
		return true, p.hex(name, p.u.Signature.UnmarshalText)
	case fieldMethod:
		p.u.Method, err = p.text(name)
		return true, err
	case fieldPath:
		p.u.Target, err = p.text(name)
		return true, err
	case fieldIssuedAt:
		p.u.IssuedAt, err = p.number(name, 64)
		return true, err
	}
	return false, nil
}

func (p *headerParser) delim(want json.Delim) error {
	t, err := p.dec.Token()
	if err != nil {
		return err
	}
	if t != want {
		return fmt.Errorf("expected %q", want.String())
	}
	return nil
}

func (p *headerParser) text(name string) (string, error) {
	t, err := p.dec.Token()
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok {
		return "", fmt.Errorf("%s is not a string", name)
	}
	return s, nil
}

func (p *headerParser) number(name string, bits int) (uint64, error) {
	t, err := p.dec.Token()
	if err != nil {
		return 0, err
	}
	n, _ := t.(json.Number) // what is no number is no integer either
	v, err := strconv.ParseUint(n.String(), 10, bits)
	if err != nil {
		return 0, fmt.Errorf("%s is not an integer of %d bits", name, bits)
	}
	return v, nil
}

func (p *headerParser) numbers(name string, dst []byte) error {
	if err := p.delim('['); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for i := range dst {
		// mutants: equivalent: the bracket is no number either; this says it better
		if !p.dec.More() {
			return fmt.Errorf("%s has %d numbers, not %d", name, i, len(dst))
		}
		v, err := p.number(name, 8)
		if err != nil {
			return err
		}
		dst[i] = byte(v)
	}
	// mutants: equivalent: a further number is no bracket either; this says it better
	if p.dec.More() {
		return fmt.Errorf("%s has more than %d numbers", name, len(dst))
	}
	return p.delim(']')
}

func (p *headerParser) hex(name string, set func([]byte) error) error {
	s, err := p.text(name)
	if err != nil {
		return err
	}
	return set([]byte(s))
}
