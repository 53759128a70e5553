package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// snapshot is what an account keeps of itself at the service, sealed under its
// archive key: what a phrase alone brings back. It is merged with what another
// device wrote, never overwritten.
type snapshot struct {
	Name     string                        `json:"name"`
	About    string                        `json:"about,omitempty"`
	Username string                        `json:"username,omitempty"`
	Profile  uint64                        `json:"profile"`
	SelfRoom *delivery.RoomID              `json:"self_room,omitempty"`
	Rooms    map[string]snapshotRoom       `json:"rooms,omitempty"`
	People   map[identity.PublicKey]Person `json:"people,omitempty"`
	Bots     map[string]uint32             `json:"bots,omitempty"`
	Other    map[string]json.RawMessage    `json:"other,omitempty"` // of later versions
}

type snapshotRoom struct {
	Title     string `json:"title,omitempty"`
	TitleSeq  uint64 `json:"title_seq,omitempty"`
	Disappear uint32 `json:"disappear,omitempty"`
	Left      bool   `json:"left,omitempty"`
	Archived  uint64 `json:"archived,omitempty"` // the archive reaches up to it
	Bare      spans  `json:"bare,omitempty"`     // of which nothing had to be archived
	// Closed is what a new device needs to show a room that the account has left, or
	// that goes on elsewhere; nil = the account is in it.
	Closed *closedRoom `json:"closed,omitempty"`
}

const (
	sealSnapshot = "snapshot"
	settingKept  = "snapshot.room." // + room id: snapshotRoom, as the account's other devices left it
)

// dirty notes that the snapshot has to be written again.
func (e *Engine) dirty(ctx context.Context) error {
	return e.Store.Update(ctx, func(tx Tx) error { return tx.Put(TableSetting, settingDirty, []byte{1}) })
}

// flushSnapshot writes the snapshot when something changed since.
func (e *Engine) flushSnapshot(ctx context.Context) error {
	changed := false
	err := e.Store.View(ctx, func(tx Tx) error {
		b, err := tx.Get(TableSetting, settingDirty)
		changed = b != nil
		return err
	})
	if err != nil || !changed {
		return err
	}
	return e.putSnapshot(ctx)
}

// putSnapshot merges what this profile knows into the stored snapshot. A device
// that waits for an archive key leaves it for later.
func (e *Engine) putSnapshot(ctx context.Context) error {
	err := e.replaceSnapshot(ctx)
	if errors.Is(err, errKeys) {
		return nil
	}
	return err
}

func (e *Engine) replaceSnapshot(ctx context.Context) error {
	for range 5 {
		version, s, err := e.fetchSnapshot(ctx)
		if err != nil {
			return err
		}
		if err := e.merge(ctx, &s); err != nil {
			return err
		}
		plain, err := json.Marshal(s)
		if err != nil {
			return fmt.Errorf("sdk: encode the snapshot: %w", err)
		}
		sealed, generation, err := e.sealFor(ctx, sealSnapshot, "", plain)
		if err != nil {
			return err
		}
		err = e.client.PutSnapshot(ctx, delivery.SnapshotBody{Version: version, Sealed: sealed})
		if delivery.CodeOf(err) == delivery.CodeConflict {
			// Another device was faster, or has revoked one.
			if err := e.readKeys(ctx); err != nil {
				return err
			}
			continue
		}
		if delivery.CodeOf(err) == delivery.CodeTooLarge {
			e.Warn("what this account keeps of itself at the service is too large for it and was not brought up to date: %v", err)
			return nil
		}
		if err != nil {
			return e.fail(ctx, err)
		}
		return e.Store.Update(ctx, func(tx Tx) error {
			if err := putNumber(tx, settingSnapshot, version+1); err != nil {
				return err
			}
			if err := putNumber(tx, settingSnapshotOf, generation); err != nil {
				return err
			}
			return tx.Delete(TableSetting, settingDirty)
		})
	}
	return delivery.Refuse(delivery.CodeRetry, "another device keeps changing the account's state")
}

// readKeys learns of revocations and takes the keys that they made due.
func (e *Engine) readKeys(ctx context.Context) error {
	if _, err := e.Devices(ctx); err != nil {
		return err
	}
	return e.settleKeys(ctx, nil)
}

