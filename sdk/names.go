package sdk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// Names come from two places: from the directory, where somebody's line is public and
// signed by them, and from the room, sealed, when somebody changes theirs or comes in by
// invitation. The service learns no name by it that its owner has not published there.

// maxMeet bounds how many people's lines are asked for at once in one room. The others'
// are when the room is next brought up to date.
const maxMeet = 50

// meet asks the directory what the people of a room are called: all of them once this
// device has come in, and who came in since. Without the service they are asked for
// later. The caller holds the room's turn.
func (e *Engine) meet(ctx context.Context, r *room) error {
	if r.rec.Met || r.rec.Status != StatusOpen || r.rec.Kind == delivery.RoomSelf || r.state.roster == nil {
		return nil
	}
	people, err := e.unmet(ctx, r)
	if err != nil {
		return err
	}
	all := len(people) <= maxMeet
	var lines []identity.UsernameFields
	for _, who := range people[:min(len(people), maxMeet)] {
		f, err := e.lineOf(ctx, who)
		if err != nil && (isNet(err) || ctx.Err() != nil || delivery.CodeOf(err) == delivery.CodeLogIn || errors.Is(err, ErrRevoked)) {
			all = false
			break
		}
		if err != nil {
			e.Warn("what %s is called is not known: %v", who, err)
		}
		f.Identity = who
		lines = append(lines, f)
	}
	before := r.rec
	r.rec.Met = all
	if err := e.learnAll(ctx, lines, r.save); err != nil {
		r.rec = before
		return err
	}
	return nil
}

// learnAll notes what the directory says of people, and more in the same transaction. A
// username that was somebody else's before is told of.
func (e *Engine) learnAll(ctx context.Context, lines []identity.UsernameFields, more func(Tx) error) error {
	var taken []string
	err := e.Store.Update(ctx, func(tx Tx) error {
		taken = nil
		for _, f := range lines {
			mine, err := e.learn(tx, f)
			if err != nil {
				return err
			}
			if !mine {
				taken = append(taken, f.Username)
			}
		}
		if more == nil {
			return nil
		}
		return more(tx)
	})
	if err != nil {
		return err
	}
	for _, name := range taken {
		e.Warn("%v", fmt.Errorf("%w: @%s", ErrChanged, name))
	}
	return nil
}

// unmet lists whom of a room this device has not asked for since it came in.
func (e *Engine) unmet(ctx context.Context, r *room) (out []identity.PublicKey, err error) {
	err = e.Store.View(ctx, func(tx Tx) error {
		for _, who := range r.state.roster.Identities() {
			var p Person
			if _, err := get(tx, TablePerson, who.String(), &p); err != nil {
				return err
			}
			if who != e.account.Identity && (p.Asked == 0 || p.Asked < r.rec.Since) {
				out = append(out, who)
			}
		}
		return nil
	})
	return out, err
}

// introTime is how long a listener waits to learn what somebody is called.
const introTime = 3 * time.Second

// introduced is whom one listening has met.
type introduced struct {
	met    map[identity.PublicKey]bool
	silent bool // the service did not answer: nobody more is asked for
}

// nameFirst asks what somebody is called whom this device never asked for, before what
// they say is given on: who comes in is in the log before their name is known. Each is
// asked for once, and nobody more when the service does not answer.
func (e *Engine) nameFirst(ctx context.Context, to *introduced, who identity.PublicKey) error {
	if to.met[who] || to.silent || who == e.account.Identity || who == (identity.PublicKey{}) {
		return nil
	}
	to.met[who] = true
	p, err := e.Person(ctx, who)
	if err != nil || p.Asked > 0 || p.Name != "" {
		return err
	}
	short, cancel := context.WithTimeout(ctx, introTime)
	defer cancel()
	f, err := e.lineOf(short, who)
	if err != nil {
		to.silent = isNet(err)
		return nil // their name comes with the room's others
	}
	f.Identity = who
	return e.learnAll(ctx, []identity.UsernameFields{f}, nil)
}

// came notes that somebody has come into a room: what they are called is asked for.
func (e *Engine) came(tx Tx, r *room, who identity.PublicKey) error {
	r.rec.Met = false
	var p Person
	if found, err := get(tx, TablePerson, who.String(), &p); err != nil || !found || p.Asked == 0 {
		return err
	}
	p.Asked = 0
	return put(tx, TablePerson, who.String(), p)
}

