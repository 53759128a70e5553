package sdk

import (
	"context"
	"fmt"

	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/identity/phrase"
)

// DeviceView is a device of this account.
type DeviceView struct {
	Device     identity.DeviceID
	EnrolledMS int64
	SeenMS     int64
	This       bool
	Revoked    bool
}

// Devices lists the devices of this account, every credential verified, and
// those that were revoked.
func (e *Engine) Devices(ctx context.Context) ([]DeviceView, error) {
	got, err := e.client.Devices(ctx)
	if err != nil {
		return nil, e.fail(ctx, err)
	}
	var out []DeviceView
	for _, d := range got.Devices {
		u, err := identity.ParseCredential(d.Credential)
		if err != nil {
			return nil, fmt.Errorf("a device of this account: %w", err)
		}
		cred, err := u.Verify()
		if err != nil {
			return nil, fmt.Errorf("a device of this account: %w", err)
		}
		if cred.Identity() != e.account.Identity || cred.DeviceID() != d.Device {
			return nil, fmt.Errorf("%w: the service lists a device of somebody else", identity.ErrKey)
		}
		out = append(out, DeviceView{Device: d.Device, EnrolledMS: d.EnrolledMS, SeenMS: d.SeenMS, This: d.Device == e.account.Device})
	}
	revoked, err := e.takeRevocations(ctx, e.account.Identity, got.Revocations)
	for _, d := range revoked {
		out = append(out, DeviceView{Device: d, Revoked: true})
	}
	return out, err
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
	return e.joinOwnRooms(ctx)
}

// Revoke ends a device of this account for good. words is nil on a device that
// holds the account's key (ErrNoKey).
func (e *Engine) Revoke(ctx context.Context, device identity.DeviceID, words *phrase.Phrase) error {
	node, err := e.node(ctx, words)
	if err != nil {
		return err
	}
	defer node.Wipe()
	if device == e.account.Device {
		return fmt.Errorf("%w: revoke this device from another one", identity.ErrFormat)
	}
	key, err := node.Identity()
	if err != nil {
		return err
	}
	defer key.Wipe()
	rev, err := identity.Revoke(identity.RevocationFields{Identity: e.account.Identity, DeviceID: device, IssuedAt: uint64(e.Now().Unix())}, key)
	if err != nil {
		return err
	}
	if err := e.client.Revoke(ctx, rev.Bytes()); err != nil {
		return e.fail(ctx, err)
	}
	err = e.Store.Update(ctx, func(tx Tx) error {
		return tx.Put(TableRevoked, e.account.Identity.String()+"/"+device.String(), rev.Bytes())
	})
	if err != nil {
		return err
	}
	return e.expel(ctx, rev)
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