// fetchSnapshot reads what stands at the service, version 0 when nothing does. One
// of an earlier generation than this device has seen is not taken for the
// account's state: somebody holds its key who was revoked, or the service was
// restored. What this device knows goes over it.
func (e *Engine) fetchSnapshot(ctx context.Context) (uint64, snapshot, error) {
	var s snapshot
	got, err := e.client.Snapshot(ctx)
	if delivery.CodeOf(err) == delivery.CodeNotFound {
		return 0, s, nil
	}
	if err != nil || got.Version == 0 {
		return 0, s, e.fail(ctx, err)
	}
	seen := uint64(0)
	err = e.Store.View(ctx, func(tx Tx) (err error) {
		seen, err = number(tx, settingSnapshotOf)
		return err
	})
	if err != nil {
		return 0, s, err
	}
	if g, err := delivery.SealedGeneration(got.Sealed); err == nil && g < seen {
		e.Warn("the service shows a state of this account from before a device was revoked: it is passed over")
		return got.Version, s, nil
	}
	plain, generation, err := e.openFor(ctx, sealSnapshot, "", got.Sealed)
	if errors.Is(err, errKeys) {
		if _, err := e.takeKeys(ctx); err != nil {
			return 0, s, err
		}
		plain, generation, err = e.openFor(ctx, sealSnapshot, "", got.Sealed)
	}
	if err != nil {
		return 0, s, err
	}
	if err := json.Unmarshal(plain, &s); err != nil {
		return 0, s, fmt.Errorf("sdk: the account's snapshot cannot be read: %w", err)
	}
	if generation > seen {
		// Sealed under a key that only the account gives: it is the account's word.
		err = e.Store.Update(ctx, func(tx Tx) error {
			if err := putNumber(tx, settingSnapshotOf, generation); err != nil {
				return err
			}
			held, err := number(tx, settingGeneration)
			if err != nil || held >= generation {
				return err
			}
			return putNumber(tx, settingGeneration, generation)
		})
	}
	return got.Version, s, err
}

// merge puts this profile's rooms and people over s.
func (e *Engine) merge(ctx context.Context, s *snapshot) error {
	if me := e.self(); me.Profile >= s.Profile {
		s.Name, s.About, s.Username, s.Profile = me.Name, me.About, me.Username, me.Profile
	}
	if s.SelfRoom == nil {
		s.SelfRoom = e.account.SelfRoom
	}
	if s.Rooms == nil {
		s.Rooms = map[string]snapshotRoom{}
	}
	if s.People == nil {
		s.People = map[identity.PublicKey]Person{}
	}
	return e.Store.View(ctx, func(tx Tx) error {
		rooms, err := scan[Room](tx, TableRoom, "")
		if err != nil {
			return err
		}
		for _, r := range rooms {
			kept := s.Rooms[r.ID.String()]
			if r.TitleSeq >= kept.TitleSeq || r.Status != StatusOpen {
				kept.Title, kept.TitleSeq, kept.Disappear, kept.Left = r.Title, r.TitleSeq, r.Disappear, r.Status == StatusLeft
			}
			var a archiveState
			if _, err := get(tx, TableSetting, settingTo+r.ID.String(), &a); err != nil {
				return err
			}
			kept.Archived, kept.Bare = max(kept.Archived, a.To), kept.Bare.with(a.Bare...).widest(archiveBare)
			kept.Closed = r.closed(kept.Closed)
			s.Rooms[r.ID.String()] = kept
		}
		people, err := scan[Person](tx, TablePerson, "")
		if err != nil {
			return err
		}
		for _, p := range people {
			old, kept := s.People[p.Identity]
			if p.Contact || p.Verified || kept {
				s.People[p.Identity] = p.with(old)
			}
		}
		return nil
	})
}

// readSnapshot takes over what the account left; found is false when there is
// nothing.
func (e *Engine) readSnapshot(ctx context.Context) (found bool, err error) {
	version, s, err := e.fetchSnapshot(ctx)
	if err != nil || version == 0 {
		return false, err
	}
	e.account.Name, e.account.About, e.account.Username = s.Name, s.About, s.Username
	e.account.Profile, e.account.SelfRoom = s.Profile, s.SelfRoom
	return true, e.Store.Update(ctx, func(tx Tx) error {
		for _, p := range s.People {
			if err := put(tx, TablePerson, p.Identity.String(), p); err != nil {
				return err
			}
			if p.Username == "" {
				continue
			}
			// Whose it was when the account first met it, not when this device does.
			if err := tx.Put(TableUsername, p.Username, []byte(p.Identity.String())); err != nil {
				return err
			}
		}
		for id, r := range s.Rooms {
			if err := put(tx, TableSetting, settingKept+id, r); err != nil {
				return err
			}
			if err := e.showClosed(tx, id, r); err != nil {
				return err
			}
		}
		return e.saveAccount(tx)
	})
}
