package sdk

import (
	"context"
	"crypto/ecdh"
	"crypto/hpke"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/identity/phrase"
)

// What an account keeps sealed at the service, its snapshot and its history, is
// sealed under a key of a generation. Each revocation of a device raises the
// generation by one, so that devices which revoke at the same time come to the
// same key, and nothing has to be agreed upon. The account's node derives every
// generation; a device without it holds those that were wrapped to it, signed by
// the identity. Nothing is sealed under a generation before it was wrapped to
// every device that is left.

const (
	settingArchive    = "secret.archive"      // the key of generation 1; later ones have their number behind it
	settingGeneration = "archive.generation"  // under which this device seals
	settingDue        = "archive.due"         // which one a revocation on this device made due
	settingWraps      = "archive.wraps"       // wrapped keys that are still to be given to the service
	settingSnapshotOf = "snapshot.generation" // the highest of a snapshot that this device read or wrote
	wrapInfo          = "compax-archive-wrap-v1"

	// keptGenerations is how many of the latest generations a device is given when
	// it is linked, beside the first, which names the segments of history.
	keptGenerations = 63
)

// errKeys: the account revoked a device, and this one was not given the key of
// afterwards yet. It comes with the next sync of a device that holds the
// account's key, or when the phrase is typed.
var errKeys = errors.New("sdk: this device waits for the account's new archive key")

func archiveSetting(generation uint64) string {
	if generation == 1 {
		return settingArchive
	}
	return settingArchive + "." + strconv.FormatUint(generation, 10)
}

func number(tx Tx, name string) (uint64, error) {
	b, err := tx.Get(TableSetting, name)
	if err != nil || b == nil {
		return 0, err
	}
	n, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("sdk: the stored %s is no number", name)
	}
	return n, nil
}

func putNumber(tx Tx, name string, n uint64) error {
	return tx.Put(TableSetting, name, strconv.AppendUint(nil, n, 10))
}

// generations gives the generation under which this device seals, and the one that
// the revocations of the account's devices demand.
func (e *Engine) generations(ctx context.Context) (held, owed uint64, err error) {
	err = e.Store.View(ctx, func(tx Tx) error {
		if held, err = number(tx, settingGeneration); err != nil {
			return err
		}
		owed, err = e.owedGeneration(tx)
		return err
	})
	return max(held, 1), owed, err
}

func (e *Engine) owedGeneration(tx Tx) (owed uint64, err error) {
	due, err := number(tx, settingDue)
	if err != nil {
		return 0, err
	}
	owed = 1
	err = tx.Scan(TableRevoked, e.account.Identity.String()+"/", "", func(string, []byte) (bool, error) {
		owed++
		return true, nil
	})
	return max(owed, due), err
}

// archiveKey is the key of a generation, nil when this device does not hold it.
// The caller wipes it.
func (e *Engine) archiveKey(ctx context.Context, generation uint64) ([]byte, error) {
	key, err := e.secret(ctx, archiveSetting(generation))
	if err != nil || key != nil {
		return key, err
	}
	node, err := e.node(ctx, nil)
	if errors.Is(err, ErrNoKey) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer node.Wipe()
	return node.ArchiveKey(generation)
}

// sealFor seals something of the account under the present archive key: header ‖
// nonce[12] ‖ AES-256-GCM, with header, purpose and name as associated data
// (errKeys).
func (e *Engine) sealFor(ctx context.Context, purpose, name string, plain []byte) (sealed []byte, generation uint64, err error) {
	held, owed, err := e.generations(ctx)
	if err != nil {
		return nil, 0, err
	}
	if held < owed {
		return nil, 0, errKeys
	}
	key, err := e.archiveKey(ctx, held)
	if err != nil {
		return nil, 0, err
	}
	if key == nil {
		return nil, 0, errKeys
	}
	defer clear(key)
	a, err := gcm(key, purpose)
	if err != nil {
		return nil, 0, err
	}
	out := delivery.AppendSealedHeader(make([]byte, 0, delivery.SealedHeaderSize+a.NonceSize()+len(plain)+a.Overhead()), held)
	nonce := out[len(out) : len(out)+a.NonceSize()]
	if _, err := io.ReadFull(e.Random, nonce); err != nil {
		return nil, 0, fmt.Errorf("sdk: random bytes for a nonce: %w", err)
	}
	aad := append(append([]byte(nil), out...), purpose+"\x00"+name...)
	return a.Seal(out[:len(out)+len(nonce)], nonce, plain, aad), held, nil
}

