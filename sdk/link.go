package sdk

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/identity/phrase"
)

// Linking a device takes three steps, each a text or QR code or a look at the
// service: the old device shows a ticket (who and where, no secret), the new one
// makes its keys and shows an offer (its half of an attestation), the old one
// approves it: it signs, makes the device known and wraps the archive key to it.
// The new one then finds itself known and comes in by [FinishLink].

const (
	ticketPrefix = "compax-ticket-1:"
	offerPrefix  = "compax-offer-1:"
	settingOffer = "link.offer"
)

// ErrWaiting: the offer of this device was not approved yet.
var ErrWaiting = errors.New("this device waits until another device of the account approves its offer")

// ErrCode: a text is no ticket or offer of a device, or not for this account.
var ErrCode = errors.New("this is not a code for linking a device to this account")

type ticket struct {
	Server   string             `json:"server"`
	Home     identity.Home      `json:"home"`
	Identity identity.PublicKey `json:"identity"`
}

// Ticket is what a new device of this account reads first.
func (e *Engine) Ticket() (string, error) {
	b, err := json.Marshal(ticket{e.account.Server, e.account.Home, e.account.Identity})
	if err != nil {
		return "", fmt.Errorf("sdk: make a ticket: %w", err)
	}
	return ticketPrefix + base64.RawURLEncoding.EncodeToString(b), nil
}

func readCode(prefix, code string) ([]byte, error) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(code), prefix)
	if !ok || len(rest) > 4096 {
		return nil, fmt.Errorf("%w: it does not begin with %s", ErrCode, prefix)
	}
	b, err := base64.RawURLEncoding.DecodeString(rest)
	if err != nil {
		return nil, fmt.Errorf("%w: a part of it is missing", ErrCode)
	}
	return b, nil
}

func readTicket(code string) (t ticket, err error) {
	raw, err := readCode(ticketPrefix, code)
	if err != nil {
		return t, err
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		return t, fmt.Errorf("%w: a part of it is missing", ErrCode)
	}
	return t, nil
}

// Link begins on a new device, with a ticket, and gives the offer to show. Called
// again on the same store it gives the same offer, also when the linking is complete:
// who was interrupted at its very end cannot know. A store with another account, or
// one that came in otherwise, is refused (ErrAccount).
func Link(ctx context.Context, c Config, code string) (offer string, err error) {
	e := newEngine(c)
	if offer, err = e.madeOffer(ctx); err != nil {
		return "", err
	}
	if _, err := e.begunBefore(ctx); errors.Is(err, ErrAccount) && offer != "" {
		t, err := readTicket(code)
		if err != nil {
			return "", err
		}
		return offer, e.linkedTo(ctx, t)
	} else if err != nil || offer != "" {
		return offer, err
	}
	t, err := readTicket(code)
	if err != nil {
		return "", err
	}
	if err := t.Identity.Check(); err != nil {
		return "", fmt.Errorf("%w: %w", ErrCode, err)
	}
	e.account = account{Server: t.Server}
	info, err := e.firstContact(ctx)
	if err != nil {
		return "", err
	}
	if info.Home != t.Home {
		return "", fmt.Errorf("%w: the service at %s is another home than the account's", ErrCode, t.Server)
	}
	device, key, err := e.newDeviceKeys()
	if err != nil {
		return "", err
	}
	half, err := identity.AttestAsDevice(identity.Attestation{
		Home: t.Home, Identity: t.Identity, DeviceID: identity.DeriveDeviceID(t.Identity, device.PublicBytes()),
		DevicePubkey: device.PublicBytes(), DeviceHPKE: identity.DeviceHPKEKey(key.PublicKey().Bytes()),
		Role: identity.RoleMember, Version: 1, IssuedAt: uint64(e.Now().Unix()),
	}, device)
	if err != nil {
		return "", err
	}
	e.account.Identity, e.account.Device = t.Identity, half.Attestation.DeviceID
	seed := device.Seed()
	defer clear(seed)
	err = e.storeSecrets(ctx, map[string][]byte{settingDevice: seed, settingHPKE: key.Bytes()}, map[string][]byte{settingOffer: half.Bytes()})
	return offerPrefix + base64.RawURLEncoding.EncodeToString(half.Bytes()), err
}

// linkedTo refuses a ticket of another account than this store's.
func (e *Engine) linkedTo(ctx context.Context, t ticket) error {
	return e.Store.View(ctx, func(tx Tx) error {
		var has account
		_, err := get(tx, TableSetting, settingAccount, &has)
		if err == nil && (has.Identity != t.Identity || has.Home != t.Home) {
			return ErrAccount
		}
		return err
	})
}

// madeOffer is the offer that was made in this store before, "" when none was.
func (e *Engine) madeOffer(ctx context.Context) (offer string, err error) {
	err = e.Store.View(ctx, func(tx Tx) error {
		b, err := tx.Get(TableSetting, settingOffer)
		if b != nil {
			offer = offerPrefix + base64.RawURLEncoding.EncodeToString(b)
		}
		return err
	})
	return offer, err
}

// Offered says which device an offer is of, for its owner to compare before
// approving.
func (e *Engine) Offered(code string) (identity.DeviceID, error) {
	u, err := e.readOffer(code)
	return u.Attestation.DeviceID, err
}

func (e *Engine) readOffer(code string) (identity.UnverifiedCredential, error) {
	raw, err := readCode(offerPrefix, code)
	if err != nil {
		return identity.UnverifiedCredential{}, err
	}
	u, err := identity.ParseCredential(raw)
	if err != nil {
		return u, fmt.Errorf("%w: %w", ErrCode, err)
	}
	a := u.Attestation
	if a.Identity != e.account.Identity || a.Home != e.account.Home || a.Role != identity.RoleMember || a.Version != 1 ||
		a.DeviceID != identity.DeriveDeviceID(a.Identity, a.DevicePubkey) {
		return u, fmt.Errorf("%w: it is made for another account or home", ErrCode)
	}
	return u, nil
}

