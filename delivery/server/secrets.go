package server

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
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
	sender  *suite.SignatureKey
	mac     []byte
	born    time.Time // since when nonces are remembered
	present restore
}

// The settings.
const (
	settingSender = "sender-key"
	settingMAC    = "mac-key"
	settingNonces = "nonces-since" // decimal, Unix milliseconds
	// settingIncarnation is how many restores there were, when the last one was, in
	// Unix milliseconds, and its marker: four decimals with spaces between.
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
	s.present, err = incarnation(ctx, c.Store)
	return s, err
}

// restore is the present incarnation.
type restore struct {
	n      uint32 // how many restores there were
	since  time.Time
	marker delivery.Marker
}

func (r restore) String() string {
	return fmt.Sprintf("%d %d %d %d", r.n, r.since.UnixMilli(), r.marker.Jump, r.marker.BackupMS)
}

// incarnation says how many restores there were, and when and of what the last one was.
func incarnation(ctx context.Context, store delivery.Store) (r restore, err error) {
	v, err := store.Setting(ctx, settingIncarnation)
	if errors.Is(err, delivery.ErrNotFound) {
		v, err = []byte("0 0"), nil
	}
	if err != nil {
		return r, err
	}
	var ms int64
	r.marker.Jump = delivery.IncarnationJump
	got, err := fmt.Sscanf(string(v), "%d %d %d %d", &r.n, &ms, &r.marker.Jump, &r.marker.BackupMS)
	if err != nil && got != 2 { // two: of a store that was never restored
		return r, fmt.Errorf("setting %s: %w", settingIncarnation, err)
	}
	r.since = time.UnixMilli(ms)
	return r, nil
}

// StartIncarnation is what a restore from a backup ends with, before anything
// is served: the store's rooms jump and wait to be healed, sessions are gone,
// and every envelope from before counts as used.
func StartIncarnation(ctx context.Context, store delivery.Store, now time.Time) error {
	r, err := incarnation(ctx, store)
	if err != nil {
		return err
	}
	born, err := store.InitSetting(ctx, settingNonces, strconv.AppendInt(nil, now.UnixMilli(), 10))
	if err != nil {
		return err
	}
	since, err := strconv.ParseInt(string(born), 10, 64)
	if err != nil {
		return fmt.Errorf("setting %s: %w", settingNonces, err)
	}
	r.n, r.since = r.n+1, now
	_, err = store.StartIncarnation(ctx, since, now.UnixMilli(), func(m delivery.Marker) (map[string][]byte, error) {
		r.marker = m
		return map[string][]byte{
			settingNonces:      strconv.AppendInt(nil, now.UnixMilli(), 10),
			settingIncarnation: []byte(r.String()),
		}, nil
	})
	return err
}

// Incarnation says how many restores a store has had, and when the last one was.
func Incarnation(ctx context.Context, store delivery.Store) (n uint32, since time.Time, err error) {
	r, err := incarnation(ctx, store)
	return r.n, r.since, err
}

// BeginHealing counts the wait of a restored store's rooms for their members
// from now, when they can come, instead of from the restore. It belongs before
// the first start after [StartIncarnation].
func BeginHealing(ctx context.Context, store delivery.Store, now time.Time) error {
	r, err := incarnation(ctx, store)
	if err != nil || r.n == 0 {
		return err
	}
	r.since = now
	return store.PutSetting(ctx, settingIncarnation, []byte(r.String()))
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
