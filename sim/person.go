package sim

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/identity/phrase"
	"github.com/askucher/compax-core/sdk"
	"github.com/askucher/compax-core/sdk/sqlitestore"
)

// person is somebody with one account and any number of devices.
type person struct {
	name    string
	id      identity.PublicKey
	words   phrase.Phrase
	devices []*device
	bought  int // devices, with those whose setting up failed
	bot     bool
}

// device is one profile and, while its process lives, an engine over it.
type device struct {
	label  string
	owner  *person
	path   string
	id     identity.DeviceID
	store  *sqlitestore.Store
	crash  *crashing
	engine *sdk.Engine // nil = not running
	away   int         // steps until it is used again
	gone   bool        // lost or revoked for good
	busy   bool        // in the middle of an action
	host   string      // the machine
	left   sdk.Left    // of the session before the next start
	pair   *pair       // with a copy of the same profile, while both are in use
	copied bool        // its profile was copied at some time
	told   bool        // since then it has told its user so
	cut    bool        // its process has stopped because a copy is in use

	answered map[content.MessageID]bool // by a bot's process
}

func (d *device) String() string { return d.label }

// server is where everybody has an account; the network never looks at it.
const serverURL = "http://sim.example"

func (w *World) config(d *device) sdk.Config {
	d.crash = &crashing{Store: d.store}
	return sdk.Config{
		Store: d.crash, Transport: sending{w.network, w, d}, SealKey: make([]byte, sdk.SealKeySize), Random: w.secret, Now: w.clock.Now,
		Host: d.host, Left: d.left, Sleep: noSleep, Warn: func(format string, args ...any) { w.notice(d, format, args...) },
	}
}

func (w *World) newDevice(ctx context.Context, p *person) (*device, error) {
	p.bought++
	label := fmt.Sprintf("%s%d", p.name, p.bought)
	d := &device{label: label, owner: p, host: "host of " + label, path: filepath.Join(w.dir, label+".db"), answered: map[content.MessageID]bool{}}
	var err error
	if d.store, err = sqlitestore.Open(ctx, d.path); err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	w.closers = append(w.closers, func() error { return d.store.Close() })
	return d, nil
}

// newPerson makes an account; the network is kind to newcomers.
func (w *World) newPerson(ctx context.Context, name string, bot bool) error {
	p := &person{name: name, bot: bot}
	d, err := w.newDevice(ctx, p)
	if err != nil {
		return err
	}
	d.engine, p.words, err = sdk.Create(ctx, w.config(d), sdk.NewAccount{Server: serverURL, Name: name, Username: name})
	if err != nil {
		return fmt.Errorf("%s makes an account: %w", name, err)
	}
	p.id, d.id = d.engine.Identity(), d.engine.Device()
	p.devices = append(p.devices, d)
	w.people = append(w.people, p)
	return nil
}

// addDevice restores a person's account on a new device from the phrase.
func (w *World) addDevice(ctx context.Context, p *person) error {
	d, err := w.newDevice(ctx, p)
	if err != nil {
		return err
	}
	engine, err := sdk.Restore(ctx, w.config(d), serverURL, p.words)
	if err != nil {
		if w.tolerable(err) {
			return nil // a new device is bought when the network is up
		}
		return fmt.Errorf("%s restores the account: %w", d, err)
	}
	d.engine, d.id = engine, engine.Device()
	w.tally.Further++
	p.devices = append(p.devices, d)
	return nil
}

// boot starts a device's process on what its profile holds.
func (w *World) boot(ctx context.Context, d *device) error {
	engine, err := sdk.Open(ctx, w.config(d))
	if err != nil {
		return fmt.Errorf("%s starts: %w", d, err)
	}
	d.engine, d.cut = engine, false
	return nil
}

// usable lists devices that can act now.
func (w *World) usable() (out []*device) {
	for _, p := range w.people {
		for _, d := range p.devices {
			if !d.gone && d.away == 0 && !p.bot && !d.busy {
				out = append(out, d)
			}
		}
	}
	return out
}

// tolerable is what a person may meet in this world at this time.
func (w *World) tolerable(err error) bool {
	return tolerable(err) || w.mayBeStuck() && errors.Is(err, sdk.ErrStuck)
}

// mayBeStuck reports whether there may be a chat in which a device goes on only when
// somebody whom it knows has changed it: after a restore, and after an absence in which
// nobody it knew did.
func (w *World) mayBeStuck() bool { return w.done || w.tally.Weeks > 0 }

// tolerable reports whether an error is what a person may meet in this world:
// the network, the service, a crash, or a room that went on. Everything else
// is a fault.
func tolerable(err error) bool {
	if errors.Is(err, errCrash) || errors.Is(err, sdk.ErrOut) || errors.Is(err, sdk.ErrNoRoom) || errors.Is(err, sdk.ErrRequest) ||
		errors.Is(err, sdk.ErrRevoked) || errors.Is(err, sdk.ErrNoMessage) || errors.Is(err, sdk.ErrNobody) || isOffline(err) {
		return true
	}
	switch delivery.CodeOf(err) {
	case delivery.CodeRetry, delivery.CodeHealing, delivery.CodeSlowDown, delivery.CodeStaleEpoch, delivery.CodeCommitFirst, delivery.CodeLogIn,
		delivery.CodeRefused, delivery.CodeNotFound, delivery.CodeRevoked, delivery.CodeConflict, delivery.CodeTrimmed:
		return true
	}
	return false
}
