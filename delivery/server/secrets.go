package server

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/mls/suite"
)

// secrets are the deployment's own keys. None of them opens a message: one
// signs the home's proposals, one authenticates what the service says to
// itself through its clients.
type secrets struct {
	sender   *suite.SignatureKey
	mac      []byte
	born     time.Time // since when nonces are remembered
	restored time.Time // when the present incarnation began
}

// The settings.
const (
	settingSender = "sender-key"
	settingMAC    = "mac-key"
	settingNonces = "nonces-since" // decimal, Unix milliseconds
	// settingIncarnation is how many restores there were and when the last one
	// was, in Unix milliseconds: two decimals and a space.
	settingIncarnation = "incarnation"
)

func loadSecrets(ctx context.Context, c Config) (secrets, error) {
	var s secrets
	ed, err := suite.Lookup(suite.X25519AES128GCMSHA256Ed25519)
	if err != nil {
		return s, err
	}
	fresh, err := ed.GenerateSignatureKey(c.Random)
	if err != nil {
		return s, err
	}
	private, err := c.Store.InitSetting(ctx, settingSender, fresh.Private())
	if err != nil {
		return s, err
	}
	if s.sender, err = ed.NewSignatureKey(private); err != nil {
		return s, err
	}
	random := make([]byte, 32)
	if _, err := io.ReadFull(c.Random, random); err != nil {
		return s, err
	}
	if s.mac, err = c.Store.InitSetting(ctx, settingMAC, random); err != nil {
		return s, err
	}
	now := c.Now()
	since, err := c.Store.InitSetting(ctx, settingNonces, strconv.AppendInt(nil, now.UnixMilli(), 10))
	if err != nil {
		return s, err
	}
	ms, err := strconv.ParseInt(string(since), 10, 64)
	if err != nil {
		return s, fmt.Errorf("setting %s: %w", settingNonces, err)
	}
	s.born = time.UnixMilli(ms)
	_, s.restored, err = incarnation(ctx, c.Store)
	return s, err
}

// incarnation says how many restores there were, and when the last one was.
func incarnation(ctx context.Context, store delivery.Store) (n uint32, since time.Time, err error) {
	v, err := store.InitSetting(ctx, settingIncarnation, []byte("0 0"))
	if err != nil {
		return 0, since, err
	}
	var ms int64
	if _, err := fmt.Sscanf(string(v), "%d %d", &n, &ms); err != nil {
		return 0, since, fmt.Errorf("setting %s: %w", settingIncarnation, err)
	}
	return n, time.UnixMilli(ms), nil
}

// StartIncarnation is what a restore from a backup ends with, before anything
// is served: the store's rooms jump and wait to be healed, sessions are gone,
// and every envelope from before counts as used.
func StartIncarnation(ctx context.Context, store delivery.Store, now time.Time) error {
	n, _, err := incarnation(ctx, store)
	if err != nil {
		return err
	}
	if err := store.StartIncarnation(ctx, now.UnixMilli()); err != nil {
		return err
	}
	if err := store.PutSetting(ctx, settingNonces, strconv.AppendInt(nil, now.UnixMilli(), 10)); err != nil {
		return err
	}
	return store.PutSetting(ctx, settingIncarnation, fmt.Appendf(nil, "%d %d", n+1, now.UnixMilli()))
}

// Incarnation says how many restores a store has had, and when the last one was.
func Incarnation(ctx context.Context, store delivery.Store) (n uint32, since time.Time, err error) {
	return incarnation(ctx, store)
}

// BeginHealing counts the wait of a restored store's rooms for their members
// from now, when they can come, instead of from the restore. It belongs before
// the first start after [StartIncarnation].
func BeginHealing(ctx context.Context, store delivery.Store, now time.Time) error {
	n, _, err := incarnation(ctx, store)
	if err != nil || n == 0 {
		return err
	}
	return store.PutSetting(ctx, settingIncarnation, fmt.Appendf(nil, "%d %d", n, now.UnixMilli()))
}

// seal is a MAC of the deployment over parts, each for one purpose.
func (s *secrets) seal(purpose string, parts ...[]byte) []byte {
	m := hmac.New(sha256.New, s.mac)
	m.Write([]byte(purpose))
	m.Write([]byte{0})
	for _, p := range parts {
		m.Write(p)
	}
	return m.Sum(nil)
}
