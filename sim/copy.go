package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/sdk"
	"github.com/askucher/compax-core/sdk/sqlitestore"
)

// maxPairs bounds how many profiles there are twice at a time.
const maxPairs = 2

// startsAgain is the chance that a person starts a copy again that has stopped, when it
// is to be used.
const startsAgain = 0.4

// pair is a profile and a copy of it, both in use until one is put away.
type pair struct {
	devices [2]*device // the first one and its copy
	image   bool       // copied with its session, as an image of a running machine is
	steps   int        // until one is put away
	joined  map[delivery.RoomID]uint64
	said    [2]map[delivery.RoomID]bool // where each said something that was acknowledged
}

// of is which of the two a device is.
func (p *pair) of(d *device) int { return slices.Index(p.devices[:], d) }

// notice is where a device's process warns its user.
func (w *World) notice(d *device, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.tell("    %s warns: %s", d, text)
	if strings.Contains(text, "link a device in each") {
		w.heardOfCopy(d, text)
	}
}

// heardOfCopy notes that a device told its user that its profile was copied.
func (w *World) heardOfCopy(d *device, text string) {
	d.told = true
	if !d.copied {
		w.wrong = append(w.wrong, fmt.Errorf("%s believes that its profile was copied: %s", d, text))
	}
}

// stopped notes that a device's process has stopped because a copy is in use.
func (w *World) stopped(d *device, err error) bool {
	if !errors.Is(err, client.ErrCopied) {
		return false
	}
	w.heardOfCopy(d, err.Error())
	d.cut = true
	w.tally.Cut++
	return true
}

// copies makes copies of profiles and puts them away.
func (w *World) copies(ctx context.Context, step int) error {
	for _, p := range slices.Clone(w.pairs) {
		if p.steps--; p.steps <= 0 {
			if err := w.part(ctx, p); err != nil {
				return err
			}
		}
	}
	if !w.chance(w.Copy) || len(w.pairs) >= maxPairs {
		return nil
	}
	var single []*device
	for _, d := range w.usable() {
		if d.pair == nil && d.engine != nil && !d.crash.died() {
			single = append(single, d)
		}
	}
	if len(single) == 0 {
		return nil
	}
	d := pick(w.random, single)
	w.tell("%d: the profile of %s is copied", step, d)
	return w.copyOf(ctx, d)
}

// copyOf copies a device's profile and starts the copy.
func (w *World) copyOf(ctx context.Context, d *device) error {
	p := &pair{image: w.Image, steps: 4 + w.random.IntN(max(w.Steps/6, 1)), joined: map[delivery.RoomID]uint64{}}
	for _, room := range w.rooms {
		if rec, err := d.engine.RoomOf(ctx, room); err == nil && rec.Status == sdk.StatusOpen {
			p.joined[room] = rec.Joined
		}
	}
	w.copied++
	c := &device{
		label: fmt.Sprintf("%s'%d", d.label, w.copied), owner: d.owner, id: d.id, host: d.host, copied: true,
		path: filepath.Join(w.dir, fmt.Sprintf("%s-%d.db", d.label, w.copied)), answered: map[content.MessageID]bool{},
	}
	d.copied, d.told, d.cut = true, false, false
	if p.image {
		sealed, err := d.engine.LeaveSession([]byte("here"))
		if err != nil {
			return fmt.Errorf("%s leaves its session: %w", d, err)
		}
		d.left = sdk.Left{Sealed: sealed, Place: []byte("here")}
		c.left = d.left
	} else if w.chance(0.5) {
		c.host += "'s neighbour"
	}
	d.engine = nil
	if err := d.store.Close(); err != nil {
		return fmt.Errorf("sim: close a profile: %w", err)
	}
	if err := copyFile(c.path, d.path); err != nil {
		return err
	}
	for _, x := range []*device{d, c} {
		var err error
		if x.store, err = sqlitestore.Open(ctx, x.path); err != nil {
			return fmt.Errorf("sim: %w", err)
		}
	}
	w.closers = append(w.closers, func() error { return c.store.Close() })
	for i, x := range []*device{d, c} {
		x.pair, p.devices[i], p.said[i] = p, x, map[delivery.RoomID]bool{}
		if err := w.boot(ctx, x); err != nil {
			return err
		}
		x.left = sdk.Left{} // it is used once
	}
	d.owner.devices = append(d.owner.devices, c)
	w.pairs = append(w.pairs, p)
	w.tally.Copies++
	return nil
}

