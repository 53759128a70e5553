package sdk

import (
	"bytes"
	"cmp"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

const (
	// segmentSeqs is how many seqs of a room one segment of history is about: block
	// n is about n·segmentSeqs and the seqs after it.
	segmentSeqs = 128
	// maxSegmentText bounds a segment before it is sealed, in bytes. Of a block with
	// more, the longest messages are left out and named so.
	maxSegmentText = 3 << 20
	minSegmentText = 4 << 10
	namesInfo      = "compax-archive-names-v1"
	sealSegment    = "segment"
)

var errSegment = errors.New("sdk: a segment of history is malformed")

// segment is what the devices of an account have read of one block of a room. Its
// name and place in the archive say nothing to who does not hold the key.
type segment struct {
	Room  delivery.RoomID `json:"room"`
	Block uint64          `json:"block"`
	// From is the first seq that the account could read: it came into the room
	// before it. 0 = not known to who wrote this.
	From uint64 `json:"from,omitempty"`
	// Seen is how far the writer had read the room: what the segment says of edits
	// and deletions stands there.
	Seen  uint64     `json:"seen"`
	Spans spans      `json:"spans"` // what was read by one device or another
	Lines recordList `json:"lines"` // ascending, at most one of a seq
}

// recordList are the records of one segment. More than it may have is refused before it is
// decoded: a line takes eighty times its shortest form.
type recordList []record

// UnmarshalJSON implements [json.Unmarshaler] (errSegment).
func (r *recordList) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('[') {
		return fmt.Errorf("%w: its lines are no list", errSegment)
	}
	*r = recordList{}
	for d.More() {
		if len(*r) == segmentSeqs {
			return fmt.Errorf("%w: more than %d lines", errSegment, segmentSeqs)
		}
		var one record
		if err := d.Decode(&one); err != nil {
			return err
		}
		*r = append(*r, one)
	}
	return nil
}

// record is one thing that somebody said, as it stands.
type record struct {
	Seq     uint64             `json:"seq"`
	Epoch   uint64             `json:"epoch"`
	ID      content.MessageID  `json:"id"`
	From    identity.PublicKey `json:"from"`
	Device  identity.DeviceID  `json:"device"`
	TimeMS  int64              `json:"time_ms"`
	Kind    LineKind           `json:"kind"`
	ReplyTo content.MessageID  `json:"reply_to,omitzero"`
	Target  content.MessageID  `json:"target,omitzero"`
	Content []byte             `json:"content,omitempty"`
	Edited  bool               `json:"edited,omitempty"`
	Deleted bool               `json:"deleted,omitempty"`
	Long    bool               `json:"long,omitempty"` // its content did not fit
}

// segmentName is the name of a room's block: HMAC-SHA256 in hex, under a key from
// the archive key of generation 1, so that all devices write a block under one name
// and the service learns no room from it.
func segmentName(first []byte, id delivery.RoomID, block uint64) (string, error) {
	key, err := hkdf.Key(sha256.New, first, nil, namesInfo, 32)
	if err != nil {
		return "", fmt.Errorf("sdk: derive the key of names: %w", err)
	}
	defer clear(key)
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write(binary.BigEndian.AppendUint64(id[:], block)) // a hash takes everything
	return hex.EncodeToString(mac.Sum(nil)), nil
}

// archived reports whether a line belongs into the archive: what people said, and
// nothing that wants to be forgotten.
func archived(l Line) bool {
	return l.Kind.Said() && l.Kind != LineUnread && l.ExpireMS == 0
}

func recordOf(l Line) record {
	r := record{
		Seq: l.Seq, Epoch: l.Epoch, ID: l.ID, From: l.From, Device: l.Device, TimeMS: l.TimeMS, Kind: l.Kind,
		ReplyTo: l.ReplyTo, Target: l.Target, Content: l.Content, Edited: l.Edited, Deleted: l.Deleted,
	}
	if l.Deleted || l.Kind == LineDelete {
		r.Content = nil
	}
	return r
}

// line gives a record back its line, with what its content says (errSegment).
func (r record) line(id delivery.RoomID, uri string, self identity.DeviceID) (Line, error) {
	l := Line{
		Room: id, Seq: r.Seq, Epoch: r.Epoch, ID: r.ID, From: r.From, Device: r.Device, TimeMS: r.TimeMS, Kind: r.Kind,
		ReplyTo: r.ReplyTo, Target: r.Target, Edited: r.Edited, Deleted: r.Deleted, Mine: r.Device == self,
	}
	if !r.Kind.Said() || r.Kind == LineUnread || r.ID.IsZero() || r.From.Check() != nil {
		return l, fmt.Errorf("%w: at %d", errSegment, r.Seq)
	}
	switch {
	case r.Deleted:
		return l, nil
	case r.Long:
		l.Kind, l.Cause = LineUnread, "it is too long for the archive"
		return l, nil
	case len(r.Content) == 0:
		if r.Kind == LineDelete || r.Kind == LineEdit {
			return l, nil
		}
		return l, fmt.Errorf("%w: at %d nothing was said", errSegment, r.Seq)
	}
	m, err := content.Decode(r.Content)
	if err != nil {
		return l, fmt.Errorf("%w: at %d: %w", errSegment, r.Seq, err)
	}
	author, err := content.ParseUserURI(m.SenderURI())
	if err != nil || author != r.From || m.RoomURI() != uri || m.Expires != nil {
		return l, fmt.Errorf("%w: at %d stands what was said by another, elsewhere or not to be kept", errSegment, r.Seq)
	}
	if got, err := m.ID(); !r.Edited && (err != nil || got != r.ID) {
		return l, fmt.Errorf("%w: at %d stands a message of another name", errSegment, r.Seq)
	}
	l.Content = r.Content
	switch m.Kind() {
	case content.KindReaction:
		l.Text = emoji(m.Items())
	case content.KindUnreact:
	default:
		show(&l, m.Items())
	}
	l.Kind, l.Target, l.ReplyTo = r.Kind, r.Target, r.ReplyTo
	return l, nil
}

