package sdk_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/sdk"
)

// tap stands in a device's socket, as the service or somebody on the way can.
type tap struct {
	client.Transport
	ready chan struct{} // a value for each connection that is open at both ends

	mu     sync.Mutex // guards everything below
	up     []*delivery.Ephemeral
	down   []*delivery.Ephemeral
	holds  bool          // frames do not arrive
	inject chan<- []byte // into the latest connection
}

func (w *tap) Dial(ctx context.Context, url string) (client.Socket, error) {
	s, err := w.Transport.Dial(ctx, url)
	if err != nil {
		return nil, err
	}
	arrives := make(chan []byte, 64)
	w.mu.Lock()
	w.inject = arrives
	w.mu.Unlock()
	t := &tapped{Socket: s, w: w, arrives: arrives, ended: make(chan struct{})}
	go t.pump() // ends with the socket
	return t, nil
}

type tapped struct {
	client.Socket
	w       *tap
	arrives chan []byte
	ended   chan struct{}
	err     error // once ended is closed
}

func (t *tapped) pump() {
	defer close(t.ended)
	for {
		b, err := t.Socket.Read(context.Background())
		if err != nil {
			t.err = err
			return
		}
		frame, _ := delivery.ParseFrame(b)
		if f, is := frame.(*delivery.Ephemeral); is {
			t.w.mu.Lock()
			t.w.down = append(t.w.down, f)
			holds := t.w.holds
			t.w.mu.Unlock()
			if holds {
				continue
			}
		}
		t.arrives <- b
	}
}

func (t *tapped) Read(ctx context.Context) ([]byte, error) {
	select {
	case b := <-t.arrives:
		if frame, _ := delivery.ParseFrame(b); frame != nil {
			if _, is := frame.(*delivery.Ready); is {
				t.w.ready <- struct{}{}
			}
		}
		return b, nil
	case <-t.ended:
		return nil, t.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (t *tapped) Write(ctx context.Context, b []byte) error {
	frame, _ := delivery.ParseFrame(b)
	if f, is := frame.(*delivery.Ephemeral); is {
		t.w.mu.Lock()
		t.w.up = append(t.w.up, f)
		t.w.mu.Unlock()
	}
	return t.Socket.Write(ctx, b)
}

// sent is what the device has said.
func (w *tap) sent() []*delivery.Ephemeral {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.up)
}

// shows gives the device a frame, as the service does.
func (w *tap) shows(f *delivery.Ephemeral) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inject <- delivery.AppendFrame(nil, f)
}

// listener is a person who listens, with what they hear.
type listener struct {
	*person
	*tap
	skew  *atomic.Int64 // of their clock since it began, nanoseconds: it stands still else
	hears chan heardOf
}

type heardOf struct {
	sdk.Activity
	begins bool
	line   string
}

// listens opens a person's profile again, with a tap and a clock that the test
// moves, and listens until the test ends. It returns once the socket is open.
func (p *person) listens() *listener {
	p.t.Helper()
	must(p.t, p.Close())
	c := p.config()
	l := &listener{person: p, tap: &tap{Transport: c.Transport, ready: make(chan struct{}, 16)}, skew: &atomic.Int64{}, hears: make(chan heardOf, 256)}
	c.Transport = l.tap
	began := time.Now()
	c.Now = func() time.Time { return began.Add(time.Duration(l.skew.Load())) }
	e, err := sdk.Open(p.t.Context(), c)
	must(p.t, err)
	p.Engine = e
	ctx, cancel := context.WithCancel(p.t.Context())
	done := make(chan error, 1)
	go func() {
		done <- e.Listen(ctx, sdk.Listening{Activity: func(a sdk.Activity, begins bool) error {
			l.hears <- heardOf{Activity: a, begins: begins}
			return nil
		}}, func(x sdk.Line) error {
			l.hears <- heardOf{line: x.Text}
			return nil
		})
	}()
	p.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			p.t.Errorf("listening ended with %v", err)
		}
	})
	<-l.ready
	return l
}

