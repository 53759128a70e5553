package sdk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/identity/phrase"
	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/wire"
)

// ErrKeys is errKeys.
var ErrKeys = errKeys

// Generations is generations.
func (e *Engine) Generations(ctx context.Context) (held, owed uint64, err error) {
	return e.generations(ctx)
}

// TakeKeys is takeKeys.
func (e *Engine) TakeKeys(ctx context.Context) (int, error) { return e.takeKeys(ctx) }

// OpenSnapshot opens sealed bytes as this account's snapshot.
func (e *Engine) OpenSnapshot(ctx context.Context, sealed []byte) (generation uint64, err error) {
	_, generation, err = e.openFor(ctx, sealSnapshot, "", sealed)
	return generation, err
}

// SealSnapshot seals a snapshot with a name as if this device did not know of any
// revocation.
func (e *Engine) SealSnapshot(ctx context.Context, name string) ([]byte, error) {
	sealed, _, err := e.sealFor(ctx, sealSnapshot, "", []byte(`{"name":"`+name+`","profile":1000}`))
	return sealed, err
}

// SnapshotName is the name in the snapshot at the service, as this device takes it.
func (e *Engine) SnapshotName(ctx context.Context) (string, error) {
	_, s, err := e.fetchSnapshot(ctx)
	return s.Name, err
}

// WrapTo wraps a generation's key of an account to a device, signed by that
// account, in whose name is as asked.
func WrapTo(words phrase.Phrase, e *Engine, generation uint64, name identity.PublicKey) ([]byte, error) {
	node, err := words.Account()
	if err != nil {
		return nil, err
	}
	defer node.Wipe()
	sealed, err := sealKey(node, e.cred, generation)
	if err != nil {
		return nil, err
	}
	key, err := node.Identity()
	if err != nil {
		return nil, err
	}
	defer key.Wipe()
	f := identity.WrappedKeyFields{Identity: key.PublicBytes(), DeviceID: e.account.Device, Generation: generation, Sealed: sealed}
	k, err := identity.SignWrappedKey(f, key)
	if err != nil {
		return nil, err
	}
	b := k.Bytes()
	copy(b[len("compax-wrapped-key-v1"):], name[:])
	return b, nil
}

// ForgetHistory takes away what the archive gave this device, so that it reads it
// again.
func (e *Engine) ForgetHistory(ctx context.Context) error {
	return e.Store.Update(ctx, func(tx Tx) error {
		rooms, err := scan[Room](tx, TableRoom, "")
		if err != nil {
			return err
		}
		for _, rec := range rooms {
			if rec.Past == 0 || rec.Kind == delivery.RoomSelf {
				continue
			}
			for l, err := range eachLine(tx, rec.ID, 1, rec.Past) {
				if err != nil {
					return err
				}
				if err := tx.DeleteLine(rec.ID, l.ID); err != nil {
					return err
				}
			}
			if err := tx.Delete(TableSetting, settingPast+rec.ID.String()); err != nil {
				return err
			}
		}
		return wantHistory(tx)
	})
}

// Pretend writes down that this person said n messages more in a room, without any
// service, and that as many as crowd came with the last of them.
func (e *Engine) Pretend(ctx context.Context, id delivery.RoomID, n, crowd int) error {
	r, done, err := e.enter(ctx, id)
	if err != nil {
		return err
	}
	defer done()
	l := Line{Room: id, From: e.account.Identity, Device: e.account.Device, TimeMS: e.nowMS(), Mine: true}
	return e.Store.Update(ctx, func(tx Tx) error {
		for i := range n {
			r.rec.Cursor++
			h, err := e.header(r)
			if err != nil {
				return err
			}
			m, err := content.New(h, content.Text{Text: fmt.Sprint("word ", i)})
			if err != nil {
				return err
			}
			if l.Content, err = m.Encode(); err != nil {
				return err
			}
			if l.ID, err = m.ID(); err != nil {
				return err
			}
			l.Seq, l.Kind = r.rec.Cursor, LineText
			show(&l, m.Items())
			if err := tx.PutLine(l); err != nil {
				return err
			}
		}
		for i := range crowd {
			l.Kind, l.ID, l.Text, l.Content = LineJoin, eventID(id, l.Seq, "crowd", i), "", nil
			if err := tx.PutLine(l); err != nil {
				return err
			}
		}
		return r.save(tx)
	})
}

