package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/identity/phrase"
	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/suite"
)

// Config is what an engine stands on. All fields but Host and the functions behind it
// are required.
type Config struct {
	Store     Store
	Transport client.Transport
	SealKey   []byte           // SealKeySize bytes, kept apart from the store
	Random    io.Reader        // a cryptographic source, safe for concurrent use
	Now       func() time.Time // this machine's clock
	// Host names the machine. A profile that finds itself on another one was
	// copied: its leaves are replaced before it sends anything.
	Host string
	// Left is what the last process on this profile left of its session (see
	// [Engine.LeaveSession]); without it the engine logs in. Only Open looks at it.
	Left Left
	// Sleep waits; nil waits on a timer.
	Sleep func(ctx context.Context, d time.Duration) error
	// Warn is told of what goes wrong beside what was asked, in one sentence; nil
	// drops it.
	Warn func(format string, args ...any)
	// CatchingUp is told how far this device is with reading a room that it is far
	// behind, after each page of its log (up to 1,000 entries), one room at a time in
	// each call of the engine; nil hears nothing. It must not call the engine.
	CatchingUp func(CatchUp)
}

// Engine is one account on one device. It is safe for concurrent use.
type Engine struct {
	Config
	account account // its name, about, username and version are guarded by mu once it is ready: see self
	device  phrase.Key
	cred    identity.Credential
	client  *client.Client
	mls     *mls.Config

	archivedAt atomic.Int64 // when history was archived last, Unix milliseconds
	keysWarned atomic.Bool  // that this device waits for an archive key

	logins atomic.Uint64 // sessions that this engine has opened

	heard  *heard  // what others do now
	uplink *uplink // what they are told of this person

	life *life

	mail  turn // held while the mailbox is worked through
	mu    sync.Mutex
	rooms map[delivery.RoomID]*room // guarded by mu
	rung  chan struct{}             // guarded by mu; closed and replaced when lines were added
	info  *delivery.Info            // guarded by mu; nil before it was asked for
}

// turn lets one at a time do something that waits for the network. Unlike a
// mutex it can be given up by a context.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) take(ctx context.Context) (done func(), err error) {
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", client.ErrOffline, ctx.Err())
	}
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// account is what a profile knows of itself.
type account struct {
	Server   string             `json:"server"`
	Identity identity.PublicKey `json:"identity"`
	Device   identity.DeviceID  `json:"device"`
	Home     identity.Home      `json:"home"`
	Domain   string             `json:"domain"`
	Name     string             `json:"name"`
	About    string             `json:"about,omitempty"`
	Username string             `json:"username,omitempty"`
	Profile  uint64             `json:"profile"` // version of the public profile
	SelfRoom *delivery.RoomID   `json:"self_room,omitempty"`
	Ready    bool               `json:"ready"` // setting up is complete
	// Returning is an account that came or comes back from its phrase: its device may be
	// known to the service before it is ready, so another try goes on with it.
	Returning bool `json:"returning,omitempty"`
}

const (
	settingAccount    = "account"
	settingNode       = "secret.node"
	settingDevice     = "secret.device"
	settingHPKE       = "secret.hpke"
	settingCredential = "credential"
	settingCounter    = "counter"      // what the service holds
	settingNext       = "counter.next" // what it will hold when a login is answered
	settingHost       = "host"
	settingCopied     = "copied"  // rooms that another copy came into are still to be entered
	settingComing     = "coming." // and the id of a room that this device may have a leaf in by an external commit
	settingSnapshot   = "snapshot.version"
	settingDirty      = "snapshot.dirty"
	settingRevoked    = "revoked"
	settingProfile    = "profile.record"
	settingFounding   = "founding." // and the room's id
	settingTrimmed    = "trimmed."  // and the key of the last entry whose hash it holds
)

func newEngine(c Config) *Engine {
	if c.Sleep == nil {
		c.Sleep = wait
	}
	if c.Warn == nil {
		c.Warn = func(string, ...any) {}
	}
	if c.CatchingUp == nil {
		c.CatchingUp = func(CatchUp) {}
	}
	l := newLife()
	c.Store, c.Transport, c.Sleep = livingStore{c.Store, l}, livingTransport{c.Transport, l}, l.living(c.Sleep)
	return &Engine{Config: c, life: l, mail: newTurn(), rooms: map[delivery.RoomID]*room{}, rung: make(chan struct{}), heard: newHeard(), uplink: newUplink()}
}

