package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
)

// Plan says what a run is made of.
type Plan struct {
	Seed   uint64
	People int // at least 2
	Steps  int
	Faults Faults
	Crash  float64 // chance that a device's process is killed during an action
	Stop   float64 // chance, each step, that the service stops and starts
	Away   float64 // chance, each step, that a device is put away for a while
	Weeks  bool    // some absences last longer than the service keeps its log
	Lose   bool    // phones are lost: their owners revoke them
	Backup bool    // the service is restored from an old backup, twice from the same
	Race   float64 // chance that somebody else acts between an append and its sender's last look
	Orphan bool    // with Backup: a room is newer than the backup, and the device that made it is gone
	Bots   int     // accounts that answer every message at once
	Copy   float64 // chance, each step, that a profile is copied and used twice for a while
	Image  bool    // with its session, as an image of a running machine is
}

// World is one run.
type World struct {
	Plan
	dir     string
	random  *rand.Rand
	secret  *bytes32
	clock   *Clock
	network *Network
	service *service
	people  []*person
	rooms   []delivery.RoomID
	movedTo []delivery.RoomID // where rooms that a restore has lost go on
	said    []said
	lost    int // messages said when the service was restored last
	saved   int // messages said when the backup was taken; -1 = there is none
	words   int
	tally   Tally
	acting  *pair // of who acts now
	racing  bool  // somebody acts within another's request
	done    bool  // a restore has happened
	replied map[content.MessageID]bool
	pairs   []*pair               // profiles that are in use twice now
	copied  int                   // copies made
	wrong   []error               // what no device may believe
	sent    []sent                // what devices asked the service to append, in its order
	places  map[[32]byte][]uint64 // where entries stand or stood in their room's log, by SHA-256
	story   []string
	closers []func() error
}

// said is a message that the service acknowledged.
type said struct {
	room delivery.RoomID
	id   content.MessageID
	text string
	by   *device
	seq  uint64
}

// NewWorld makes a world below dir, an empty folder.
func NewWorld(dir string, p Plan) *World {
	w := &World{
		Plan: p, dir: dir, random: rand.New(rand.NewPCG(p.Seed, 1)), secret: newBytes(p.Seed, 1), clock: NewClock(), saved: -1,
		network: NewNetwork(rand.New(rand.NewPCG(p.Seed, 2))), replied: map[content.MessageID]bool{},
		places: map[[32]byte][]uint64{},
	}
	w.service = &service{dir: filepath.Join(dir, "service"), clock: w.clock, random: newBytes(p.Seed, 2), network: w.network}
	return w
}

func noSleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

func isOffline(err error) bool { return errors.Is(err, client.ErrOffline) }

// tell adds a line to the run's story.
func (w *World) tell(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf(format, args...))
}

// Story is what happened, for whoever looks into a failure.
func (w *World) Story() string { return strings.Join(w.story, "\n") }

func (w *World) chance(p float64) bool { return w.random.Float64() < p }

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

// Run lives through the plan and then lets everybody come to rest. Any error is
// a fault of the software under test, and so is what Judge finds.
func (w *World) Run(ctx context.Context) (err error) {
	defer func() {
		if err != nil && w.service.running() {
			for _, room := range w.rooms {
				err = errors.Join(err, w.describe(ctx, room))
			}
		}
	}()
	if err := w.service.start(ctx); err != nil {
		return err
	}
	for i := range w.People + w.Bots {
		if err := w.newPerson(ctx, fmt.Sprintf("p%c%c", 'a'+i/26, 'a'+i%26), i >= w.People); err != nil {
			return err
		}
	}
	if err = w.firstRoom(ctx); err != nil {
		return err
	}
	w.network.SetFaults(w.Faults)
	w.network.Between(w.race)
	for step := range w.Steps {
		w.clock.Add(time.Duration(1+w.random.IntN(20)) * time.Second)
		if err := w.weather(ctx, step); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		if err := w.copies(ctx, step); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		if err := w.act(ctx); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		if err := w.bots(ctx); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
	}
	return w.rest(ctx)
}

// firstRoom puts everybody into one room, before anything can go wrong.
func (w *World) firstRoom(ctx context.Context) error {
	first := w.people[0].devices[0]
	room, err := first.engine.NewRoom(ctx, "everybody")
	if err != nil {
		return err
	}
	w.rooms = append(w.rooms, room)
	for _, p := range w.people[1:] {
		if err := first.engine.Add(ctx, room, p.id); err != nil {
			return fmt.Errorf("add %s: %w", p.name, err)
		}
		if err := w.service.chores(ctx); err != nil {
			return err
		}
		if err := w.welcomeIn(ctx, p.devices[0]); err != nil {
			return err
		}
	}
	return nil
}

// welcomeIn accepts everything that a device is invited to.
func (w *World) welcomeIn(ctx context.Context, d *device) error {
	if err := d.engine.Sync(ctx); err != nil {
		return err
	}
	requests, err := d.engine.Requests(ctx)
	if err != nil {
		return err
	}
	for _, r := range requests {
		if err := d.engine.Accept(ctx, r.Room); err != nil {
			return err
		}
	}
	return nil
}