// LinesIn is how many lines eachLine finds in a room, and in how many seqs.
func (e *Engine) LinesIn(ctx context.Context, id delivery.RoomID, from, to uint64) (lines, seqs int, err error) {
	last := uint64(0)
	return lines, seqs, e.Store.View(ctx, func(tx Tx) error {
		for l, err := range eachLine(tx, id, from, to) {
			if err != nil {
				return err
			}
			if lines++; l.Seq < last {
				return fmt.Errorf("%d behind %d", l.Seq, last)
			} else if l.Seq > last {
				seqs++
			}
			last = l.Seq
		}
		return nil
	})
}

// LinePage is linePage.
const LinePage = linePage

// Remembered is how many rooms are in memory.
func (e *Engine) Remembered() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.rooms)
}

// BundlesAtMost is bundlesAtMost.
const BundlesAtMost = bundlesAtMost

// Bundles are by suite when the key packages end whose private keys are here.
func (e *Engine) Bundles(ctx context.Context) (map[wire.CipherSuite][]uint64, error) {
	out := map[wire.CipherSuite][]uint64{}
	err := e.Store.View(ctx, func(tx Tx) error {
		return tx.Scan(TableBundle, "", "", func(_ string, raw []byte) (bool, error) {
			b := new(mls.KeyPackageBundle)
			if err := b.UnmarshalBinary(raw); err != nil {
				return false, err
			}
			out[b.KeyPackage.CipherSuite] = append(out[b.KeyPackage.CipherSuite], b.KeyPackage.LeafNode.Lifetime.NotAfter)
			return true, nil
		})
	})
	return out, err
}

// WriteSnapshot is putSnapshot.
func (e *Engine) WriteSnapshot(ctx context.Context) error { return e.putSnapshot(ctx) }

// Behind is behind.
func Behind(cursor, head uint64) uint64 { return behind(cursor, head) }

// ReadRestore reads the entry of a restore as if the log had it, when the room was last
// read to its end at caughtMS.
func (e *Engine) ReadRestore(ctx context.Context, id delivery.RoomID, entry delivery.Entry, caughtMS int64) (rec Room, err error) {
	r, done, err := e.enter(ctx, id)
	if err != nil {
		return rec, err
	}
	defer done()
	r.rec.Caught = caughtMS
	err = e.keep(ctx, r, r.state, []opened{{entry: entry}}, nil)
	return r.rec, err
}

// GapsAtMost is gapsAtMost.
const GapsAtMost = gapsAtMost

// MakeSuccessor makes the nth room that may succeed a lost one, as a hostile device
// would: when it likes. Of a room that it is in it keeps the people.
func (e *Engine) MakeSuccessor(ctx context.Context, old delivery.RoomID, n uint32) (delivery.RoomID, error) {
	id := delivery.SuccessorID(old, n)
	r, done, err := e.enter(ctx, old)
	if errors.Is(err, ErrNoRoom) {
		return e.createRoom(ctx, newRoom{kind: delivery.RoomGroup, suite: policy.Suites[0], id: &id})
	}
	if err != nil {
		return id, err
	}
	defer done()
	before := r.rec
	_, err = e.createRoom(ctx, newRoom{kind: r.rec.Kind, title: r.rec.Title, others: r.goOn(e.account.Identity), suite: policy.Suites[0], succeeds: r, id: &id})
	r.rec = before
	return id, errors.Join(err, e.Store.Update(ctx, r.save))
}

// Repeat sends the bytes of an entry that this device has read as an entry of its own.
func (e *Engine) Repeat(ctx context.Context, id delivery.RoomID, seq uint64) error {
	var entry delivery.KeptEntry
	err := e.Store.View(ctx, func(tx Tx) error {
		raw, err := tx.Get(TableRaw, seqKey(id, seq))
		if err == nil {
			entry, err = parseRaw(raw)
		}
		return err
	})
	if err != nil {
		return err
	}
	_, err = e.client.Append(ctx, id, delivery.AppendRequest{Entry: entry.Bytes})
	return err
}

// Doorbell is doorbell.
type Doorbell = doorbell

// Hung is hung.
func (b *doorbell) Hung(now time.Time) { b.hung(now) }

// Rang is rang.
func (b *doorbell) Rang(now time.Time) { b.rang(now) }

// Looks is looks.
func (b *doorbell) Looks() { b.looks() }

// LeftOf is left.
func LeftOf(b *doorbell, now time.Time, rooms int, late float64) time.Duration {
	return b.left(now, rooms, late)
}