// next waits for what is heard next.
func (l *listener) next(want heardOf) {
	l.t.Helper()
	select {
	case got := <-l.hears:
		if got != want {
			l.t.Fatalf("heard %+v, want %+v", got, want)
		}
	case <-time.After(30 * time.Second):
		l.t.Fatalf("nothing was heard, want %+v", want)
	}
}

func types(room delivery.RoomID, p *person, begins bool) heardOf {
	return heardOf{Activity: sdk.Activity{Room: room, From: p.Identity(), Kind: sdk.ActivityTyping}, begins: begins}
}

// pair is a room of Ada and Bob in which both listen.
func pair(t *testing.T) (h *home, room delivery.RoomID, ada, bob *listener) {
	t.Helper()
	h = newHome(t)
	a, b := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := a.NewRoom(t.Context(), "Typing")
	must(t, err)
	a.invite(room, b)
	must(t, a.Sync(t.Context()))
	return h, room, a.listens(), b.listens()
}

func TestTypingIsHeard(t *testing.T) {
	_, room, ada, bob := pair(t)
	ctx := t.Context()
	for range 20 { // as many keys
		must(t, ada.Typing(ctx, room))
	}
	bob.next(types(room, ada.person, true))
	if n := len(ada.sent()); n != 1 {
		t.Errorf("twenty keys in a moment send %d frames, want 1", n)
	}
	chats, err := bob.Chats(ctx)
	must(t, err)
	if len(chats) != 1 || !slices.Equal(chats[0].Typing, bob.TypingIn(room)) || len(chats[0].Typing) != 1 {
		t.Errorf("the list of chats says %+v", chats)
	}
	must(t, ada.TypingEnded(ctx, room))
	bob.next(types(room, ada.person, false))
	must(t, ada.TypingEnded(ctx, room))
	if n := len(ada.sent()); n != 2 {
		t.Errorf("%d frames after the end was said twice, want 2", n)
	}

	// A message ends it.
	must(t, ada.Typing(ctx, room))
	bob.next(types(room, ada.person, true))
	ada.say(room, "here it is")
	select {
	case first := <-bob.hears: // the line, and that it ended, in any order
		if first.line != "" {
			if who := bob.TypingIn(room); len(who) != 0 {
				t.Errorf("whose message is there still types: %v", who)
			}
			bob.next(types(room, ada.person, false))
		} else {
			bob.next(heardOf{line: "here it is"})
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the message did not arrive")
	}

	// It ends by itself, by the clock of who hears it.
	must(t, ada.Typing(ctx, room))
	bob.next(types(room, ada.person, true))
	bob.skew.Add(int64(7 * time.Second))
	bob.next(types(room, ada.person, false))
	bob.skew.Store(0)

	// After a while it is said again.
	before := len(ada.sent())
	ada.skew.Add(int64(4 * time.Second))
	must(t, ada.Typing(ctx, room))
	if n := len(ada.sent()) - before; n != 1 {
		t.Errorf("after four seconds %d frames, want 1", n)
	}
}

// A listener that follows another one, which was told that somebody types, is told
// when they do no more.
func TestListenersFollowOneAnother(t *testing.T) {
	_, room, ada, bob := pair(t)
	told := sdk.Activity{Room: room, From: ada.Identity(), Kind: sdk.ActivityTyping}
	heard := 0
	err := bob.Listen(t.Context(), sdk.Listening{Told: []sdk.Activity{told}, Activity: func(a sdk.Activity, begins bool) error {
		heard++
		if a != told || begins {
			t.Errorf("%+v begins: %v", a, begins)
		}
		return sdk.ErrEnough
	}}, func(sdk.Line) error { return nil })
	must(t, err)
	if heard != 1 {
		t.Errorf("%d things were heard", heard)
	}
}

// The own devices are not told what their person does, and an account is one
// somebody, however many devices it has.
func TestOwnTypingIsNotHeard(t *testing.T) {
	h, room, ada, bob := pair(t)
	ctx := t.Context()
	second := &person{t: t, path: filepath.Join(t.TempDir(), "ada2.db"), seal: ada.seal, words: ada.words}
	e, err := sdk.Restore(ctx, second.config(), h.url, ada.words)
	must(t, err)
	second.Engine = e
	t.Cleanup(func() { _ = second.Engine.Close() })
	must(t, second.Sync(ctx))
	other := second.listens()
	must(t, ada.Refresh(ctx, room))
	must(t, bob.Refresh(ctx, room))
	must(t, ada.Typing(ctx, room))
	bob.next(types(room, ada.person, true))
	must(t, other.Typing(ctx, room)) // the same person: nothing new
	must(t, bob.Typing(ctx, room))
	ada.next(types(room, bob.person, true))
	other.next(types(room, bob.person, true))
	must(t, bob.TypingEnded(ctx, room))
	ada.next(types(room, bob.person, false))
	must(t, other.TypingEnded(ctx, room))
	bob.next(types(room, ada.person, false))
}

func TestSettingsSilence(t *testing.T) {
	_, room, ada, bob := pair(t)
	ctx := t.Context()
	s, err := ada.Settings(ctx)
	must(t, err)
	if !s.Typing || s.Presence {
		t.Errorf("a new profile has %+v, want typing on and presence off", s)
	}
	must(t, ada.Online(ctx))
	must(t, ada.Offline(ctx))
	must(t, ada.SetSettings(ctx, sdk.Settings{}))
	must(t, ada.Typing(ctx, room))
	must(t, ada.TypingEnded(ctx, room))
	if got := ada.sent(); len(got) != 0 {
		t.Errorf("%d frames were sent against the settings", len(got))
	}
	must(t, ada.SetSettings(ctx, sdk.Settings{Presence: true}))
	must(t, ada.Online(ctx))
	must(t, ada.Online(ctx))
	online := heardOf{Activity: sdk.Activity{Room: room, From: ada.Identity(), Kind: sdk.ActivityOnline}, begins: true}
	bob.next(online)
	if got := bob.OnlineIn(room); len(got) != 1 || got[0] != ada.Identity() || len(ada.sent()) != 1 {
		t.Errorf("there is %v, by %d frames", got, len(ada.sent()))
	}
	must(t, ada.Offline(ctx))
	online.begins = false
	bob.next(online)
	ada.Engine = mustReopen(t, ada)
	if s, err := ada.Settings(ctx); err != nil || s != (sdk.Settings{Presence: true}) {
		t.Errorf("the settings were not kept: %+v %v", s, err)
	}
}

// mustReopen reads the store with another engine, beside the one that listens.
func mustReopen(t *testing.T, l *listener) *sdk.Engine {
	t.Helper()
	c := l.Config
	e, err := sdk.Open(t.Context(), c)
	must(t, err)
	return e
}

// TestFramesAreKeptNowhere: the service has no byte of a frame on its disk, the log
// goes on where it was, and no profile's state changes: no generation of a ratchet
// is spent.
func TestFramesAreKeptNowhere(t *testing.T) {
	h, room, ada, bob := pair(t)
	ctx := t.Context()
	beforeA, beforeB := ada.stored(), bob.stored()
	head, err := bob.RoomOf(ctx, room)
	must(t, err)
	must(t, ada.Typing(ctx, room))
	bob.next(types(room, ada.person, true))
	must(t, ada.TypingEnded(ctx, room))
	bob.next(types(room, ada.person, false))
	if !bytes.Equal(beforeA, ada.stored()) || !bytes.Equal(beforeB, bob.stored()) {
		t.Error("the profiles' state changed")
	}
	frames := ada.sent()
	if len(frames) != 2 {
		t.Fatalf("%d frames", len(frames))
	}
	h.stop() // everything is on disk
	found := 0
	must(t, filepath.WalkDir(h.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		found++
		for _, f := range frames {
			if bytes.Contains(b, f.Payload[:24]) || bytes.Contains(b, f.Payload[32:48]) {
				t.Errorf("%s holds a frame", path)
			}
		}
		return nil
	}))
	if found == 0 {
		t.Error("no file of the service was looked at")
	}
	h.start()
	sent := bob.say(room, "next")
	if sent.Seq != head.Cursor+1 {
		t.Errorf("the next entry is %d after %d: frames have numbers", sent.Seq, head.Cursor)
	}
}