// Approve attests an offered device, makes it known and wraps the archive key to
// it. words is nil on a device that holds the account's key (ErrNoKey, ErrCode).
func (e *Engine) Approve(ctx context.Context, code string, words *phrase.Phrase) (identity.DeviceID, error) {
	u, err := e.readOffer(code)
	if err != nil {
		return identity.DeviceID{}, err
	}
	id := u.Attestation.DeviceID
	if known, err := e.revoked(ctx, e.account.Identity, id); err != nil || known {
		return id, errors.Join(err, fmt.Errorf("%w: for good", ErrRevoked))
	}
	node, err := e.node(ctx, words)
	if err != nil {
		return id, err
	}
	defer node.Wipe()
	key, err := node.Identity()
	if err != nil {
		return id, err
	}
	defer key.Wipe()
	cred, err := identity.AttestAsIdentity(u, key)
	if err != nil {
		return id, err
	}
	if err := e.client.Enrol(ctx, cred.Bytes()); err != nil {
		return id, e.fail(ctx, err)
	}
	// Read after the device is known: who revokes from now on wraps to it as well.
	if _, err := e.Devices(ctx); err != nil {
		return id, err
	}
	if err := e.settleKeys(ctx, &node); err != nil {
		return id, err
	}
	// What it will show of the past is there before it comes.
	err = e.Sync(ctx)
	if err == nil {
		_, err = e.archive(ctx, true)
	}
	if err != nil {
		e.Warn("not all of this device's history is in the archive: the new device may miss some of it: %v", err)
	}
	if err := e.giveKeysTo(ctx, node, cred); err != nil {
		return id, err
	}
	if err := e.dirty(ctx); err != nil {
		return id, err
	}
	return id, e.flushSnapshot(ctx)
}

// giveKeysTo gives a new device the archive keys, the present one last.
func (e *Engine) giveKeysTo(ctx context.Context, node phrase.Account, cred identity.Credential) error {
	held, _, err := e.generations(ctx)
	if err != nil {
		return err
	}
	devices := []identity.Credential{cred}
	wraps, err := giveKeys(node, devices, 1, 1)
	if err != nil {
		return err
	}
	later := uint64(2)
	if held > keptGenerations {
		later = max(later, held-keptGenerations+1)
	}
	more, err := giveKeys(node, devices, later, held)
	if err != nil {
		return err
	}
	for _, w := range append(wraps, more...) {
		if err := e.client.PutWrappedKey(ctx, w); err != nil {
			return e.fail(ctx, err)
		}
	}
	return nil
}

// FinishLink completes a linked device once its offer was approved (ErrWaiting):
// it enters the account's rooms and knows its people. It cannot attest, revoke or
// make bots until the phrase is typed. One that is complete is opened.
func FinishLink(ctx context.Context, c Config) (*Engine, error) {
	e := newEngine(c)
	var seed, half []byte
	err := c.Store.View(ctx, func(tx Tx) error {
		if _, err := get(tx, TableSetting, settingAccount, &e.account); err != nil {
			return err
		}
		var err error
		if half, err = tx.Get(TableSetting, settingOffer); err != nil {
			return err
		}
		if half == nil {
			return ErrNoAccount
		}
		sealed, err := tx.Get(TableSetting, settingDevice)
		if err != nil {
			return err
		}
		seed, err = unseal(c.SealKey, settingDevice, sealed)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer clear(seed)
	if e.account.Ready {
		return Open(ctx, c)
	}
	if err := e.beginKeys(seed); err != nil {
		return nil, err
	}
	err = e.client.Ensure(ctx)
	if delivery.CodeOf(err) == delivery.CodeNotFound {
		return nil, ErrWaiting
	}
	if err != nil {
		return nil, e.fail(ctx, err)
	}
	cred, err := e.ownCredential(ctx, half)
	if err != nil {
		return nil, err
	}
	if err := e.begin(cred, seed); err != nil {
		return nil, err
	}
	if err := e.takeArchive(ctx, cred); err != nil {
		return nil, err
	}
	if err := e.comeBack(ctx); err != nil {
		return nil, err
	}
	if err := e.ready(ctx); err != nil {
		return nil, err
	}
	e.catchUpPast(ctx)
	return e, nil
}

// ownCredential reads what the account's other device signed: it must be the very
// attestation that was offered.
func (e *Engine) ownCredential(ctx context.Context, half []byte) ([]byte, error) {
	offered, err := identity.ParseCredential(half)
	if err != nil {
		return nil, err
	}
	got, err := e.client.Devices(ctx)
	if err != nil {
		return nil, e.fail(ctx, err)
	}
	for _, d := range got.Devices {
		if d.Device != e.account.Device {
			continue
		}
		u, err := identity.ParseCredential(d.Credential)
		if err != nil {
			return nil, err
		}
		if u.Attestation != offered.Attestation {
			return nil, fmt.Errorf("%w: what was approved is not what this device offered", ErrCode)
		}
		return d.Credential, nil
	}
	return nil, ErrWaiting
}

// takeArchive stores the credential and the archive keys (ErrWaiting). The one of
// the present generation is given last: when it is here, all are.
func (e *Engine) takeArchive(ctx context.Context, cred []byte) error {
	found, err := e.takeKeys(ctx)
	if err != nil {
		return err
	}
	held, owed, err := e.generations(ctx)
	if err != nil {
		return err
	}
	if found == 0 || held < owed {
		return ErrWaiting
	}
	return e.Store.Update(ctx, func(tx Tx) error { return tx.Put(TableSetting, settingCredential, cred) })
}
