package sdk

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
)

// retention is how long entries are kept as they were read, for a service that
// has to be restored: as long as services keep them by default.
const retention = 30 * 24 * time.Hour

var errRaw = errors.New("sdk: a kept entry cannot be read")

const (
	rawHead  = 25   // bytes before the blobs or the entry
	rawBlobs = 0x80 // in the kind's byte: blobs follow
)

// putRaw keeps an entry: seq ‖ epoch ‖ kind ‖ accepted ‖ bytes, big-endian. With
// the highest bit of the kind the bytes follow a count and as many blob ids.
func putRaw(tx Tx, id delivery.RoomID, k delivery.KeptEntry) error {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, rawHead+1+16*len(k.Blobs)+len(k.Bytes)), k.Seq)
	kind := byte(k.Kind)
	if len(k.Blobs) > 0 {
		kind |= rawBlobs
	}
	b = append(binary.BigEndian.AppendUint64(b, k.Epoch), kind)
	b = binary.BigEndian.AppendUint64(b, uint64(k.AcceptedMS))
	if len(k.Blobs) > 0 {
		b = append(b, byte(len(k.Blobs)))
		for _, blob := range k.Blobs {
			b = append(b, blob[:]...)
		}
	}
	return tx.Put(TableRaw, seqKey(id, k.Seq), append(b, k.Bytes...))
}

func parseRaw(b []byte) (delivery.KeptEntry, error) {
	if len(b) < rawHead {
		return delivery.KeptEntry{}, errRaw
	}
	k := delivery.KeptEntry{Entry: delivery.Entry{
		Seq: binary.BigEndian.Uint64(b), Epoch: binary.BigEndian.Uint64(b[8:]), Kind: delivery.EntryKind(b[16] &^ rawBlobs),
		AcceptedMS: int64(binary.BigEndian.Uint64(b[17:])), Bytes: b[rawHead:],
	}}
	if b[16]&rawBlobs == 0 {
		return k, nil
	}
	if len(k.Bytes) == 0 || len(k.Bytes) < 1+16*int(k.Bytes[0]) {
		return delivery.KeptEntry{}, errRaw
	}
	k.Blobs = make([]delivery.BlobID, k.Bytes[0])
	for i := range k.Blobs {
		k.Blobs[i] = delivery.BlobID(k.Bytes[1+16*i:])
	}
	k.Bytes = k.Bytes[1+16*len(k.Blobs):]
	return k, nil
}

// listed are the blobs that the append of an entry listed: its sender knows, and
// who reads it finds them in the content.
func (e *Engine) listed(tx Tx, r *room, o opened) ([]delivery.BlobID, error) {
	switch {
	case o.again:
		return r.seen[sha256.Sum256(o.entry.Bytes)], nil
	case o.app != nil:
		return blobsIn(o.app.Content, e.account.Domain), nil
	case o.own:
		queue, err := scan[waiting](tx, TableOutbox, roomKey(r.rec.ID, ""))
		for _, w := range queue {
			if bytes.Equal(w.Entry, o.entry.Bytes) {
				return w.Blobs, nil
			}
		}
		return nil, err
	}
	return nil, nil
}

// blobsIn finds the blobs of a home that a message refers to.
func blobsIn(encoded []byte, domain string) (out []delivery.BlobID) {
	m, err := content.Decode(encoded)
	if err != nil {
		return nil
	}
	var walk func(content.Part)
	walk = func(p content.Part) {
		switch c := p.Content.(type) {
		case content.External:
			name, here := strings.CutPrefix(c.URL, "mimi://"+domain+"/b/")
			id, err := delivery.ParseBlobID(name)
			if here && err == nil && len(out) < delivery.MaxAppendBlobs && !slices.Contains(out, id) {
				out = append(out, id)
			}
		case content.Multi:
			for _, part := range c.Parts {
				walk(part)
			}
		}
	}
	walk(m.Body)
	return out
}

