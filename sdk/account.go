package sdk

import (
	"context"
	"crypto/ecdh"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/identity/phrase"
)

// NewAccount is a person who begins.
type NewAccount struct {
	Server   string // https://chat.example.org
	Name     string // 1 to identity.MaxDisplayName bytes
	Username string // empty = none
}

// Create makes an account and its first device. The phrase is shown to its owner
// once and kept nowhere. [delivery.CodeConflict] when the username is taken. On
// an error the store holds nothing that counts.
func Create(ctx context.Context, c Config, n NewAccount) (*Engine, phrase.Phrase, error) {
	words, err := phrase.Generate(c.Random)
	if err != nil {
		return nil, words, err
	}
	if n.Username != "" {
		if n.Username, err = identity.NormalizeUsername(n.Username); err != nil {
			return nil, words, err
		}
	}
	if n.Name == "" || len(n.Name) > identity.MaxDisplayName {
		return nil, words, fmt.Errorf("%w: a name has 1 to %d bytes", identity.ErrFormat, identity.MaxDisplayName)
	}
	node, err := words.Account()
	if err != nil {
		return nil, words, err
	}
	defer node.Wipe()
	e, err := setUp(ctx, c, account{Server: n.Server, Name: n.Name, Username: n.Username, Profile: 1}, node)
	if err != nil {
		return nil, words, err
	}
	if err := e.publishKeys(ctx, firstKeys, policy.Suites...); err != nil {
		return nil, words, err
	}
	self, err := e.createRoom(ctx, newRoom{kind: delivery.RoomSelf, suite: policy.Suites[0]})
	if err != nil {
		return nil, words, fmt.Errorf("make the account's own room: %w", err)
	}
	e.account.SelfRoom = &self
	if err := e.putSnapshot(ctx); err != nil {
		return nil, words, err
	}
	if err := e.begins(ctx, node); err != nil {
		return nil, words, err
	}
	return e, words, nil
}

// nameTime is how long taking a name may take once it has begun.
const nameTime = 30 * time.Second

// begins takes the account's name and makes it ready. A name is its identity's for
// good, so it is taken when nothing else can be refused, and a context that ends
// meanwhile does not come between it and a phrase that nobody has seen.
func (e *Engine) begins(ctx context.Context, node phrase.Account) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), nameTime)
	defer cancel()
	if err := e.publishProfile(ctx, node, e.account); err != nil {
		if delivery.CodeOf(err) == delivery.CodeConflict {
			err = fmt.Errorf("@%s: %w", e.account.Username, err)
		}
		return err
	}
	return e.ready(ctx)
}

func (e *Engine) ready(ctx context.Context) error {
	e.account.Ready = true
	return e.Store.Update(ctx, e.saveAccount)
}

func (e *Engine) saveAccount(tx Tx) error { return put(tx, TableSetting, settingAccount, e.self()) }

// self is the account as it is now.
func (e *Engine) self() account {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.account
}

// setUp makes a device, attests it and makes it known.
func setUp(ctx context.Context, c Config, a account, node phrase.Account) (*Engine, error) {
	e := newEngine(c)
	e.account = a
	if _, err := e.begunBefore(ctx); err != nil {
		return nil, err
	}
	if _, err := e.firstContact(ctx); err != nil {
		return nil, err
	}
	if err := e.makeDevice(ctx, node); err != nil {
		return nil, err
	}
	return e, e.enrol(ctx)
}

// makeDevice makes a device of the account of node, and stores it. The service does
// not know it yet.
func (e *Engine) makeDevice(ctx context.Context, node phrase.Account) error {
	key, err := node.Identity()
	if err != nil {
		return err
	}
	defer key.Wipe()
	device, hpke, err := e.newDeviceKeys()
	if err != nil {
		return err
	}
	cred, err := identity.Attest(identity.Attestation{
		Home: e.account.Home, Identity: key.PublicBytes(), DevicePubkey: device.PublicBytes(), DeviceHPKE: identity.DeviceHPKEKey(hpke.PublicKey().Bytes()),
		Role: identity.RoleMember, Version: 1, IssuedAt: uint64(e.Now().Unix()),
	}, key, device)
	if err != nil {
		return err
	}
	archive, err := node.ArchiveKey(1)
	if err != nil {
		return err
	}
	defer clear(archive)
	nodeBytes := node.Bytes()
	defer clear(nodeBytes)
	return e.storeDevice(ctx, cred, device, hpke, archive, nodeBytes)
}

