package content

import (
	"fmt"
	"math"
)

// Limits of draft-ietf-mimi-content-08 sections 6.3 and 9.1, and ours.
const (
	// MaxSize bounds an encoded message in bytes.
	MaxSize = 256 << 10
	// MaxParts bounds the parts of a message, nested ones included.
	MaxParts = 1024
	// MaxDepth bounds the nesting of parts; a lone part is at depth 1.
	MaxDepth = 4
	// MaxTopic bounds a topic id in bytes.
	MaxTopic = 4096

	maxContentType = 255
	maxLanguage    = 255
	maxURL         = 4096
	maxFilename    = 1024
	maxDescription = 16 << 10
	maxKeyField    = 255
)

// Disposition says what a part is for (section 8.2.2). Values that are not
// named here are kept and treated like DispositionRender.
type Disposition uint8

// Dispositions of the draft's registry.
const (
	DispositionUnspecified Disposition = 0 // no hint
	DispositionRender      Disposition = 1 // shown by local policy
	DispositionReaction    Disposition = 2 // a reaction to another message
	DispositionProfile     Disposition = 3 // the profile of a person or room
	DispositionInline      Disposition = 4 // shown directly in the conversation
	DispositionIcon        Disposition = 5 // a picture of a person or room
	DispositionAttachment  Disposition = 6 // downloaded rather than shown
	DispositionSession     Disposition = 7 // a multimedia session to join
	DispositionPreview     Disposition = 8 // the sender's preview of something
)

// Part is one node of a message's body (NestedPart of section 4.4).
type Part struct {
	Disposition Disposition
	Language    string // empty or language tags of RFC 5646, separated by commas
	Content     PartContent
}

// PartContent is one of Null, Single, External and Multi.
type PartContent interface {
	appendTo(b []byte) []byte
	check(depth int, parts *int) error
	items() int // items of the part's array beyond disposition and language
}

// Null is the body of a message that takes something back.
type Null struct{}

// Single is a part that carries its content.
type Single struct {
	ContentType string // IANA media type with parameters
	Content     []byte
}

// External is a part whose content lies elsewhere (section 4.5).
type External struct {
	ContentType string
	URL         string
	Expires     uint32 // seconds since 1970 until when the URL works, 0 = for good
	Size        uint64 // of the content in bytes, 0 = not said
	EncAlg      uint16 // IANA AEAD number, 0 = not encrypted; see AESGCM128 and StreamAESGCM128
	Key         Secret
	Nonce       []byte
	AAD         []byte
	HashAlg     uint8  // IANA named information hash, 0 = none, 1 = SHA-256
	ContentHash []byte // of what lies at the URL
	Description string
	Filename    string
}

// PartSemantics says how the parts of a Multi belong together.
type PartSemantics uint8

// Part semantics of section 4.4.
const (
	ChooseOne  PartSemantics = 0 // the receiver processes the one it prefers
	SingleUnit PartSemantics = 1 // all or none
	ProcessAll PartSemantics = 2 // each by itself
)

// Multi is a part of at least two parts.
type Multi struct {
	Semantics PartSemantics
	Parts     []Part
}

const (
	cardinalityNull     = 0
	cardinalitySingle   = 1
	cardinalityExternal = 2
	cardinalityMulti    = 3
)

func (p Part) appendTo(b []byte) []byte {
	b = appendArray(b, 2+p.Content.items())
	b = appendUint(b, uint64(p.Disposition))
	b = appendText(b, p.Language)
	return p.Content.appendTo(b)
}

func (Null) items() int     { return 1 }
func (Single) items() int   { return 3 }
func (External) items() int { return 13 }
func (Multi) items() int    { return 3 }

func (Null) appendTo(b []byte) []byte { return appendUint(b, cardinalityNull) }

func (s Single) appendTo(b []byte) []byte {
	b = appendUint(b, cardinalitySingle)
	b = appendText(b, s.ContentType)
	return appendBytes(b, s.Content)
}

func (e External) appendTo(b []byte) []byte {
	b = appendUint(b, cardinalityExternal)
	b = appendText(b, e.ContentType)
	b = appendText(b, e.URL)
	b = appendUint(b, uint64(e.Expires))
	b = appendUint(b, e.Size)
	b = appendUint(b, uint64(e.EncAlg))
	b = appendBytes(b, e.Key)
	b = appendBytes(b, e.Nonce)
	b = appendBytes(b, e.AAD)
	b = appendUint(b, uint64(e.HashAlg))
	b = appendBytes(b, e.ContentHash)
	b = appendText(b, e.Description)
	return appendText(b, e.Filename)
}

func (m Multi) appendTo(b []byte) []byte {
	b = appendUint(b, cardinalityMulti)
	b = appendUint(b, uint64(m.Semantics))
	b = appendArray(b, len(m.Parts))
	for _, p := range m.Parts {
		b = p.appendTo(b)
	}
	return b
}

