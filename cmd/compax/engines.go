package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/askucher/compax-core/delivery/client/native"
	"github.com/askucher/compax-core/identity/phrase"
	"github.com/askucher/compax-core/internal/durable"
	"github.com/askucher/compax-core/sdk"
	"github.com/askucher/compax-core/sdk/local"
	"github.com/askucher/compax-core/sdk/sqlitestore"
)

type newAccount struct{ server, name, username string }

// engines makes and opens profiles: real ones outside tests of the commands.
type engines struct {
	create  func(ctx context.Context, a *app, profile, dir string, n newAccount) (local.Self, phrase.Phrase, error)
	restore func(ctx context.Context, a *app, profile, dir, server string, words phrase.Phrase) (local.Self, error)
	link    func(ctx context.Context, a *app, profile, dir, ticket string, wait bool, offered func(offer string) error) (local.Self, error)
	own     func(ctx context.Context, a *app, profile, dir string) (local.Profile, io.Closer, error)
}

// onDisk are the profiles on this machine: a SQLite file, and beside it the key
// that its secrets lie under.
var onDisk = engines{create: create, restore: restore, link: link, own: own}

// open opens a profile, or finds the process that has it.
func (a *app) open(ctx context.Context, profile, dir string) (*local.Handle, error) {
	return local.Open(ctx, local.Config{
		Dir: dir,
		Own: func(ctx context.Context) (local.Profile, io.Closer, error) {
			return a.engines.own(ctx, a, profile, dir)
		},
		Busy:    func(err error) bool { return errors.Is(err, sqlitestore.ErrLocked) },
		Explain: explain,
	})
}

func own(ctx context.Context, a *app, profile, dir string) (local.Profile, io.Closer, error) {
	c, err := a.engineConfig(ctx, dir, false)
	if err != nil {
		return nil, nil, err
	}
	c.Left = takeLeft(dir)
	e, err := sdk.Open(ctx, c)
	if err != nil {
		return nil, nil, errors.Join(err, c.Store.Close())
	}
	return local.OverEngine(e, profile), openProfile{e, dir}, nil
}

func create(ctx context.Context, a *app, profile, dir string, n newAccount) (local.Self, phrase.Phrase, error) {
	c, err := a.engineConfig(ctx, dir, true)
	if err != nil {
		return local.Self{}, phrase.Phrase{}, err
	}
	e, words, err := sdk.Create(ctx, c, sdk.NewAccount{Server: n.server, Name: n.name, Username: n.username})
	if err != nil {
		return local.Self{}, words, errors.Join(err, c.Store.Close())
	}
	// The account is there, and its phrase must be shown whatever ends ctx now.
	self, err := local.OverEngine(e, profile).Self(context.WithoutCancel(ctx), local.None{})
	return self, words, errors.Join(err, openProfile{e, dir}.Close())
}

func restore(ctx context.Context, a *app, profile, dir, server string, words phrase.Phrase) (local.Self, error) {
	e, err := returned(ctx, a, dir, server, words)
	if errors.Is(err, sdk.ErrRevoked) {
		// The device that an earlier try has made was ended by its owner: there is
		// nothing in the folder, and no use for it.
		if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
			return local.Self{}, err
		}
		e, err = returned(ctx, a, dir, server, words)
	}
	if err != nil {
		return local.Self{}, err
	}
	self, err := local.OverEngine(e, profile).Self(ctx, local.None{})
	return self, errors.Join(err, openProfile{e, dir}.Close())
}

func returned(ctx context.Context, a *app, dir, server string, words phrase.Phrase) (*sdk.Engine, error) {
	c, err := a.engineConfig(ctx, dir, true)
	if err != nil {
		return nil, err
	}
	e, err := sdk.Restore(ctx, c, server, words)
	if err != nil {
		return nil, errors.Join(err, c.Store.Close())
	}
	return e, nil
}

// link makes a profile a further device: it shows its offer and waits until that
// was approved. Run again on the same profile it goes on with the same offer.
func link(ctx context.Context, a *app, profile, dir, ticket string, wait bool, offered func(offer string) error) (local.Self, error) {
	c, err := a.engineConfig(ctx, dir, true)
	if err != nil {
		return local.Self{}, err
	}
	e, err := waitForLink(ctx, c, ticket, wait, offered)
	if err != nil {
		return local.Self{}, errors.Join(err, c.Store.Close())
	}
	self, err := local.OverEngine(e, profile).Self(ctx, local.None{})
	return self, errors.Join(err, openProfile{e, dir}.Close())
}

// linkPoll is how often a new device asks whether it was approved.
const linkPoll = 2 * time.Second

func waitForLink(ctx context.Context, c sdk.Config, ticket string, wait bool, offered func(offer string) error) (*sdk.Engine, error) {
	offer, err := sdk.Link(ctx, c, ticket)
	if err != nil {
		return nil, err
	}
	if err := offered(offer); err != nil {
		return nil, err
	}
	t := time.NewTicker(linkPoll)
	defer t.Stop()
	for {
		e, err := sdk.FinishLink(ctx, c)
		if !wait || !errors.Is(err, sdk.ErrWaiting) {
			return e, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		case <-t.C:
		}
	}
}

// engineConfig opens the store of a profile and what an engine needs beside it.
func (a *app) engineConfig(ctx context.Context, dir string, create bool) (sdk.Config, error) {
	store, err := sqlitestore.Open(ctx, filepath.Join(dir, storeFile))
	if err != nil {
		return sdk.Config{}, err
	}
	key, err := sealKey(filepath.Join(dir, sealFile), create)
	if err != nil {
		return sdk.Config{}, errors.Join(err, store.Close())
	}
	return sdk.Config{
		Store: store, Transport: native.New(), SealKey: key, Random: rand.Reader, Now: a.now, Host: host(),
		Warn: a.warn, CatchingUp: a.catchingUp,
	}, nil
}

// warn tells of what goes wrong beside what was asked, in a sentence for a person.
func (a *app) warn(format string, args ...any) {
	for i, arg := range args {
		if err, isErr := arg.(error); isErr {
			args[i] = explain(err).Detail
		}
	}
	a.say("%s", a.indented("compax: "+clean(fmt.Sprintf(format, args...)), "  "))
}

// sealKey reads the key that a profile's secrets lie under, and with create makes
// it when there is none: durably, before anything is sealed under it. It is called
// with the store's lock held.
func sealKey(path string, create bool) ([]byte, error) {
	key, err := os.ReadFile(path)
	if create && errors.Is(err, fs.ErrNotExist) {
		key = make([]byte, sdk.SealKeySize)
		if _, err := rand.Read(key); err != nil {
			return nil, err
		}
		return key, durable.Create(path, key)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", sdk.ErrSeal, err)
	}
	if len(key) != sdk.SealKeySize {
		return nil, fmt.Errorf("%w: %s has %d bytes, not %d", sdk.ErrSeal, path, len(key), sdk.SealKeySize)
	}
	return key, nil
}

// host names this machine, so that a copied profile is noticed: by what the
// system was given at its installation, else by its name.
func host() string {
	for _, path := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		if id, err := os.ReadFile(path); err == nil && len(strings.TrimSpace(string(id))) > 0 {
			return strings.TrimSpace(string(id))
		}
	}
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}