// openFor opens what sealFor made, also on another device of the account (ErrSeal;
// errKeys when its key is not here).
func (e *Engine) openFor(ctx context.Context, purpose, name string, sealed []byte) (plain []byte, generation uint64, err error) {
	generation, err = delivery.SealedGeneration(sealed)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %s names no generation", ErrSeal, purpose)
	}
	key, err := e.archiveKey(ctx, generation)
	if err != nil {
		return nil, generation, err
	}
	if key == nil {
		return nil, generation, errKeys
	}
	defer clear(key)
	a, err := gcm(key, purpose)
	if err != nil {
		return nil, generation, err
	}
	header, rest := sealed[:delivery.SealedHeaderSize], sealed[delivery.SealedHeaderSize:]
	if len(rest) < a.NonceSize() {
		return nil, generation, fmt.Errorf("%w: %s is cut short", ErrSeal, purpose)
	}
	aad := append(append([]byte(nil), header...), purpose+"\x00"+name...)
	if plain, err = a.Open(nil, rest[:a.NonceSize()], rest[a.NonceSize():], aad); err != nil {
		return nil, generation, fmt.Errorf("%w: %s of generation %d", ErrSeal, purpose, generation)
	}
	return plain, generation, nil
}

// wrapFor wraps the key of a generation to a device and signs it.
func wrapFor(node phrase.Account, cred identity.Credential, generation uint64) (delivery.WrappedKey, error) {
	out := delivery.WrappedKey{Device: cred.DeviceID(), Generation: generation}
	sealed, err := sealKey(node, cred, generation)
	if err != nil {
		return out, err
	}
	key, err := node.Identity()
	if err != nil {
		return out, err
	}
	defer key.Wipe()
	signed, err := identity.SignWrappedKey(identity.WrappedKeyFields{
		Identity: cred.Identity(), DeviceID: cred.DeviceID(), Generation: generation, Sealed: sealed,
	}, key)
	if err != nil {
		return out, err
	}
	out.Wrapped = signed.Bytes()
	return out, nil
}

// sealKey encrypts the key of a generation to a device: HPKE base mode,
// DHKEM(X25519), HKDF-SHA256, AES-256-GCM, bound to the whole attestation and the
// generation.
func sealKey(node phrase.Account, cred identity.Credential, generation uint64) ([]byte, error) {
	hpkeKey := cred.Attestation().DeviceHPKE
	raw, err := ecdh.X25519().NewPublicKey(hpkeKey[:])
	if err != nil {
		return nil, fmt.Errorf("%w: the device's HPKE key: %w", ErrCode, err)
	}
	pub, err := hpke.NewDHKEMPublicKey(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: the device's HPKE key: %w", ErrCode, err)
	}
	secret, err := node.ArchiveKey(generation)
	if err != nil {
		return nil, err
	}
	defer clear(secret)
	sealed, err := hpke.Seal(pub, hpke.HKDFSHA256(), hpke.AES256GCM(), wrapContext(cred, generation), secret)
	if err != nil {
		return nil, fmt.Errorf("sdk: wrap a key: %w", err)
	}
	return sealed, nil
}

func wrapContext(cred identity.Credential, generation uint64) []byte {
	return binary.BigEndian.AppendUint64(cred.Attestation().AppendTo([]byte(wrapInfo)), generation)
}

