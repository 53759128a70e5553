package sdk_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/sdk"
)

// halted is a clock that goes on when it is told to. Waits of under a minute are over
// at once; others say how long they are, and wait.
type halted struct {
	mu    sync.Mutex // guards the fields below
	ahead time.Duration
	moved chan struct{} // closed and replaced when it goes on

	waits chan time.Duration
}

func newHalted() *halted {
	return &halted{moved: make(chan struct{}), waits: make(chan time.Duration, 64)}
}

var began = time.Now()

func (c *halted) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return began.Add(c.ahead)
}

func (c *halted) sleep(ctx context.Context, d time.Duration) error {
	if d < time.Minute {
		return ctx.Err()
	}
	c.mu.Lock()
	end, moved := c.ahead+d, c.moved
	c.mu.Unlock()
	c.waits <- d
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-moved:
		}
		c.mu.Lock()
		over := c.ahead >= end
		moved = c.moved
		c.mu.Unlock()
		if over {
			return nil
		}
	}
}

func (c *halted) goOn(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
	close(c.moved)
	c.moved = make(chan struct{})
}

// deaf opens sockets that pass on some frames and then nothing, as what stands between
// a device and its service does when it has forgotten them.
type deaf struct {
	client.Transport
	passes int // frames, the first being that it is ready; below 0 = all
	mu     sync.Mutex
	dials  int // guarded by mu
}

type deafSocket struct {
	client.Socket
	passes int
}

func (d *deaf) Dial(ctx context.Context, url string) (client.Socket, error) {
	d.mu.Lock()
	d.dials++
	d.mu.Unlock()
	s, err := d.Transport.Dial(ctx, url)
	if err != nil {
		return nil, err
	}
	return &deafSocket{s, d.passes}, nil
}

func (s *deafSocket) Read(ctx context.Context) ([]byte, error) {
	for {
		b, err := s.Socket.Read(ctx)
		if err != nil || s.passes != 0 {
			s.passes--
			return b, err
		}
	}
}

// behindADeafDoor opens somebody's engine with a clock that stands still and sockets
// that pass on so many frames.
func (p *person) behindADeafDoor(passes int, warn func(string)) (*halted, *deaf) {
	p.t.Helper()
	must(p.t, p.Close())
	c := p.config()
	clock, door := newHalted(), &deaf{Transport: c.Transport, passes: passes}
	c.Now, c.Sleep, c.Transport = clock.now, clock.sleep, door
	c.Warn = func(format string, args ...any) { warn(fmt.Sprintf(format, args...)) }
	e, err := sdk.Open(p.t.Context(), c)
	must(p.t, err)
	p.Engine = e
	return clock, door
}

// hears gives what is heard until the test ends.
func (p *person) hears() <-chan string {
	ctx, cancel := context.WithCancel(p.t.Context())
	heard, ended := make(chan string, 64), make(chan error, 1)
	go func() {
		ended <- p.Listen(ctx, sdk.Listening{}, func(l sdk.Line) error { heard <- l.Text; return nil })
	}()
	p.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			p.t.Error(err)
		}
	})
	return heard
}

// TestADeadDoorbell: a device whose socket is open and brings nothing hears what was
// said, and of a new chat, by looking itself.
func TestADeadDoorbell(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room := ada.room("Quiet")
	ada.invite(room, bob)
	clock, _ := bob.behindADeafDoor(1, func(s string) { t.Error(s) })
	heard := bob.hears()
	wait := nextWatch(t, clock, 0)
	ada.say(room, "is anybody there?")
	select {
	case text := <-heard:
		t.Fatalf("%q was heard through a dead door", text)
	default:
	}
	clock.goOn(wait)
	if got := <-heard; got != "is anybody there?" {
		t.Errorf("heard %q", got)
	}
	wait = nextWatch(t, clock, 0)
	other := ada.room("Other")
	id, err := ada.Find(ctx, "@bob")
	must(t, err)
	must(t, ada.Add(ctx, other, id))
	ada.say(other, "come in")
	clock.goOn(wait)
	if got := <-heard; got != "come in" {
		t.Errorf("heard %q", got)
	}
}

