package sdk

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"github.com/askucher/compax-core/delivery"
)

// retention is how long entries are kept as they were read, for a service that
// has to be restored: as long as services keep them by default.
const retention = 30 * 24 * time.Hour

var errRaw = errors.New("sdk: a kept entry cannot be read")

// putRaw keeps an entry: seq ‖ epoch ‖ kind ‖ accepted ‖ bytes, big-endian.
func putRaw(tx Tx, id delivery.RoomID, e delivery.Entry) error {
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 25+len(e.Bytes)), e.Seq)
	b = append(binary.BigEndian.AppendUint64(b, e.Epoch), byte(e.Kind))
	b = append(binary.BigEndian.AppendUint64(b, uint64(e.AcceptedMS)), e.Bytes...)
	return tx.Put(TableRaw, seqKey(id, e.Seq), b)
}

func parseRaw(b []byte) (delivery.Entry, error) {
	if len(b) < 25 {
		return delivery.Entry{}, errRaw
	}
	return delivery.Entry{
		Seq: binary.BigEndian.Uint64(b), Epoch: binary.BigEndian.Uint64(b[8:]), Kind: delivery.EntryKind(b[16]),
		AcceptedMS: int64(binary.BigEndian.Uint64(b[17:])), Bytes: b[25:],
	}, nil
}

// trim forgets entries past retention and lines that expired.
func (e *Engine) trim(ctx context.Context) error {
	limit := e.Now().Add(-retention).UnixMilli()
	return e.Store.Update(ctx, func(tx Tx) error {
		rooms, err := scan[Room](tx, TableRoom, "")
		if err != nil {
			return err
		}
		for _, r := range rooms {
			var old []string
			err := tx.Scan(TableRaw, roomKey(r.ID, ""), "", func(key string, value []byte) (bool, error) {
				entry, err := parseRaw(value)
				if err != nil || entry.AcceptedMS >= limit {
					return false, err
				}
				old = append(old, key)
				return len(old) < 10_000, nil
			})
			if err != nil {
				return err
			}
			for _, key := range old {
				if err := tx.Delete(TableRaw, key); err != nil {
					return err
				}
			}
			if err := expire(tx, r.ID, e.nowMS()); err != nil {
				return err
			}
		}
		return nil
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
			if err := tx.DeleteLine(id, a.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// keptAfter are entries of a room behind a seq as they were read, without
// incarnations: one offer's worth. next is the seq to go on from.
func (e *Engine) keptAfter(ctx context.Context, id delivery.RoomID, after uint64) (out []delivery.Entry, next uint64, err error) {
	size := 0
	next = after
	err = e.Store.View(ctx, func(tx Tx) error {
		return tx.Scan(TableRaw, roomKey(id, ""), seqKey(id, after), func(_ string, value []byte) (bool, error) {
			entry, err := parseRaw(value)
			if err != nil {
				return false, err
			}
			if size += len(entry.Bytes) + 32; size > delivery.MaxLogPage && len(out) > 0 {
				return false, nil
			}
			next = entry.Seq
			if entry.Kind != delivery.KindIncarnation {
				out = append(out, entry)
			}
			return len(out) < offerAtMost, nil
		})
	})
	return out, next, err
}