// enrol makes the device known, which may be done again, and opens a session.
func (e *Engine) enrol(ctx context.Context) error {
	if err := e.client.Enrol(ctx, e.cred.Bytes()); err != nil {
		return err
	}
	return e.client.Login(ctx)
}

// begunBefore is the account that began in the store, if any. A store with a finished
// one is refused, and one with an account that comes back.
func (e *Engine) begunBefore(ctx context.Context) (before account, err error) {
	err = e.Store.View(ctx, func(tx Tx) error {
		_, err := get(tx, TableSetting, settingAccount, &before)
		return err
	})
	switch {
	case err != nil:
		return before, err
	case before.Ready:
		return before, ErrAccount
	case before.Returning:
		return before, fmt.Errorf("%w: it began to come back from its phrase, at %s, and is not complete", ErrAccount, before.Server)
	}
	return before, nil
}

func (e *Engine) firstContact(ctx context.Context) (delivery.Info, error) {
	e.account.Server = strings.TrimRight(e.account.Server, "/")
	if !strings.HasPrefix(e.account.Server, "http://") && !strings.HasPrefix(e.account.Server, "https://") {
		return delivery.Info{}, fmt.Errorf("%w: a server's address begins with https:// or http://", identity.ErrFormat)
	}
	anonymous := client.New(client.Config{Base: e.account.Server, Transport: e.Transport, Sleep: e.Sleep, Jitter: e.jitter, Tries: 2})
	info, err := anonymous.Info(ctx)
	if err != nil {
		return info, err
	}
	if err := checkInfo(info); err != nil {
		return info, err
	}
	e.info = &info
	e.account.Home, e.account.Domain = info.Home, info.Domain
	return info, nil
}

func (e *Engine) newDeviceKeys() (phrase.Key, *ecdh.PrivateKey, error) {
	device, err := phrase.GenerateKey(e.Random)
	if err != nil {
		return device, nil, err
	}
	raw := make([]byte, 32)
	if _, err := io.ReadFull(e.Random, raw); err != nil {
		return device, nil, fmt.Errorf("random bytes: %w", err)
	}
	defer clear(raw)
	hpke, err := ecdh.X25519().NewPrivateKey(raw)
	if err != nil {
		return device, nil, fmt.Errorf("the device's HPKE key: %w", err)
	}
	return device, hpke, nil
}

// storeDevice seals the device's secrets into the store. Nothing of a device that was
// begun in it before counts any more.
func (e *Engine) storeDevice(ctx context.Context, cred identity.Credential, device phrase.Key, hpke *ecdh.PrivateKey, archive, node []byte) error {
	e.account.Identity, e.account.Device = cred.Identity(), cred.DeviceID()
	seed := device.Seed()
	defer clear(seed)
	secrets := map[string][]byte{settingDevice: seed, settingHPKE: hpke.Bytes(), settingArchive: archive, settingNode: node}
	open := map[string][]byte{settingCredential: cred.Bytes(), settingOffer: nil, settingCounter: nil, settingNext: nil}
	if err := e.storeSecrets(ctx, secrets, open); err != nil {
		return err
	}
	return e.begin(cred.Bytes(), seed)
}

// storeSecrets seals secrets into the store and puts open values beside them (nil takes
// one away), with the account and the machine it lives on.
func (e *Engine) storeSecrets(ctx context.Context, secrets, open map[string][]byte) error {
	return e.Store.Update(ctx, func(tx Tx) error {
		if err := e.putSecrets(tx, secrets); err != nil {
			return err
		}
		for name, value := range open {
			set := func() error { return tx.Put(TableSetting, name, value) }
			if value == nil {
				set = func() error { return tx.Delete(TableSetting, name) }
			}
			if err := set(); err != nil {
				return err
			}
		}
		if err := tx.Put(TableSetting, settingHost, []byte(e.Host)); err != nil {
			return err
		}
		return e.saveAccount(tx)
	})
}

func (e *Engine) putSecrets(tx Tx, secrets map[string][]byte) error {
	for name, secret := range secrets {
		sealed, err := seal(e.Random, e.SealKey, name, secret)
		if err != nil {
			return err
		}
		if err := tx.Put(TableSetting, name, sealed); err != nil {
			return err
		}
	}
	return nil
}