// nextWatch is how long the device waits at its next door; the time that a socket has
// to be ready is no such wait.
func nextWatch(t *testing.T, c *halted, least time.Duration) time.Duration {
	t.Helper()
	for d := range c.waits {
		if d > time.Minute && d >= least {
			return d
		}
	}
	return 0
}

// TestAnIdleDeviceLooksSeldom: with nothing to hear, the times between two looks grow
// from five minutes to an hour, each with up to half as much again by chance, and a
// day takes few of them.
func TestAnIdleDeviceLooksSeldom(t *testing.T) {
	h := newHome(t)
	ada := newPerson(t, h, "ada")
	ada.room("Alone")
	clock, door := ada.behindADeafDoor(-1, func(s string) { t.Error(s) })
	ada.hears()
	day, looks := time.Duration(0), 0
	var waits []time.Duration
	for ; day < 24*time.Hour; looks++ {
		wait := nextWatch(t, clock, 0)
		least := min(5*time.Minute<<min(looks, 10), time.Hour)
		if wait < least || wait >= least*3/2 {
			t.Fatalf("look %d after %s, want %s and up to half of it more", looks, wait, least)
		}
		waits = append(waits, wait)
		clock.goOn(wait)
		day += wait
	}
	nextWatch(t, clock, 0)
	door.mu.Lock()
	defer door.mu.Unlock()
	if door.dials != looks+1 || looks > 28 {
		t.Errorf("%d sockets for %d looks in a day: %s", door.dials, looks, waits)
	}
	if rest := waits[5:]; allEqual(rest) {
		t.Errorf("all devices would look at the same times: %s", rest)
	}
}

func allEqual(d []time.Duration) bool {
	for _, x := range d {
		if x != d[0] {
			return false
		}
	}
	return true
}

// TestADoorThatIsNeverReady: a socket that opens and does not answer holds nobody up.
func TestADoorThatIsNeverReady(t *testing.T) {
	h := newHome(t)
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room := ada.room("Never")
	ada.invite(room, bob)
	told := make(chan string, 64)
	clock, _ := bob.behindADeafDoor(0, func(s string) { told <- s })
	heard := bob.hears()
	if d := <-clock.waits; d != time.Minute {
		t.Fatalf("a socket has %s to be ready", d)
	}
	ada.say(room, "hello")
	clock.goOn(time.Minute)
	if got := <-told; !strings.HasPrefix(got, "no connection, trying again: ") {
		t.Errorf("told %q", got)
	}
	if got := <-heard; got != "hello" {
		t.Errorf("heard %q", got)
	}
}

// TestWhenADeviceLooks: by the doorbell's own times.
func TestWhenADeviceLooks(t *testing.T) {
	at := func(d time.Duration) time.Time { return began.Add(d) }
	var b sdk.Doorbell
	left := func(now time.Duration, rooms int) time.Duration { return sdk.LeftOf(&b, at(now), rooms, 1) }
	b.Hung(at(0))
	if d := left(0, 0); d != 5*time.Minute {
		t.Errorf("at first %s", d)
	}
	if d := left(0, 100); d != 50*time.Minute {
		t.Errorf("with a hundred rooms %s", d)
	}
	if d := left(0, 10_000); d != 10_000*30*time.Second {
		t.Errorf("with all rooms %s", d)
	}
	for m := range 55 { // it rings each minute
		b.Rang(at(time.Duration(m) * time.Minute))
	}
	if d := left(54*time.Minute, 0); d != 5*time.Minute {
		t.Errorf("a bell that rings: %s", d)
	}
	b.Rang(at(59 * time.Minute))
	if d := left(59*time.Minute, 0); d != time.Minute {
		t.Errorf("a bell that has rung for an hour, of which something may be lost: %s", d)
	}
	b.Looks()
	b.Hung(at(time.Hour))
	if d := left(time.Hour, 0); d != 5*time.Minute {
		t.Errorf("after a bell that rang: %s", d)
	}
	b.Looks()
	b.Hung(at(2 * time.Hour))
	if d := left(2*time.Hour, 0); d != 10*time.Minute {
		t.Errorf("after a bell that did not: %s", d)
	}
	if d := left(time.Hour, 0); d != 0 {
		t.Errorf("a clock that went back: %s", d)
	}
}