// Open opens the account that the store holds (ErrNoAccount, ErrSeal).
func Open(ctx context.Context, c Config) (*Engine, error) {
	e := newEngine(c)
	copied := false
	err := c.Store.View(ctx, func(tx Tx) error {
		found, err := get(tx, TableSetting, settingAccount, &e.account)
		if err != nil {
			return err
		}
		if !found || !e.account.Ready {
			return ErrNoAccount
		}
		host, err := tx.Get(TableSetting, settingHost)
		copied = c.Host != "" && len(host) > 0 && string(host) != c.Host
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := e.beginStored(ctx); err != nil {
		return nil, err
	}
	if copied {
		if err := e.copied(ctx, "this profile was copied from another machine"); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// beginStored begins with the device that the store holds.
func (e *Engine) beginStored(ctx context.Context) error {
	var cred, seed []byte
	err := e.Store.View(ctx, func(tx Tx) (err error) {
		if cred, err = tx.Get(TableSetting, settingCredential); err != nil {
			return err
		}
		sealed, err := tx.Get(TableSetting, settingDevice)
		if err != nil {
			return err
		}
		seed, err = unseal(e.SealKey, settingDevice, sealed)
		return err
	})
	if err != nil {
		return err
	}
	defer clear(seed)
	return e.begin(cred, seed)
}

// begin sets up what needs the device's key.
func (e *Engine) begin(cred, seed []byte) error {
	u, err := identity.ParseCredential(cred)
	if err != nil {
		return fmt.Errorf("sdk: the stored credential: %w", err)
	}
	if e.cred, err = u.Verify(); err != nil {
		return fmt.Errorf("sdk: the stored credential: %w", err)
	}
	return e.beginKeys(seed)
}

// beginKeys sets up signing and the client, which need no credential.
func (e *Engine) beginKeys(seed []byte) error {
	var err error
	if e.device, err = phrase.KeyFromSeed(seed); err != nil {
		return fmt.Errorf("sdk: the device's key: %w", err)
	}
	e.mls = &mls.Config{Credentials: policy.Credentials{}, AppData: policy.ApplyUpdate, MaxLifetime: policy.MaxLifetime}
	for _, id := range policy.Suites {
		cs, err := suite.Lookup(id)
		if err != nil {
			return fmt.Errorf("sdk: suite %#04x: %w", uint16(id), err)
		}
		key, err := cs.NewSignatureKey(seed)
		if err != nil {
			return fmt.Errorf("sdk: the device's key: %w", err)
		}
		e.mls.Signers = append(e.mls.Signers, key)
	}
	e.client = client.New(client.Config{Base: e.account.Server, Transport: e.Transport, Account: (*login)(e), Kept: e.kept(), Sleep: e.Sleep, Jitter: e.jitter})
	return nil
}

// jitter is a number in [0, 1).
func (e *Engine) jitter() float64 {
	var b [2]byte
	if _, err := io.ReadFull(e.Random, b[:]); err != nil {
		return 0.5
	}
	return float64(int(b[0])<<8|int(b[1])) / (1 << 16)
}

// Identity is the account's key, by which everybody knows it.
func (e *Engine) Identity() identity.PublicKey { return e.account.Identity }

// Device is this device of the account.
func (e *Engine) Device() identity.DeviceID { return e.account.Device }

// Name is what the account calls itself.
func (e *Engine) Name() string { return e.self().Name }

// About is what the account says of itself.
func (e *Engine) About() string { return e.self().About }

// Server is the address of the account's service.
func (e *Engine) Server() string { return e.account.Server }

// home is what the service says about itself, asked once in a session: a restore ends
// all of them.
func (e *Engine) home(ctx context.Context) (delivery.Info, error) {
	e.mu.Lock()
	known := e.info
	e.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	info, err := e.client.Info(ctx)
	if err != nil {
		return info, err
	}
	if err := checkInfo(info); err != nil {
		return info, err
	}
	e.mu.Lock()
	e.info = &info
	e.mu.Unlock()
	return info, nil
}

// askAgain drops what the service said about itself.
func (e *Engine) askAgain() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.info = nil
}

func checkInfo(i delivery.Info) error {
	if i.Home == (identity.Home{}) || len(i.SenderKey) != 32 || i.Domain == "" {
		return fmt.Errorf("%w: it says nothing about its home", client.ErrGarbage)
	}
	return nil
}

// changed wakes who waits for lines.
func (e *Engine) changed() {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.rung)
	e.rung = make(chan struct{})
}

func (e *Engine) bell() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.rung
}

// nowMS is this device's clock, Unix milliseconds.
func (e *Engine) nowMS() int64 { return e.Now().UnixMilli() }

// login is the engine as client.Account.
type login Engine

// Device implements client.Account.
func (l *login) Device() identity.DeviceID { return l.account.Device }

// SignLogin implements client.Account.
func (l *login) SignLogin(home identity.Home, challenge []byte) ([]byte, error) {
	if home != l.account.Home {
		return nil, fmt.Errorf("%w: it calls itself home %s, this account lives at %s", client.ErrGarbage, home, l.account.Home)
	}
	done, err := l.life.step()
	if err != nil {
		return nil, err
	}
	defer done()
	sig, err := identity.SignLogin(home, challenge, l.device)
	return sig[:], err
}

// CopyCounter implements client.Account. The next counter stays the same until a
// login was answered: an answer that was lost is no copy.
func (l *login) CopyCounter(ctx context.Context) (have, want [16]byte, err error) {
	err = l.Store.Update(ctx, func(tx Tx) error {
		h, err := tx.Get(TableSetting, settingCounter)
		if err != nil {
			return err
		}
		copy(have[:], h)
		w, err := tx.Get(TableSetting, settingNext)
		if err != nil {
			return err
		}
		if len(w) == len(want) {
			copy(want[:], w)
			return nil
		}
		if _, err := io.ReadFull(l.Random, want[:]); err != nil {
			return fmt.Errorf("random bytes: %w", err)
		}
		return tx.Put(TableSetting, settingNext, want[:])
	})
	return have, want, err
}

// LoggedIn implements client.Account.
func (l *login) LoggedIn(ctx context.Context, want [16]byte, copied bool) error {
	err := l.Store.Update(ctx, func(tx Tx) error {
		if err := tx.Delete(TableSetting, settingNext); err != nil {
			return err
		}
		if err := tx.Delete(TableSetting, settingRevoked); err != nil { // who said so was wrong
			return err
		}
		if err := tx.Put(TableSetting, settingCounter, want[:]); err != nil || !copied {
			return err
		}
		return markAll(tx, l.Host, whyCopied) // with the counter: who has it is not told again
	})
	if err != nil {
		return err
	}
	e := (*Engine)(l)
	e.askAgain()
	e.logins.Add(1) // until a room is read on, a copy may have written to it
	if copied {
		e.warnCopied(whyCopied)
		e.staleAll()
	}
	return nil
}

// CutOff implements client.Account: another copy of this profile goes on. Whoever
// uses this one again takes the place back, with new keys.
func (l *login) CutOff(ctx context.Context) error {
	return (*Engine)(l).renewAll(ctx, whyCopied)
}

const whyCopied = "another copy of this profile has been used"

// copied is called where this profile goes on after another copy of it was used. Both
// may hold one session, as an image of a running machine does: it is given up, so that
// one of them is left after the next login.
func (e *Engine) copied(ctx context.Context, why string) error {
	e.warnCopied(why)
	e.client.Distrust()
	return e.renewAll(ctx, why)
}

func (e *Engine) warnCopied(why string) {
	e.Warn("%s: its place in every chat is renewed before it sends anything. To use an account in two places, link a device in each", why)
}

// renewAll notes in every room that this leaf has to be replaced before anything
// is sent: another copy may have used its keys.
func (e *Engine) renewAll(ctx context.Context, why string) error {
	if err := e.Store.Update(ctx, func(tx Tx) error { return markAll(tx, e.Host, why) }); err != nil {
		return err
	}
	e.staleAll()
	return nil
}

// markAll is renewAll in the store.
func markAll(tx Tx, host, why string) error {
	rooms, err := scan[Room](tx, TableRoom, "")
	if err != nil {
		return err
	}
	for _, r := range rooms {
		if r.Status != StatusOpen {
			continue
		}
		r.Renew = why
		if err := put(tx, TableRoom, r.ID.String(), r); err != nil {
			return err
		}
	}
	if err := tx.Put(TableSetting, settingCopied, []byte{1}); err != nil {
		return err
	}
	return tx.Put(TableSetting, settingHost, []byte(host))
}

// staleAll lets every room be read from the store again.
func (e *Engine) staleAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.rooms {
		r.stale.Store(true)
		r.live.hush()
	}
}

// fail turns what the service says about this device into an error of the engine. What
// a revoked device was still to send is set aside: nothing can ever send it.
func (e *Engine) fail(ctx context.Context, err error) error {
	if delivery.CodeOf(err) != delivery.CodeRevoked {
		return err
	}
	note := e.Store.Update(ctx, func(tx Tx) error {
		if err := e.asideAll(tx, ErrRevoked); err != nil {
			return err
		}
		return tx.Put(TableSetting, settingRevoked, []byte{1})
	})
	return errors.Join(fmt.Errorf("%w: %w", ErrRevoked, err), note)
}