// encode gives a segment the bytes to seal, padded so that their length tells
// little: at most one part in eight is padding, and no less than minSegmentText is
// ever sealed. What does not fit loses its longest messages.
func (s *segment) encode() ([]byte, error) {
	for {
		b, err := json.Marshal(s)
		if err != nil {
			return nil, fmt.Errorf("sdk: encode a segment: %w", err)
		}
		if len(b) <= maxSegmentText {
			return append(b, bytes.Repeat([]byte(" "), padded(len(b))-len(b))...), nil
		}
		longest := slices.MaxFunc(s.Lines, func(a, b record) int { return cmp.Compare(len(a.Content), len(b.Content)) })
		i := slices.IndexFunc(s.Lines, func(r record) bool { return r.Seq == longest.Seq })
		if s.Lines[i].Content == nil {
			return nil, fmt.Errorf("%w: %d bytes", errSegment, len(b))
		}
		s.Lines[i].Content, s.Lines[i].Long = nil, true
	}
}

// padded rounds a length up to three leading binary digits and what they need.
func padded(n int) int {
	if n <= minSegmentText {
		return minSegmentText
	}
	step := 1 << max(0, bits.Len(uint(n))-4)
	return (n + step - 1) / step * step
}

// parseSegment reads what encode made and holds it to its bounds (errSegment).
func parseSegment(b []byte) (*segment, error) {
	if len(b) > delivery.MaxSegment {
		return nil, fmt.Errorf("%w: %d bytes", errSegment, len(b))
	}
	s := new(segment)
	if err := json.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("%w: %w", errSegment, err)
	}
	if s.Block > 1<<50 || len(s.Spans) > segmentSeqs {
		return nil, fmt.Errorf("%w: block %d, %d lines, %d spans", errSegment, s.Block, len(s.Lines), len(s.Spans))
	}
	first, last := blockOf(s.Block)
	for i, r := range s.Lines {
		if r.Seq < first || r.Seq > last || i > 0 && r.Seq <= s.Lines[i-1].Seq {
			return nil, fmt.Errorf("%w: %d in block %d", errSegment, r.Seq, s.Block)
		}
	}
	for i, x := range s.Spans {
		if x.From < first || x.To > last || x.From > x.To || i > 0 && x.From <= s.Spans[i-1].To {
			return nil, fmt.Errorf("%w: %d to %d read in block %d", errSegment, x.From, x.To, s.Block)
		}
	}
	return s, nil
}

// blockOf gives the first and the last seq of a block.
func blockOf(block uint64) (first, last uint64) {
	return block * segmentSeqs, block*segmentSeqs + segmentSeqs - 1
}

// newestMS is the latest time of a line, by the service's clock; 0 without lines.
func (s *segment) newestMS() (at int64) {
	if s != nil {
		for _, r := range s.Lines {
			at = max(at, r.TimeMS)
		}
	}
	return at
}

// merged is what two devices have read of one block. A deletion counts whoever
// knows of it; else who has read further is right.
func merged(a, b *segment, oldestMS int64) *segment {
	if a.Seen > b.Seen {
		a, b = b, a
	}
	out := &segment{Room: b.Room, Block: b.Block, From: b.From, Seen: b.Seen, Spans: append(spans{}, a.Spans.with(b.Spans...)...), Lines: []record{}}
	if a.From > 0 && (out.From == 0 || a.From < out.From) {
		out.From = a.From
	}
	at := map[uint64]record{}
	for _, list := range [][]record{a.Lines, b.Lines} {
		for _, r := range list {
			before, both := at[r.Seq]
			switch {
			case r.TimeMS < oldestMS:
				out.Spans = out.Spans.without(Span{r.Seq, r.Seq})
			case both && before.ID == r.ID && before.Deleted && !r.Deleted:
			case both && before.ID == r.ID && r.Long && !before.Long:
			default:
				at[r.Seq] = r
			}
		}
	}
	for _, r := range at {
		out.Lines = append(out.Lines, r)
	}
	slices.SortFunc(out.Lines, func(a, b record) int { return cmp.Compare(a.Seq, b.Seq) })
	return out
}

// same reports whether two segments say the same, however far their writers had
// read beyond the block.
func (s *segment) same(o *segment) bool {
	a, b := *s, *o
	a.Seen, b.Seen = 0, 0
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