// stored is a profile's groups and rooms as its store holds them.
func (p *person) stored() (out []byte) {
	p.t.Helper()
	must(p.t, p.Store.View(p.t.Context(), func(tx sdk.Tx) error {
		for _, table := range []sdk.Table{sdk.TableMLS, sdk.TableRoom, sdk.TableRaw, sdk.TableOutbox, sdk.TableSent} {
			if err := tx.Scan(table, "", "", func(key string, value []byte) (bool, error) {
				out = append(append(append(out, key...), 0), value...)
				return true, nil
			}); err != nil {
				return err
			}
		}
		return nil
	}))
	return out
}

// TestAttackServiceReplaysTyping: a service that repeats frames, holds them back or
// shows them where they do not belong makes nobody seem to type; honest frames
// count as before.
func TestAttackServiceReplaysTyping(t *testing.T) {
	_, room, ada, bob := pair(t)
	ctx := t.Context()
	other, err := ada.NewRoom(ctx, "Elsewhere")
	must(t, err)
	ada.invite(other, bob.person)
	bob.tap.mu.Lock()
	bob.holds = true
	bob.tap.mu.Unlock()
	must(t, ada.Typing(ctx, room))
	must(t, ada.TypingEnded(ctx, room))
	frames := ada.sent()
	begin, end := frames[0], frames[1]

	bob.shows(begin)
	bob.next(types(room, ada.person, true))
	bob.shows(begin) // again
	bob.shows(end)
	bob.next(types(room, ada.person, false))
	bob.shows(begin) // again, after its end
	for _, change := range []func(f *delivery.Ephemeral){
		func(f *delivery.Ephemeral) { f.Room = other },
		func(f *delivery.Ephemeral) { f.Epoch++ },
		func(f *delivery.Ephemeral) { f.Leaf ^= 1 },
		func(f *delivery.Ephemeral) { f.Payload[40] ^= 1 },
		func(f *delivery.Ephemeral) { f.Payload = f.Payload[:7] },
		func(f *delivery.Ephemeral) { f.Payload = make([]byte, delivery.MaxEphemeral) },
	} {
		f := *end
		f.Payload = bytes.Clone(begin.Payload)
		change(&f)
		bob.shows(&f)
	}
	must(t, ada.Typing(ctx, room))
	late := ada.sent()[2]
	bob.skew.Store(int64(time.Minute))
	bob.shows(late) // held back for a minute
	ada.say(room, "meanwhile")
	bob.next(heardOf{line: "meanwhile"}) // what was shown before it was looked at
	bob.skew.Store(0)
	must(t, ada.Typing(ctx, other))
	bob.shows(ada.sent()[3])
	bob.next(types(other, ada.person, true)) // nothing of the rest was heard
}

// TestAttackRingingForNoRoom: a service that rings for rooms which the device is not
// in takes no memory of it and keeps it from nothing.
func TestAttackRingingForNoRoom(t *testing.T) {
	_, room, ada, bob := pair(t)
	before := bob.Remembered()
	bob.tap.mu.Lock()
	into := bob.inject
	bob.tap.mu.Unlock()
	for n := range byte(100) {
		unknown := room
		unknown[15] ^= n + 1
		for _, frame := range []any{
			&delivery.EntryFrame{Room: unknown, Entry: delivery.Entry{Seq: 1, Epoch: 1, Kind: delivery.KindApplication, Bytes: []byte{1}}},
			&delivery.Gap{Room: unknown, From: 7},
			&delivery.Ephemeral{Room: unknown, Epoch: 1, Payload: make([]byte, 200)},
		} {
			into <- delivery.AppendFrame(nil, frame)
		}
	}
	ada.say(room, "behind them")
	bob.next(heardOf{line: "behind them"})
	if after := bob.Remembered(); after != before {
		t.Errorf("%d rooms are remembered, %d before", after, before)
	}
}