// unwrap opens what wrapFor made for this device. What the account did not sign is
// no key: whoever knows a device could have it seal under a key of theirs.
func (e *Engine) unwrap(ctx context.Context, generation uint64, wrapped []byte) ([]byte, error) {
	u, err := identity.ParseWrappedKey(wrapped)
	if err != nil {
		return nil, err
	}
	signed, err := u.Verify()
	if err != nil {
		return nil, err
	}
	f := signed.Fields()
	if f.Identity != e.account.Identity || f.DeviceID != e.account.Device || f.Generation != generation {
		return nil, fmt.Errorf("%w: a key that is wrapped for another device or generation", identity.ErrKey)
	}
	secret, err := e.secret(ctx, settingHPKE)
	if err != nil {
		return nil, err
	}
	defer clear(secret)
	raw, err := ecdh.X25519().NewPrivateKey(secret)
	if err != nil {
		return nil, fmt.Errorf("sdk: the device's HPKE key: %w", err)
	}
	key, err := hpke.NewDHKEMPrivateKey(raw)
	if err != nil {
		return nil, fmt.Errorf("sdk: the device's HPKE key: %w", err)
	}
	out, err := hpke.Open(key, hpke.HKDFSHA256(), hpke.AES256GCM(), wrapContext(e.cred, generation), f.Sealed)
	if err != nil || len(out) != 32 {
		return nil, fmt.Errorf("%w: the archive key is not wrapped for this device", ErrSeal)
	}
	return out, nil
}

// takeKeys stores the archive keys that other devices wrapped to this one, and
// seals under the latest from then on. It tells how many are here.
func (e *Engine) takeKeys(ctx context.Context) (found int, err error) {
	list, err := e.client.WrappedKeys(ctx)
	if err != nil {
		return 0, e.fail(ctx, err)
	}
	latest := uint64(0)
	secrets := map[string][]byte{}
	defer func() {
		for _, s := range secrets {
			clear(s)
		}
	}()
	for _, k := range list {
		key, err := e.unwrap(ctx, k.Generation, k.Wrapped)
		if err != nil {
			e.Warn("an archive key that the service shows is passed over: %v", err)
			continue
		}
		secrets[archiveSetting(k.Generation)] = key
		latest = max(latest, k.Generation)
	}
	if latest == 0 {
		return 0, nil
	}
	return len(secrets), e.Store.Update(ctx, func(tx Tx) error {
		if err := e.putSecrets(tx, secrets); err != nil {
			return err
		}
		return e.sealFrom(tx, latest)
	})
}

// sealFrom notes that this device seals under a generation, unless it does under a
// later one.
func (e *Engine) sealFrom(tx Tx, generation uint64) error {
	held, err := number(tx, settingGeneration)
	if err != nil || held >= generation {
		return err
	}
	if err := putNumber(tx, settingGeneration, generation); err != nil {
		return err
	}
	return tx.Put(TableSetting, settingDirty, []byte{1})
}

// giveKeys wraps generations to every device of a list. It only computes.
func giveKeys(node phrase.Account, devices []identity.Credential, from, to uint64) (out []delivery.WrappedKey, err error) {
	for g := from; g <= to; g++ {
		for _, cred := range devices {
			w, err := wrapFor(node, cred, g)
			if err != nil {
				return nil, err
			}
			out = append(out, w)
		}
	}
	return out, nil
}

// settleKeys goes on with what a revocation began, here or on another device: the
// service is told of it, the new archive key reaches every device that is left,
// and this one seals under it. node is nil when the phrase was not typed now.
// Nothing to do costs nothing. errKeys when it is another device's turn.
func (e *Engine) settleKeys(ctx context.Context, node *phrase.Account) error {
	held, owed, err := e.generations(ctx)
	if err != nil || held >= owed {
		return err
	}
	devices, err := e.tellRevocations(ctx)
	if err != nil {
		return err
	}
	if held, owed, err = e.generations(ctx); err != nil {
		return err
	}
	if node == nil {
		own, err := e.node(ctx, nil)
		if err != nil && !errors.Is(err, ErrNoKey) {
			return err
		}
		if err == nil {
			defer own.Wipe()
			node = &own
		}
	}
	if node != nil && held < owed {
		if err := e.raise(ctx, *node, devices, held+1, owed); err != nil {
			return err
		}
	}
	if err := e.giveWraps(ctx); err != nil {
		return err
	}
	if held, owed, err = e.generations(ctx); err != nil || held >= owed {
		return err
	}
	if _, err := e.takeKeys(ctx); err != nil {
		return err
	}
	if held, owed, err = e.generations(ctx); err == nil && held < owed {
		err = errKeys
	}
	return err
}

// tellRevocation tells the service of one revocation, kept under key, and drops one
// that it refuses: that names a device of somebody else, ends nothing and counts
// nowhere.
func (e *Engine) tellRevocation(ctx context.Context, key string, raw []byte) error {
	err := e.client.Revoke(ctx, raw)
	if delivery.CodeOf(err) == delivery.CodeRefused {
		err = e.Store.Update(ctx, func(tx Tx) error { return tx.Delete(TableRevoked, key) })
	}
	if err != nil {
		return e.fail(ctx, err)
	}
	return nil
}

