package delivery

import (
	"fmt"

	"github.com/askucher/compax-core/mls/wire"
)

// The binary bodies use the presentation language of RFC 9420 §2.1: big-endian
// integers, vectors behind a minimal variable-size length. Parsing never
// allocates more than its input and refuses bytes that are left over; what it
// returns points into its input.

// AppendTo encodes the body of POST /v1/rooms.
func (c *CreateRoomRequest) AppendTo(b []byte) []byte {
	return wire.AppendOpaque(wire.AppendOpaque(b, c.GroupInfo), c.Tree)
}

// ParseCreateRoom decodes it.
func ParseCreateRoom(data []byte) (CreateRoomRequest, error) {
	r := reader(data, "CreateRoomRequest")
	c := CreateRoomRequest{GroupInfo: bounded(r, MaxGroupInfo), Tree: bounded(r, MaxTree)}
	return c, finish(r)
}

// AppendTo encodes the body of POST /v1/rooms/{id}/append.
func (a *AppendRequest) AppendTo(b []byte) []byte {
	b = wire.AppendOpaque(b, a.Entry)
	b = wire.AppendOpaque(b, a.Welcome)
	return appendBlobs(wire.AppendOpaque(b, a.GroupInfo), a.Blobs)
}

// ParseAppend decodes it.
func ParseAppend(data []byte) (AppendRequest, error) {
	r := reader(data, "AppendRequest")
	a := AppendRequest{Entry: bounded(r, MaxEntry), Welcome: bounded(r, MaxWelcome), GroupInfo: bounded(r, MaxGroupInfo)}
	a.Blobs = readBlobs(r)
	return a, finish(r)
}

// AppendTo encodes the answer of GET /v1/rooms/{id}/log.
func (p *LogPage) AppendTo(b []byte) []byte {
	b = wire.AppendUint64(wire.AppendUint64(b, p.Head), p.First)
	return appendEntries(b, p.Entries)
}

// ParseLogPage decodes it.
func ParseLogPage(data []byte) (LogPage, error) {
	r := reader(data, "LogPage")
	p := LogPage{Head: r.Uint64(), First: r.Uint64(), Entries: readEntries(r)}
	return p, finish(r)
}

// AppendTo encodes the body of POST /v1/rooms/{id}/heal.
func (h *HealRequest) AppendTo(b []byte) []byte {
	b, mark := wire.OpenVector(b)
	for i := range h.Entries {
		b = h.Entries[i].AppendTo(b)
	}
	b = wire.AppendOpaque(wire.CloseVector(b, mark), h.GroupInfo)
	b = wire.AppendOpaque(b, h.Founding)
	if h.More {
		return append(b, 1)
	}
	return append(b, 0)
}

// ParseHeal decodes it.
func ParseHeal(data []byte) (HealRequest, error) {
	r := reader(data, "HealRequest")
	h := HealRequest{Entries: wire.ReadVector[KeptEntry](r), GroupInfo: bounded(r, MaxGroupInfo), Founding: bounded(r, MaxGroupInfo)}
	more := r.Uint8()
	if len(h.Entries) > MaxLogEntries || more > 1 {
		r.Fail(wire.ErrValue)
	}
	h.More = more == 1
	return h, finish(r)
}

// AppendTo encodes a kept entry: the entry, then blobs<V>.
func (k *KeptEntry) AppendTo(b []byte) []byte { return appendBlobs(k.Entry.AppendTo(b), k.Blobs) }

// DecodeFrom decodes one; it implements wire.Decoder.
func (k *KeptEntry) DecodeFrom(r *wire.Reader) {
	k.Entry.DecodeFrom(r)
	k.Blobs = readBlobs(r)
}

func appendBlobs(b []byte, ids []BlobID) []byte {
	b = wire.AppendVarint(b, len(ids)*len(BlobID{}))
	for i := range ids {
		b = append(b, ids[i][:]...)
	}
	return b
}

func readBlobs(r *wire.Reader) []BlobID {
	raw := bounded(r, MaxAppendBlobs*len(BlobID{}))
	if len(raw)%len(BlobID{}) != 0 {
		r.Fail(wire.ErrTruncated)
	}
	if r.Err() != nil || len(raw) == 0 {
		return nil
	}
	ids := make([]BlobID, len(raw)/len(BlobID{}))
	for i := range ids {
		ids[i] = BlobID(raw[i*len(BlobID{}):])
	}
	return ids
}

// AppendTo encodes one entry: seq, epoch, kind, accepted_ms, bytes<V>.
func (e *Entry) AppendTo(b []byte) []byte {
	b = wire.AppendUint64(wire.AppendUint64(b, e.Seq), e.Epoch)
	b = wire.AppendUint64(append(b, byte(e.Kind)), uint64(e.AcceptedMS))
	return wire.AppendOpaque(b, e.Bytes)
}

// DecodeFrom decodes one entry; it implements wire.Decoder.
func (e *Entry) DecodeFrom(r *wire.Reader) {
	*e = Entry{Seq: r.Uint64(), Epoch: r.Uint64(), Kind: EntryKind(r.Uint8()), AcceptedMS: int64(r.Uint64()), Bytes: bounded(r, MaxEntry)}
	if e.Kind < KindApplication || e.Kind > KindIncarnation {
		r.Fail(wire.ErrValue)
	}
}