// lineOf gives somebody's line of the directory, verified: zero when they have none
// there (identity.ErrKey when it is not theirs).
func (e *Engine) lineOf(ctx context.Context, who identity.PublicKey) (identity.UsernameFields, error) {
	raw, err := e.client.Person(ctx, who)
	if delivery.CodeOf(err) == delivery.CodeNotFound {
		return identity.UsernameFields{}, nil
	}
	if err != nil {
		return identity.UsernameFields{}, e.fail(ctx, err)
	}
	u, err := identity.ParseUsernameRecord(raw)
	if err != nil {
		return identity.UsernameFields{}, fmt.Errorf("a line of the directory: %w", err)
	}
	rec, err := u.Verify()
	if err != nil {
		return identity.UsernameFields{}, fmt.Errorf("a line of the directory: %w", err)
	}
	if rec.Fields().Identity != who {
		return identity.UsernameFields{}, fmt.Errorf("%w: the directory gives somebody else's line for %s", identity.ErrKey, who)
	}
	return rec.Fields(), nil
}

// learn notes what the directory says of somebody, who may have no line there. A
// username that is pinned to somebody else is nobody's; free says that it is not.
func (e *Engine) learn(tx Tx, f identity.UsernameFields) (free bool, err error) {
	p := Person{Identity: f.Identity}
	if _, err := get(tx, TablePerson, f.Identity.String(), &p); err != nil {
		return true, err
	}
	p.Asked = e.nowMS()
	if f.Version < max(p.Version, 1) { // what they said in a room is newer
		return true, put(tx, TablePerson, f.Identity.String(), p)
	}
	if f.Profile.DisplayName != "" && (f.Version > p.Version || p.Name == "") {
		p.Name, p.Version = f.Profile.DisplayName, f.Version
	}
	p.Username, free = f.Username, true
	if f.Username != "" {
		first, err := tx.Get(TableUsername, f.Username)
		if err != nil {
			return true, err
		}
		if free = first == nil || string(first) == f.Identity.String(); !free {
			p.Username = ""
		} else if err := tx.Put(TableUsername, f.Username, []byte(f.Identity.String())); err != nil {
			return true, err
		}
	}
	return free, put(tx, TablePerson, f.Identity.String(), p)
}

// learnSelf takes over a name that another device of this account has given it.
func (e *Engine) learnSelf(ctx context.Context) error {
	var said Person
	err := e.Store.View(ctx, func(tx Tx) error {
		_, err := get(tx, TablePerson, e.account.Identity.String(), &said)
		return err
	})
	if err != nil || said.Version <= e.self().Profile {
		return err
	}
	f, err := e.lineOf(ctx, e.account.Identity)
	if err != nil || f.Version <= e.self().Profile {
		return err
	}
	a := e.self()
	a.Name, a.About, a.Username, a.Profile = f.Profile.DisplayName, f.Profile.About, f.Username, f.Version
	if err := e.Store.Update(ctx, func(tx Tx) error { return put(tx, TableSetting, settingAccount, a) }); err != nil {
		return err
	}
	e.takeName(a)
	return nil
}

// takeName goes on with another name, which is stored.
func (e *Engine) takeName(a account) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.account.Name, e.account.About, e.account.Username, e.account.Profile = a.Name, a.About, a.Username, a.Profile
}

// tellName tells every open room of a name that has changed. Whom it does not reach
// now learns it by the next [Engine.Sync].
func (e *Engine) tellName(ctx context.Context) error {
	rooms, err := e.openRooms(ctx)
	if err != nil {
		return err
	}
	for _, id := range rooms {
		r, done, err := e.enter(ctx, id)
		if err != nil {
			return err
		}
		err = e.announceChange(ctx, r)
		done()
		if err := e.quiet(id, err); isNet(err) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// announceChange tells a room this account's profile when it has another one than the
// room was told, or could read in the directory when this device came in. The caller
// holds the room's turn.
func (e *Engine) announceChange(ctx context.Context, r *room) error {
	if r.rec.Status != StatusOpen || r.rec.Profile >= e.self().Profile {
		return nil
	}
	return e.announceNow(ctx, r)
}