// copyFile copies a closed profile: all of it is in its one file then.
func copyFile(to, from string) error {
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		return fmt.Errorf("sim: copy a profile: %w", err)
	}
	return nil
}

// part lets both of a pair be used once more, by a person who now looks at what they
// say, and puts one away for good. Then both have said that there is another, unless
// nobody could know of it, and the other one has a place of its own in every chat.
func (w *World) part(ctx context.Context, p *pair) error {
	w.pairs = slices.DeleteFunc(w.pairs, func(x *pair) bool { return x == p })
	if p.devices[0].gone {
		return nil // revoked meanwhile, both of them
	}
	stays := p.devices[w.random.IntN(2)]
	goes := p.devices[1-p.of(stays)]
	w.tell("  %s is put away, %s stays", goes, stays)
	w.network.SetFaults(Faults{})
	w.racing = true
	defer func() {
		w.racing = false
		w.network.SetFaults(w.Faults)
	}()
	for _, d := range []*device{goes, stays, goes, stays} {
		w.clock.Add(time.Hour) // a device comes in anew only so often
		d.away = 0
		if err := w.useCopy(ctx, d, false); err != nil {
			return err
		}
	}
	for _, d := range []*device{goes, stays, goes} { // the one that goes as it is: who was cut off stays so
		w.clock.Add(time.Hour)
		if err := w.useCopy(ctx, d, d == goes); err != nil {
			return err
		}
	}
	goes.gone = true
	stays.pair, goes.pair = nil, nil
	return w.judgePair(ctx, p, stays)
}

// useCopy lets a person read all with a device and say something in every chat. One that
// has stopped is started again, unless it stays as it is.
func (w *World) useCopy(ctx context.Context, d *device, asIs bool) error {
	if d.engine == nil || d.crash.died() || d.cut && !asIs {
		if err := w.boot(ctx, d); err != nil {
			return err
		}
	}
	err := w.welcomeIn(ctx, d)
	w.tell("  %s reads: %v", d, err)
	for _, room := range w.rooms {
		if err == nil || w.tolerable(err) {
			err = w.say(ctx, d, room)
			w.tell("  %s says something: %v", d, err)
		}
		if w.stopped(d, err) {
			return nil
		}
	}
	if err == nil || w.tolerable(err) {
		err = w.welcomeIn(ctx, d)
	}
	if err == nil || w.tolerable(err) || w.stopped(d, err) {
		return nil
	}
	return fmt.Errorf("%s beside its copy: %w", d, err)
}

// judgePair checks what both of a pair have told, and the place of the one that stays.
func (w *World) judgePair(ctx context.Context, p *pair, stays *device) error {
	var faults []error
	for i, d := range p.devices {
		if d.told || w.sawCopy(ctx, d) {
			continue
		}
		for room := range p.joined {
			if !p.image || p.said[1-i][room] {
				faults = append(faults, fmt.Errorf("%s has not said that its profile was copied", d))
				break
			}
		}
	}
	if goes := p.devices[1-p.of(stays)]; stays.told && goes.told && !goes.cut {
		faults = append(faults, fmt.Errorf("%s goes on beside %s: no service has told them apart", goes, stays))
	}
	for room, joined := range p.joined {
		rec, err := stays.engine.RoomOf(ctx, room)
		if err != nil || rec.Status != sdk.StatusOpen || !stays.told {
			continue
		}
		if rec.Joined > joined && rec.Renew == "" {
			continue
		}
		if _, err := stays.engine.Rename(ctx, room, "mine alone"); !errors.Is(err, sdk.ErrOut) {
			faults = append(faults, fmt.Errorf("%s: %s has not come in anew since its profile was copied: joined at %d, renew %q", room, stays, rec.Joined, rec.Renew))
		}
	}
	return errors.Join(faults...)
}

// sawCopy reports whether a device shows a line of which a copy is the cause.
func (w *World) sawCopy(ctx context.Context, d *device) bool {
	for _, room := range w.rooms {
		lines, err := d.engine.History(ctx, room, 0, 0, true)
		if err == nil && slices.ContainsFunc(lines, func(l sdk.Line) bool { return l.Cause == sdk.CauseCopy }) {
			return true
		}
	}
	return false
}