// trim forgets entries past retention, but for their hashes, and lines that expired.
func (e *Engine) trim(ctx context.Context) error {
	limit := e.Now().Add(-retention).UnixMilli()
	return e.Store.Update(ctx, func(tx Tx) error {
		rooms, err := scan[Room](tx, TableRoom, "")
		if err != nil {
			return err
		}
		for _, r := range rooms {
			var old []string
			var hashes []byte
			err := tx.Scan(TableRaw, roomKey(r.ID, ""), "", func(key string, value []byte) (bool, error) {
				entry, err := parseRaw(value)
				if err != nil || entry.AcceptedMS >= limit || r.Lost > 0 && entry.Seq >= r.Lost {
					return false, err // what a restored service may still want stays
				}
				old = append(old, key)
				if len(entry.Bytes) > 0 {
					hash := sha256.Sum256(entry.Bytes)
					hashes = append(hashes, hash[:]...)
				}
				return len(old) < 10_000, nil
			})
			if err != nil {
				return err
			}
			if err := putTrimmed(tx, old, hashes); err != nil {
				return err
			}
			for _, key := range old {
				if err := tx.Delete(TableRaw, key); err != nil {
					return err
				}
			}
			upto := ""
			if len(old) > 0 {
				upto = old[len(old)-1]
			}
			if err := trimSaid(tx, r.ID, upto, limit); err != nil {
				return err
			}
			if err := trimFounding(tx, r.ID, limit); err != nil {
				return err
			}
			if err := expire(tx, r.ID, e.nowMS()); err != nil {
				return err
			}
		}
		return nil
	})
}

// putTrimmed keeps the SHA-256 of entries that are forgotten, 32 bytes each, under the
// key of the last of them: another device may have kept one for longer, and a restored
// service gives it a new seq then. Without its hash it would be taken for a second
// entry under the first one's key.
func putTrimmed(tx Tx, keys []string, hashes []byte) error {
	if len(hashes) == 0 {
		return nil
	}
	return tx.Put(TableSetting, settingTrimmed+keys[len(keys)-1], hashes)
}

// trimmed calls f with the hash of every entry of a room that putTrimmed kept.
func trimmed(tx Tx, id delivery.RoomID, f func(hash [32]byte)) error {
	return tx.Scan(TableSetting, settingTrimmed+roomKey(id, ""), "", func(_ string, hashes []byte) (bool, error) {
		for ; len(hashes) >= sha256.Size; hashes = hashes[sha256.Size:] {
			f([32]byte(hashes[:sha256.Size]))
		}
		return true, nil
	})
}

// expire takes lines away that wanted to be forgotten by now.
func expire(tx Tx, id delivery.RoomID, nowMS int64) error {
	gone, err := tx.Lines(LineQuery{Room: id, Expire: nowMS})
	if err != nil {
		return err
	}
	for _, l := range gone {
		about, err := tx.Lines(LineQuery{Room: id, Target: &l.ID})
		if err != nil {
			return err
		}
		for _, a := range append(about, l) {
			if err := errors.Join(tx.DeleteLine(id, a.ID), forgetFirst(tx, a)); err != nil {
				return err
			}
		}
	}
	return nil
}

// keptAfter are entries of a room behind a seq and before another as they were
// read, without incarnations: one offer's worth. next is the seq to go on from,
// more says that there is something.
func (e *Engine) keptAfter(ctx context.Context, id delivery.RoomID, after, before uint64) (out []delivery.KeptEntry, next uint64, more bool, err error) {
	size := 0
	next = after
	err = e.Store.View(ctx, func(tx Tx) error {
		return tx.Scan(TableRaw, roomKey(id, ""), seqKey(id, after), func(_ string, value []byte) (bool, error) {
			entry, err := parseRaw(value)
			if err != nil {
				return false, err
			}
			if entry.Seq >= before {
				return false, nil
			}
			size += len(entry.Bytes) + 16*len(entry.Blobs) + 40
			if more = len(out) > 0 && (size > delivery.MaxLogPage || len(out) == offerAtMost); more {
				return false, nil
			}
			next = entry.Seq
			if entry.Kind != delivery.KindIncarnation {
				out = append(out, entry)
			}
			return true, nil
		})
	})
	return out, next, more, err
}

// putFounding keeps the request that a room was made by, behind the time of it: its
// creator can make it again for a service that lost it.
func putFounding(tx Tx, id delivery.RoomID, nowMS int64, req delivery.CreateRoomRequest) error {
	return tx.Put(TableSetting, settingFounding+id.String(), req.AppendTo(binary.BigEndian.AppendUint64(nil, uint64(nowMS))))
}

// founding is a kept one as an offer carries it; nil = none.
func (e *Engine) founding(ctx context.Context, id delivery.RoomID) (founding []byte, err error) {
	err = e.Store.View(ctx, func(tx Tx) error {
		b, err := tx.Get(TableSetting, settingFounding+id.String())
		if len(b) > 8 {
			founding = b[8:]
		}
		return err
	})
	return founding, err
}

// trimFounding forgets one that is past retention: so is the room's beginning.
func trimFounding(tx Tx, id delivery.RoomID, limit int64) error {
	b, err := tx.Get(TableSetting, settingFounding+id.String())
	if err != nil || len(b) < 8 || int64(binary.BigEndian.Uint64(b)) >= limit {
		return err
	}
	return tx.Delete(TableSetting, settingFounding+id.String())
}