// tellRevocations tells the service of revocations that it does not know, and gives
// the devices that are left.
func (e *Engine) tellRevocations(ctx context.Context) ([]identity.Credential, error) {
	list, told, err := e.listDevices(ctx)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, d := range told {
		known[d.String()] = true
	}
	prefix := e.account.Identity.String() + "/"
	untold := map[string][]byte{}
	gone := map[string]bool{}
	err = e.Store.View(ctx, func(tx Tx) error {
		return tx.Scan(TableRevoked, prefix, "", func(key string, raw []byte) (bool, error) {
			gone[key[len(prefix):]] = true
			if !known[key[len(prefix):]] {
				untold[key] = raw
			}
			return true, nil
		})
	})
	if err != nil {
		return nil, err
	}
	for key, raw := range untold {
		if err := e.tellRevocation(ctx, key, raw); err != nil {
			return nil, err
		}
	}
	var left []identity.Credential
	for _, d := range list {
		if !gone[d.Device.String()] {
			left = append(left, d.cred)
		}
	}
	return left, nil
}

// raise stores the keys of generations with their wrapped forms, all at once:
// from then on a crash loses nothing of it.
func (e *Engine) raise(ctx context.Context, node phrase.Account, devices []identity.Credential, from, to uint64) error {
	wraps, err := giveKeys(node, devices, from, to)
	if err != nil {
		return err
	}
	return e.Store.Update(ctx, func(tx Tx) error { return e.putRaise(tx, node, wraps, from, to) })
}

func (e *Engine) putRaise(tx Tx, node phrase.Account, wraps []delivery.WrappedKey, from, to uint64) error {
	for g := from; g <= to; g++ {
		key, err := node.ArchiveKey(g)
		if err != nil {
			return err
		}
		err = e.putSecrets(tx, map[string][]byte{archiveSetting(g): key})
		clear(key)
		if err != nil {
			return err
		}
	}
	if err := putNumber(tx, settingDue, to); err != nil {
		return err
	}
	return put(tx, TableSetting, settingWraps, wraps)
}

// giveWraps gives the service the wrapped keys that wait, and seals under the
// latest of them when all are there.
func (e *Engine) giveWraps(ctx context.Context) error {
	var raw []byte
	err := e.Store.View(ctx, func(tx Tx) (err error) {
		raw, err = tx.Get(TableSetting, settingWraps)
		return err
	})
	if err != nil || raw == nil {
		return err
	}
	var wraps []delivery.WrappedKey
	if err := json.Unmarshal(raw, &wraps); err != nil {
		return fmt.Errorf("sdk: the stored wrapped keys cannot be read: %w", err)
	}
	latest := uint64(0)
	for _, w := range wraps {
		err := e.client.PutWrappedKey(ctx, w)
		if code := delivery.CodeOf(err); code == delivery.CodeNotFound || code == delivery.CodeTooLarge {
			if code == delivery.CodeTooLarge {
				e.Warn("a device of this account gets no more archive keys: %v", err)
			}
			err = nil // revoked in the meantime, or it has as many as it may
		}
		if err != nil {
			return e.fail(ctx, err)
		}
		latest = max(latest, w.Generation)
	}
	return e.Store.Update(ctx, func(tx Tx) error {
		now, err := tx.Get(TableSetting, settingWraps)
		if err != nil || string(now) != string(raw) {
			return err // another revocation began: the next round goes on with it
		}
		if err := tx.Delete(TableSetting, settingWraps); err != nil {
			return err
		}
		return e.sealFrom(tx, latest)
	})
}

// settled is settleKeys for who has something else to do as well: waiting for
// another device is told once and is no error.
func (e *Engine) settled(ctx context.Context) error {
	err := e.settleKeys(ctx, nil)
	if errors.Is(err, errKeys) {
		if !e.keysWarned.Swap(true) {
			e.Warn("a device of this account was revoked, and this one was not given the new key of its archive yet: it comes when a device with the account's key is used, or the phrase is typed (compax devices revoke, again)")
		}
		return nil
	}
	return err
}
