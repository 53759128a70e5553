package content

import (
	"fmt"
	"io"
)

// IANA AEAD numbers of attachments (the field encAlg of section 4.5).
const (
	// AEADNone says that an attachment is not encrypted.
	AEADNone = 0
	// AESGCM128 is AES-128-GCM over the whole file, which every reader of the
	// draft knows. It is used up to MaxWhole bytes.
	AESGCM128 = 1
	// StreamAESGCM128 is the chunked construction of stream.go. The number lies
	// in the range that IANA leaves to private use.
	StreamAESGCM128 = 0xf001
)

const (
	hashNone = 0

	fileKeySize     = 16
	wholeNonceSize  = 12
	streamNonceSize = 7
)

// Secret is key material. It prints as [redacted] under every verb.
type Secret []byte

// Format prints [redacted] for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[redacted]") }

// Attachment is a file that lies elsewhere, as ciphertext. Several in one
// message are an album; a Text beside them is their caption.
type Attachment struct {
	External
	Disposition Disposition // DispositionAttachment when zero
	Language    string
	Info        FileInfo
}

// FileInfo is what the sender says about a file so that it can be shown before
// it is fetched.
type FileInfo struct {
	Kind      string `json:"kind,omitempty"`      // photo, video, animation, audio, voice, video_note, sticker; empty = a file
	Width     uint32 `json:"width,omitempty"`     // pixels
	Height    uint32 `json:"height,omitempty"`    // pixels
	Duration  uint32 `json:"duration,omitempty"`  // milliseconds
	ThumbHash []byte `json:"thumbhash,omitempty"` // a placeholder of at most MaxThumbHash bytes
	Waveform  []byte `json:"waveform,omitempty"`  // loudness 0 to 255 over the duration, at most MaxWaveform samples
	Title     string `json:"title,omitempty"`
	Performer string `json:"performer,omitempty"`
	Emoji     string `json:"emoji,omitempty"` // of a sticker
}

// Limits of FileInfo, in bytes.
const (
	MaxThumbHash = 32
	MaxWaveform  = 256
)

func (i FileInfo) check() error {
	if len(i.ThumbHash) > MaxThumbHash || len(i.Waveform) > MaxWaveform {
		return fmt.Errorf("%w: placeholder or waveform of an attachment", ErrLimit)
	}
	for _, f := range []struct{ what, s string }{{"kind", i.Kind}, {"title", i.Title}, {"performer", i.Performer}, {"emoji", i.Emoji}} {
		if err := checkText(f.what, f.s, maxShort); err != nil {
			return err
		}
	}
	return nil
}

func (i FileInfo) parts() ([]Part, error) {
	return ownParts(DispositionUnspecified, MediaFileInfo, i)
}

func (i FileInfo) isZero() bool {
	return i.Kind == "" && i.Width == 0 && i.Height == 0 && i.Duration == 0 && len(i.ThumbHash) == 0 &&
		len(i.Waveform) == 0 && i.Title == "" && i.Performer == "" && i.Emoji == ""
}

func (a Attachment) parts() ([]Part, error) {
	if a.URL == "" || a.ContentType == "" {
		return nil, fmt.Errorf("%w: an attachment without URL or content type", ErrEncoding)
	}
	if a.Disposition == DispositionUnspecified {
		a.Disposition = DispositionAttachment
	}
	parts := []Part{{a.Disposition, a.Language, a.External}}
	if a.Info.isZero() {
		return parts, nil
	}
	info, err := ownPart(DispositionUnspecified, MediaFileInfo, a.Info)
	return append(parts, info), err
}

// Session is a link to join something: a conference, a call elsewhere.
type Session struct {
	External
}

func (s Session) parts() ([]Part, error) {
	if s.URL == "" {
		return nil, fmt.Errorf("%w: a session without URL", ErrEncoding)
	}
	return []Part{{Disposition: DispositionSession, Content: s.External}}, nil
}

func externalItem(p Part, e External) Item {
	if p.Disposition == DispositionSession {
		return Session{e}
	}
	return Attachment{External: e, Disposition: p.Disposition, Language: p.Language}
}
