package sdk

import (
	"context"
	"errors"
	"fmt"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/identity/phrase"
)

// DeviceView is a device of this account.
type DeviceView struct {
	Device     identity.DeviceID
	EnrolledMS int64 // when the service came to know it
	SeenMS     int64 // when it was last at the service, as that says
	This       bool  // it is this very device
	Revoked    bool  // its owner ended it
	Idle       bool  // not at the service for [delivery.IdleAfter]: revoke it when it is lost
}

// listed is a device as the service lists it, verified.
type listed struct {
	DeviceView
	cred identity.Credential
}

// listDevices reads the devices of this account, every credential verified, and
// takes over which were revoked.
func (e *Engine) listDevices(ctx context.Context) (list []listed, revoked []identity.DeviceID, err error) {
	got, err := e.client.Devices(ctx)
	if err != nil {
		return nil, nil, e.fail(ctx, err)
	}
	for _, d := range got.Devices {
		u, err := identity.ParseCredential(d.Credential)
		if err != nil {
			return nil, nil, fmt.Errorf("a device of this account: %w", err)
		}
		cred, err := u.Verify()
		if err != nil {
			return nil, nil, fmt.Errorf("a device of this account: %w", err)
		}
		if cred.Identity() != e.account.Identity || cred.DeviceID() != d.Device {
			return nil, nil, fmt.Errorf("%w: the service lists a device of somebody else", identity.ErrKey)
		}
		list = append(list, listed{DeviceView{Device: d.Device, EnrolledMS: d.EnrolledMS, SeenMS: d.SeenMS, This: d.Device == e.account.Device, Idle: e.idleSince(d.SeenMS)}, cred})
	}
	revoked, err = e.takeRevocations(ctx, e.account.Identity, got.Revocations)
	return list, revoked, err
}

// Devices lists the devices of this account, every credential verified, and
// those that were revoked.
func (e *Engine) Devices(ctx context.Context) ([]DeviceView, error) {
	list, revoked, err := e.listDevices(ctx)
	if err != nil {
		return nil, err
	}
	var out []DeviceView
	for _, d := range list {
		out = append(out, d.DeviceView)
	}
	for _, d := range revoked {
		out = append(out, DeviceView{Device: d, Revoked: true})
	}
	return out, nil
}

// idleSince reports whether a device that was last at the service then is idle.
func (e *Engine) idleSince(seenMS int64) bool {
	return seenMS > 0 && e.nowMS()-seenMS >= delivery.IdleAfter.Milliseconds()
}

// takeRevocations verifies and remembers revocations of an identity's devices.
func (e *Engine) takeRevocations(ctx context.Context, id identity.PublicKey, list [][]byte) (out []identity.DeviceID, err error) {
	err = e.Store.Update(ctx, func(tx Tx) error {
		for _, raw := range list {
			u, err := identity.ParseRevocation(raw)
			if err != nil {
				return err
			}
			r, err := u.Verify()
			if err != nil {
				return err
			}
			if r.Fields().Identity != id {
				continue // what somebody else signs about a device says nothing
			}
			out = append(out, r.Fields().DeviceID)
			if err := tx.Put(TableRevoked, id.String()+"/"+r.Fields().DeviceID.String(), r.Bytes()); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// readOwnDevices reads the account's devices and revocations again.
func (e *Engine) readOwnDevices(ctx context.Context) error {
	if _, err := e.Devices(ctx); err != nil {
		return err
	}
	if err := e.settled(ctx); err != nil {
		return err
	}
	if err := e.joinOwnRooms(ctx); err != nil {
		return err
	}
	return e.flushSnapshot(ctx)
}

// Revoke ends a device of this account for good, and gives those that are left a
// new archive key. words is nil on a device that holds the account's key
// (ErrNoKey). Interrupted after its first write it is finished by the next sync.
func (e *Engine) Revoke(ctx context.Context, device identity.DeviceID, words *phrase.Phrase) error {
	node, err := e.node(ctx, words)
	if err != nil {
		return err
	}
	defer node.Wipe()
	if device == e.account.Device {
		return fmt.Errorf("%w: revoke this device from another one", identity.ErrFormat)
	}
	rev, err := e.beginRevocation(ctx, device, node)
	if err != nil {
		return err
	}
	if err := e.client.Revoke(ctx, rev.Bytes()); err != nil {
		if delivery.CodeOf(err) == delivery.CodeRefused { // it is somebody else's
			err = errors.Join(err, e.Store.Update(ctx, func(tx Tx) error {
				return tx.Delete(TableRevoked, e.account.Identity.String()+"/"+device.String())
			}))
		}
		return e.fail(ctx, err)
	}
	if err := e.settleKeys(ctx, &node); err != nil {
		return err
	}
	if err := e.flushSnapshot(ctx); err != nil {
		return err
	}
	return e.expel(ctx, rev)
}

// beginRevocation signs a revocation and writes it down with the archive key that
// it makes due, wrapped to the devices that are left: what is done from here on
// does not need the account's key any more.
func (e *Engine) beginRevocation(ctx context.Context, device identity.DeviceID, node phrase.Account) (identity.Revocation, error) {
	var rev identity.Revocation
	list, _, err := e.listDevices(ctx)
	if err != nil {
		return rev, err
	}
	entry := e.account.Identity.String() + "/" + device.String()
	var before []byte
	err = e.Store.View(ctx, func(tx Tx) (err error) {
		before, err = tx.Get(TableRevoked, entry)
		return err
	})
	if err != nil {
		return rev, err
	}
	if before != nil {
		u, err := identity.ParseRevocation(before)
		if err != nil {
			return rev, err
		}
		return u.Verify()
	}
	key, err := node.Identity()
	if err != nil {
		return rev, err
	}
	defer key.Wipe()
	rev, err = identity.Revoke(identity.RevocationFields{Identity: e.account.Identity, DeviceID: device, IssuedAt: uint64(e.Now().Unix())}, key)
	if err != nil {
		return rev, err
	}
	held, owed, err := e.generations(ctx)
	if err != nil {
		return rev, err
	}
	owed = max(owed, held) + 1 // held is ahead when the service lost revocations
	var left []identity.Credential
	for _, d := range list {
		if d.Device != device {
			left = append(left, d.cred)
		}
	}
	wraps, err := giveKeys(node, left, held+1, owed)
	if err != nil {
		return rev, err
	}
	return rev, e.Store.Update(ctx, func(tx Tx) error {
		if err := tx.Put(TableRevoked, entry, rev.Bytes()); err != nil {
			return err
		}
		return e.putRaise(tx, node, wraps, held+1, owed)
	})
}

// expel carries a revocation into every room that the device is in and removes
// its leaves, without waiting for the service to propose it.
func (e *Engine) expel(ctx context.Context, rev identity.Revocation) error {
	rooms, err := e.openRooms(ctx)
	if err != nil {
		return err
	}
	for _, id := range rooms {
		if err := e.expelFrom(ctx, id, rev); err != nil {
			if isNet(err) {
				return err
			}
			e.Warn("%s: the revoked device could not be removed yet: %v", id, err)
		}
	}
	return nil
}