func appendEntries(b []byte, entries []Entry) []byte {
	b, mark := wire.OpenVector(b)
	for i := range entries {
		b = entries[i].AppendTo(b)
	}
	return wire.CloseVector(b, mark)
}

func readEntries(r *wire.Reader) []Entry {
	entries := wire.ReadVector[Entry](r)
	if len(entries) > MaxLogEntries {
		r.Fail(wire.ErrValue)
	}
	return entries
}

// AppendFrame encodes a socket frame: its type, then its fields. It panics on a
// value that is no frame.
func AppendFrame(b []byte, frame any) []byte {
	switch f := frame.(type) {
	case *Hello:
		b = wire.AppendOpaque(append(b, byte(FrameHello)), f.Token)
		b = wire.AppendVarint(b, len(f.Cursors)*cursorSize)
		for _, c := range f.Cursors {
			b = wire.AppendUint64(append(b, c.Room[:]...), c.After)
		}
	case *Ready:
		b = wire.AppendUint64(append(b, byte(FrameReady)), uint64(f.TimeMS))
		b = wire.AppendUint32(b, f.PingSeconds)
	case *EntryFrame:
		b = append(append(b, byte(FrameEntry)), f.Room[:]...)
		b = f.Entry.AppendTo(b)
	case *Gap:
		b = append(append(b, byte(FrameGap)), f.Room[:]...)
		b = wire.AppendUint64(b, f.From)
	case *MailFrame:
		b = append(b, byte(FrameMail))
	case *Ephemeral:
		b = append(append(b, byte(FrameEphemeral)), f.Room[:]...)
		b = wire.AppendUint32(wire.AppendUint64(b, f.Epoch), f.Leaf)
		b = wire.AppendOpaque(b, f.Payload)
	case *Drain:
		b = wire.AppendUint32(append(b, byte(FrameDrain)), f.WithinMS)
	case *End:
		b = wire.AppendOpaque(append(b, byte(FrameEnd)), string(f.Code))
		b = wire.AppendOpaque(b, f.Detail)
	default:
		panic(fmt.Sprintf("delivery: %T is not a frame", frame))
	}
	return b
}

const (
	cursorSize = 16 + 8
	maxCursors = 10_000
	maxToken   = 256
	maxDetail  = 1024
)

// ParseFrame decodes a socket frame into a pointer to one of the frame
// structs. A type that this build does not know gives nil and no error, so that
// later services can add frames.
func ParseFrame(data []byte) (any, error) {
	if len(data) > MaxFrame {
		return nil, fmt.Errorf("delivery: frame of %d bytes, at most %d", len(data), MaxFrame)
	}
	r := reader(data, "Frame")
	var frame any
	switch t := FrameType(r.Uint8()); t {
	case FrameHello:
		h := &Hello{Token: string(bounded(r, maxToken))}
		list := bounded(r, maxCursors*cursorSize)
		if len(list)%cursorSize != 0 {
			r.Fail(wire.ErrTruncated)
		} else if len(list) > 0 {
			in := wire.NewReader(list)
			h.Cursors = make([]Cursor, len(list)/cursorSize)
			for i := range h.Cursors {
				h.Cursors[i] = Cursor{Room: readRoom(in), After: in.Uint64()}
			}
		}
		frame = h
	case FrameReady:
		frame = &Ready{TimeMS: int64(r.Uint64()), PingSeconds: r.Uint32()}
	case FrameEntry:
		f := &EntryFrame{Room: readRoom(r)}
		f.Entry.DecodeFrom(r)
		frame = f
	case FrameGap:
		frame = &Gap{Room: readRoom(r), From: r.Uint64()}
	case FrameMail:
		frame = &MailFrame{}
	case FrameEphemeral:
		frame = &Ephemeral{Room: readRoom(r), Epoch: r.Uint64(), Leaf: r.Uint32(), Payload: bounded(r, MaxEphemeral)}
	case FrameDrain:
		frame = &Drain{WithinMS: r.Uint32()}
	case FrameEnd:
		frame = &End{Code: Code(bounded(r, maxDetail)), Detail: string(bounded(r, maxDetail))}
	default:
		if r.Err() == nil {
			return nil, nil
		}
	}
	if err := finish(r); err != nil {
		return nil, err
	}
	return frame, nil
}

func reader(data []byte, structure string) *wire.Reader {
	r := wire.NewReader(data)
	r.Begin(structure)
	return r
}

func finish(r *wire.Reader) error {
	if err := r.Finish(); err != nil {
		return fmt.Errorf("delivery: %w", err)
	}
	return nil
}

// bounded reads opaque<V> of at most limit bytes.
func bounded(r *wire.Reader, limit int) []byte {
	b := r.Opaque()
	if len(b) > limit {
		r.Fail(wire.ErrValue)
		return nil
	}
	return b
}

func readRoom(r *wire.Reader) RoomID {
	var id RoomID
	copy(id[:], r.Bytes(len(id)))
	return id
}