// weather is what happens to the service and to who is there.
func (w *World) weather(ctx context.Context, step int) error {
	if w.service.running() {
		if err := w.service.chores(ctx); err != nil {
			return err
		}
	}
	if w.chance(w.Stop) {
		w.tell("%d: the service stops and starts", step)
		w.tally.Stops++
		if err := w.notePlaces(ctx); err != nil {
			return err
		}
		if err := w.service.stop(); err != nil {
			return err
		}
		if w.Backup && w.saved < 0 && step > w.Steps/4 {
			w.tell("%d: a backup is taken", step)
			if err := w.service.backup(filepath.Join(w.dir, "backup")); err != nil {
				return err
			}
			w.saved = len(w.said)
		}
		if w.Backup && w.saved >= 0 && step > w.Steps/2 && w.tally.Restores == 0 || w.done && step > w.Steps*3/4 && w.tally.Restores == 1 {
			w.tell("%d: the service is restored from the backup", step)
			w.done, w.lost = true, len(w.said)
			w.tally.Restores++
			w.tally.Behind += len(w.said) - w.saved
			if err := w.service.restore(ctx, filepath.Join(w.dir, "backup")); err != nil {
				return err
			}
		}
		if err := w.service.start(ctx); err != nil {
			return err
		}
		if w.Orphan && w.saved >= 0 && !w.done && w.tally.Orphans == 0 {
			if err := w.orphan(ctx); err != nil {
				return err
			}
		}
	}
	for _, p := range w.people {
		for _, d := range p.devices {
			if d.away > 0 {
				d.away--
			}
		}
	}
	if w.chance(w.Away) {
		if usable := w.usable(); len(usable) > 1 {
			d := pick(w.random, usable)
			d.away = 1 + w.random.IntN(w.Steps/4+1)
			w.tell("%d: %s is put away for %d steps", step, d, d.away)
			w.tally.Absences++
		}
	}
	if w.Weeks && (w.chance(0.01) || step == w.Steps/2 && w.tally.Weeks == 0) {
		w.tell("%d: forty days pass", step)
		w.tally.Weeks++
		if err := w.notePlaces(ctx); err != nil {
			return err
		}
		w.clock.Add(40 * 24 * time.Hour)
		if w.service.running() {
			if err := w.service.s.Sweep(ctx); err != nil {
				return fmt.Errorf("sim: sweep: %w", err)
			}
		}
	}
	return nil
}

// act lets one device do one thing. Its process may be killed on the way.
func (w *World) act(ctx context.Context) error {
	usable := w.usable()
	if len(usable) == 0 {
		return nil
	}
	d := pick(w.random, usable)
	if len(w.pairs) > 0 && w.chance(0.6) {
		if d = pick(w.random, w.pairs).devices[w.random.IntN(2)]; d.away > 0 || d.gone {
			return nil
		}
	}
	w.acting = d.pair
	return w.actAs(ctx, d)
}

// race lets somebody else act before an append arrives: what its sender looked at
// is of yesterday then.
func (w *World) race(ctx context.Context) error {
	if w.racing || w.Race == 0 || !w.chance(w.Race) {
		return nil
	}
	others := w.usable()
	if len(others) == 0 {
		return nil
	}
	w.racing = true
	defer func() { w.racing = false }()
	w.tally.Raced++
	w.tell("  (meanwhile)")
	for _, d := range others {
		if d.pair != nil && d.pair == w.acting && w.chance(0.7) {
			return w.actAs(ctx, d) // two copies at once
		}
	}
	return w.actAs(ctx, pick(w.random, others))
}

// actAs lets a device do one thing.
func (w *World) actAs(ctx context.Context, d *device) error {
	d.busy = true
	defer func() { d.busy = false }()
	if d.cut && !w.chance(startsAgain) {
		w.tell("%s stays as it is", d)
		return nil
	}
	if d.engine == nil || d.crash.died() || d.cut {
		if d.engine == nil {
			w.tally.Starts++
		}
		if err := w.boot(ctx, d); err != nil {
			return err
		}
	}
	if w.chance(w.Crash) {
		n, after := 1+w.random.IntN(6), w.chance(0.5)
		d.crash.plan(n, after)
		w.tell("  (%s will be killed at write %d, after it: %v)", d, n, after)
	}
	what, err := w.action(ctx, d)
	outcome := "done"
	if err != nil {
		outcome = err.Error()
	}
	w.tell("%s %s: %s", d, what, outcome)
	if err := w.network.Broke(); err != nil {
		return err
	}
	if err != nil && !w.stopped(d, err) && !w.tolerable(err) {
		return fmt.Errorf("%s %s: %w", d, what, err)
	}
	if d.crash.died() {
		d.engine = nil
		w.tally.Kills++
	} else {
		d.crash.plan(0, false)
	}
	return nil
}

// action chooses and does one thing.
func (w *World) action(ctx context.Context, d *device) (what string, err error) {
	room := pick(w.random, w.rooms)
	switch n := w.random.IntN(100); {
	case n < 45:
		return "says something", w.say(ctx, d, room)
	case n < 64 && w.racing:
		_, err := d.engine.Rename(ctx, room, fmt.Sprintf("room %d", w.random.IntN(1000)))
		return "renames", err
	case n < 70:
		return "reads", w.welcomeIn(ctx, d)
	case n < 74:
		return "edits", w.edit(ctx, d, room)
	case n < 78:
		return "reacts", w.react(ctx, d, room)
	case n < 84:
		p := pick(w.random, w.people)
		return "adds " + p.name, d.engine.Add(ctx, room, p.id)
	case n < 88:
		p := pick(w.random, w.people)
		if p == d.owner {
			return "leaves", d.engine.Leave(ctx, room)
		}
		return "removes " + p.name, d.engine.Remove(ctx, room, p.id)
	case n < 91:
		_, err := d.engine.Rename(ctx, room, fmt.Sprintf("room %d", w.random.IntN(1000)))
		return "renames", err
	case n < 94:
		return "makes a room", w.makeRoom(ctx, d)
	case n < 96 && len(d.owner.devices) < 3, n >= 96 && w.Lose && len(d.owner.devices) < 2:
		return "gets a further device", w.addDevice(ctx, d.owner)
	case n >= 93 && w.Lose:
		return "loses a device", w.lose(ctx, d)
	}
	return "sends what waits", d.engine.Flush(ctx)
}