// check holds the limits for a part at a depth, the root being at 1, and counts
// it. Encode and Decode both end here.
func (p Part) check(depth int, parts *int) error {
	if *parts++; *parts > MaxParts {
		return fmt.Errorf("%w: more than %d parts", ErrLimit, MaxParts)
	}
	if depth > MaxDepth {
		return fmt.Errorf("%w: parts are nested more than %d levels deep", ErrLimit, MaxDepth)
	}
	if err := checkText("language", p.Language, maxLanguage); err != nil {
		return err
	}
	if p.Content == nil {
		return fmt.Errorf("%w: a part without content", ErrEncoding)
	}
	return p.Content.check(depth, parts)
}

func (Null) check(int, *int) error { return nil }

func (s Single) check(int, *int) error {
	return checkText("content type", s.ContentType, maxContentType)
}

func (e External) check(int, *int) error {
	for _, f := range []struct {
		what, s string
		limit   int
	}{
		{"content type", e.ContentType, maxContentType}, {"URL", e.URL, maxURL},
		{"description", e.Description, maxDescription}, {"file name", e.Filename, maxFilename},
	} {
		if err := checkText(f.what, f.s, f.limit); err != nil {
			return err
		}
	}
	if max(len(e.Key), len(e.Nonce), len(e.AAD), len(e.ContentHash)) > maxKeyField {
		return fmt.Errorf("%w: key, nonce, aad or hash of an attachment above %d bytes", ErrLimit, maxKeyField)
	}
	return nil
}

func (m Multi) check(depth int, parts *int) error {
	if m.Semantics > ProcessAll {
		return fmt.Errorf("%w: unknown part semantics %d", ErrEncoding, m.Semantics)
	}
	if len(m.Parts) < 2 {
		return fmt.Errorf("%w: a multipart of %d parts, at least 2 needed", ErrEncoding, len(m.Parts))
	}
	for _, p := range m.Parts {
		if err := p.check(depth+1, parts); err != nil {
			return err
		}
	}
	return nil
}

// part reads a part at a depth. Depth and number are bounded here too, before
// anything is allocated for them.
func (r *reader) part(depth int, parts *int) (Part, error) {
	if *parts++; *parts > MaxParts || depth > MaxDepth {
		return Part{}, fmt.Errorf("%w: more than %d parts or %d levels", ErrLimit, MaxParts, MaxDepth)
	}
	n, err := r.expect(majorArray, "a part")
	if err != nil {
		return Part{}, err
	}
	disposition, err := r.uint("disposition", math.MaxUint8)
	if err != nil {
		return Part{}, err
	}
	p := Part{Disposition: Disposition(disposition)}
	if p.Language, err = r.text("language"); err != nil {
		return Part{}, err
	}
	cardinality, err := r.uint("cardinality", cardinalityMulti)
	if err != nil {
		return Part{}, err
	}
	switch cardinality {
	case cardinalityNull:
		p.Content = Null{}
	case cardinalitySingle:
		p.Content, err = r.single()
	case cardinalityExternal:
		p.Content, err = r.external()
	case cardinalityMulti:
		p.Content, err = r.multi(depth, parts)
	}
	if err != nil {
		return Part{}, err
	}
	if want := uint64(2 + p.Content.items()); n != want {
		return Part{}, r.fail("a part has %d items, not %d", n, want)
	}
	return p, nil
}

func (r *reader) single() (s Single, err error) {
	if s.ContentType, err = r.text("content type"); err != nil {
		return s, err
	}
	s.Content, err = r.bytes("content")
	return s, err
}

func (r *reader) external() (e External, err error) {
	text := func(dst *string, what string) {
		if err == nil {
			*dst, err = r.text(what)
		}
	}
	bytes := func(dst *[]byte, what string) {
		if err == nil {
			*dst, err = r.bytes(what)
		}
	}
	number := func(what string, limit uint64) (n uint64) {
		if err == nil {
			n, err = r.uint(what, limit)
		}
		return n
	}
	text(&e.ContentType, "content type")
	text(&e.URL, "URL")
	e.Expires = uint32(number("expiry", math.MaxUint32))
	e.Size = number("size", math.MaxUint64)
	e.EncAlg = uint16(number("algorithm", math.MaxUint16))
	bytes((*[]byte)(&e.Key), "key")
	bytes(&e.Nonce, "nonce")
	bytes(&e.AAD, "aad")
	e.HashAlg = uint8(number("hash algorithm", math.MaxUint8))
	bytes(&e.ContentHash, "content hash")
	text(&e.Description, "description")
	text(&e.Filename, "file name")
	return e, err
}

func (r *reader) multi(depth int, parts *int) (Multi, error) {
	semantics, err := r.uint("part semantics", uint64(ProcessAll))
	if err != nil {
		return Multi{}, err
	}
	n, err := r.expect(majorArray, "the parts")
	if err != nil {
		return Multi{}, err
	}
	if n < 2 {
		return Multi{}, r.fail("a multipart of %d parts", n)
	}
	m := Multi{Semantics: PartSemantics(semantics)}
	for range n {
		p, err := r.part(depth+1, parts)
		if err != nil {
			return Multi{}, err
		}
		m.Parts = append(m.Parts, p)
	}
	return m, nil
}