// secret opens one of the profile's sealed secrets; nil when it has none. The
// caller wipes it.
func (e *Engine) secret(ctx context.Context, name string) (plain []byte, err error) {
	err = e.Store.View(ctx, func(tx Tx) error {
		sealed, err := tx.Get(TableSetting, name)
		if err != nil || sealed == nil {
			return err
		}
		plain, err = unseal(e.SealKey, name, sealed)
		return err
	})
	return plain, err
}

// HoldsKey reports whether this device can sign for the account without the
// phrase.
func (e *Engine) HoldsKey(ctx context.Context) (bool, error) {
	b, err := e.secret(ctx, settingNode)
	clear(b)
	return b != nil, err
}

// node is the account's node: the sealed one, or that of words, which must be
// this account's (ErrNoKey).
func (e *Engine) node(ctx context.Context, words *phrase.Phrase) (phrase.Account, error) {
	if words != nil {
		n, err := words.Account()
		if err != nil {
			return n, err
		}
		if id, err := n.PublicKey(); err != nil || id != e.account.Identity {
			n.Wipe()
			return phrase.Account{}, errors.Join(fmt.Errorf("%w: the phrase is another account's", ErrNoKey), err)
		}
		return n, nil
	}
	b, err := e.secret(ctx, settingNode)
	if err != nil {
		return phrase.Account{}, err
	}
	if b == nil {
		return phrase.Account{}, ErrNoKey
	}
	defer clear(b)
	return phrase.ParseAccount(b)
}

// publishProfile puts the signed public line of an account into the directory, and
// stores the account as it is from then on.
func (e *Engine) publishProfile(ctx context.Context, node phrase.Account, a account) error {
	key, err := node.Identity()
	if err != nil {
		return err
	}
	defer key.Wipe()
	rec, err := identity.SignUsername(identity.UsernameFields{
		Identity: a.Identity, Username: a.Username, Version: a.Profile, IssuedAt: uint64(e.Now().Unix()),
		Profile: identity.PublicProfile{DisplayName: a.Name, About: a.About},
	}, key)
	if err != nil {
		return err
	}
	if err := e.client.PutProfile(ctx, rec.Bytes()); err != nil {
		return e.fail(ctx, err)
	}
	return e.Store.Update(ctx, func(tx Tx) error {
		if err := tx.Put(TableSetting, settingProfile, rec.Bytes()); err != nil {
			return err
		}
		if a.Ready { // else its snapshot was put with this name already
			if err := tx.Put(TableSetting, settingDirty, []byte{1}); err != nil {
				return err
			}
		}
		return put(tx, TableSetting, settingAccount, a)
	})
}

// SetProfile changes name (1 to identity.MaxDisplayName bytes), about (at most
// identity.MaxAbout bytes) and username. A device without the account's key needs the
// phrase (ErrNoKey, identity.ErrFormat; [delivery.CodeConflict] when the username is
// taken). One that was interrupted may be done again.
func (e *Engine) SetProfile(ctx context.Context, name, about, username string, words *phrase.Phrase) error {
	node, err := e.node(ctx, words)
	if err != nil {
		return err
	}
	defer node.Wipe()
	if username != "" {
		if username, err = identity.NormalizeUsername(username); err != nil {
			return err
		}
	}
	if name == "" {
		return fmt.Errorf("%w: a name has 1 to %d bytes", identity.ErrFormat, identity.MaxDisplayName)
	}
	published, err := e.publishedProfile(ctx)
	if err != nil {
		return err
	}
	a := e.self()
	a.Name, a.About, a.Username, a.Profile = name, about, username, max(a.Profile, published)+1
	if err := e.publishProfile(ctx, node, a); err != nil {
		return err
	}
	e.takeName(a)
	if err := e.flushSnapshot(ctx); err != nil {
		return err
	}
	return e.tellName(ctx)
}

// publishedProfile is the version of the account's line in the directory, 0 when it has
// none: another device of the account may have changed it, or this one, before it was
// interrupted.
func (e *Engine) publishedProfile(ctx context.Context) (uint64, error) {
	f, err := e.lineOf(ctx, e.account.Identity)
	return f.Version, err
}
