package sdk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/identity/phrase"
)

// ErrUnfinished: besides the reason, this device was made, and the service may know it.
// The store keeps it, and [Restore] on the same store goes on with it.
var ErrUnfinished = errors.New("the account is not complete on this device yet")

// Restore brings an account back on a new device from its phrase alone: name,
// contacts, and every room that any device of it is in, which it enters by
// external commit.
//
// What fails after the device was made fails with [ErrUnfinished] besides: who then
// throws the store away leaves a device of the account behind. Called again on the same
// store, also after a crash, it goes on with that device, and opens one that is complete;
// another account, or another service, is refused there (ErrAccount). A service that keeps
// no such account ([delivery.CodeNotFound]) keeps no device of it either, and one that its
// owner has revoked meanwhile (ErrRevoked) is of no use any more: nothing in the store
// counts.
func Restore(ctx context.Context, c Config, server string, words phrase.Phrase) (*Engine, error) {
	node, err := words.Account()
	if err != nil {
		return nil, err
	}
	defer node.Wipe()
	e := newEngine(c)
	e.account = account{Server: server, Returning: true}
	if complete, err := e.deviceToReturn(ctx, node); err != nil {
		return nil, err
	} else if complete {
		return Open(ctx, c)
	}
	if err := e.returns(ctx); err != nil {
		return nil, e.gaveUp(ctx, node, err)
	}
	e.catchUpPast(ctx)
	return e, nil
}

// deviceToReturn is the one that an earlier try has made in this store, or a new one.
// complete: the account has come back on it already.
func (e *Engine) deviceToReturn(ctx context.Context, node phrase.Account) (complete bool, err error) {
	before, err := e.begunBefore(ctx)
	if err != nil && !before.Returning {
		return false, err
	}
	if _, err := e.firstContact(ctx); err != nil {
		return false, err
	}
	if !before.Returning {
		return false, e.makeDevice(ctx, node)
	}
	id, err := node.PublicKey()
	switch {
	case err != nil:
		return false, err
	case before.Identity != id:
		return false, fmt.Errorf("%w: another one began to come back from its phrase in it", ErrAccount)
	case before.Home != e.account.Home:
		return false, fmt.Errorf("%w: it began to come back at another service, %s", ErrAccount, before.Server)
	case before.Ready:
		return true, nil
	}
	e.account.Identity, e.account.Device = before.Identity, before.Device
	return false, e.beginStored(ctx)
}

// returns makes the device known and the account complete on it.
func (e *Engine) returns(ctx context.Context) error {
	if err := e.enrol(ctx); err != nil {
		return e.fail(ctx, err)
	}
	if err := e.comeBack(ctx); err != nil {
		return err
	}
	return e.ready(ctx)
}

// endTime is how long ending a device that is of no use may take.
const endTime = 10 * time.Second

// gaveUp says what becomes of the device whose account did not come back, and why.
func (e *Engine) gaveUp(ctx context.Context, node phrase.Account, why error) error {
	var unknown *unknownAccount
	switch {
	case errors.Is(why, ErrRevoked):
		return why
	case !errors.As(why, &unknown):
		return &unfinishedError{why}
	}
	// It is known to a service that does not know its account. Nobody would find it there.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if err := e.end(ctx, node); err != nil {
		e.Warn("the service still knows this device, which is of no use: %v", err)
		return &unfinishedError{why}
	}
	return why
}

// end revokes this very device, and forgets it.
func (e *Engine) end(ctx context.Context, node phrase.Account) error {
	key, err := node.Identity()
	if err != nil {
		return err
	}
	defer key.Wipe()
	rev, err := identity.Revoke(identity.RevocationFields{Identity: e.account.Identity, DeviceID: e.account.Device, IssuedAt: uint64(e.Now().Unix())}, key)
	if err != nil {
		return err
	}
	if err := e.client.Revoke(ctx, rev.Bytes()); err != nil {
		return err
	}
	return e.Store.Update(ctx, func(tx Tx) error { return tx.Delete(TableSetting, settingAccount) })
}

// unfinishedError is a reason with ErrUnfinished beside it.
type unfinishedError struct{ error }

func (u *unfinishedError) Unwrap() []error { return []error{u.error, ErrUnfinished} }

// unknownAccount: the service keeps nothing of the account.
type unknownAccount struct{ refusal *delivery.Error }

func (u *unknownAccount) Error() string { return u.refusal.Error() }
func (u *unknownAccount) Unwrap() error { return u.refusal }

// comeBack reads what the account left at the service and enters its rooms.
func (e *Engine) comeBack(ctx context.Context) error {
	found, err := e.readSnapshot(ctx)
	if errors.Is(err, errKeys) {
		return fmt.Errorf("%w: its archive key is not wrapped to this device yet", ErrWaiting)
	}
	if err != nil {
		return err
	}
	if !found {
		return e.noAccount(ctx)
	}
	// What was revoked counts before anything is sealed.
	if _, err := e.Devices(ctx); err != nil {
		return err
	}
	if err := e.settled(ctx); err != nil {
		return err
	}
	if err := e.publishKeys(ctx, firstKeys, policy.Suites...); err != nil {
		return err
	}
	return e.joinOwnRooms(ctx)
}

// noAccount says that the service keeps nothing of the account, and why that may be.
func (e *Engine) noAccount(ctx context.Context) error {
	detail := "this service knows no account of this phrase: check the address"
	info, err := e.home(ctx)
	if err != nil {
		return err
	}
	if info.Incarnation > 0 {
		detail += fmt.Sprintf("; it was restored from a backup, on %s: an account that was made after that backup is gone with its last device, and its owner makes another one",
			time.UnixMilli(info.RestoredMS).UTC().Format("2 January 2006"))
	}
	return &unknownAccount{delivery.Refuse(delivery.CodeNotFound, detail)}
}

// catchUpPast reads the archive on a device that is ready. Without the service it
// is read later.
func (e *Engine) catchUpPast(ctx context.Context) {
	if err := e.history(ctx); err != nil {
		e.Warn("what was said before is read later: %v", err)
	}
}
