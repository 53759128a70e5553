package sdk_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/delivery/client/native"
	"github.com/askucher/compax-core/delivery/server"
	"github.com/askucher/compax-core/identity/phrase"
	"github.com/askucher/compax-core/internal/testport"
	"github.com/askucher/compax-core/node"
	"github.com/askucher/compax-core/sdk"
	"github.com/askucher/compax-core/sdk/sqlitestore"
)

// home is a real service in this process. It keeps its address when it stops and
// starts again.
type home struct {
	t      *testing.T
	dir    string
	listen string
	url    string
	stop   func()
	later  atomic.Int64 // the service's clock, before the right time
}

func newHome(t *testing.T) *home {
	listen, err := testport.Address()
	must(t, err)
	h := &home{t: t, dir: t.TempDir(), listen: listen}
	h.start()
	t.Cleanup(func() { h.stop() })
	return h
}

func (h *home) start() {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	// Without proof of work: a test says in a second what a person says in a day.
	n, err := node.New(ctx, node.Config{Dir: h.dir, Listen: h.listen, MetricsListen: "off", DrainSeconds: 1, Now: func() time.Time { return time.Now().Add(time.Duration(h.later.Load())) }, Work: server.WorkLimits{Off: true}, Congestion: server.CongestionLimits{Off: true}})
	must(h.t, err)
	h.url = n.URL()
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	stopped := false
	h.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			h.t.Errorf("the service ended with %v", err)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// person is an engine over a store in a file of its own.
type person struct {
	*sdk.Engine
	t     *testing.T
	path  string
	seal  []byte
	words phrase.Phrase
	ahead time.Duration // its clock, of the right time
}

func (p *person) config() sdk.Config {
	p.t.Helper()
	s, err := sqlitestore.Open(p.t.Context(), p.path)
	must(p.t, err)
	tr := native.New()
	p.t.Cleanup(tr.Close)
	return sdk.Config{
		Store: s, Transport: tr, SealKey: p.seal, Random: rand.Reader, Host: "host",
		Now: func() time.Time { return time.Now().Add(p.ahead) },
		Sleep: func(ctx context.Context, d time.Duration) error { // no test waits long
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(min(d, 30*time.Millisecond)):
				return nil
			}
		},
		Warn: func(format string, args ...any) { p.t.Logf("warning: "+format, args...) },
	}
}

func newPerson(t *testing.T, h *home, name string) *person {
	t.Helper()
	return newPersonAhead(t, h, name, 0)
}

// newPersonAhead is a person whose clock is ahead of the right time.
func newPersonAhead(t *testing.T, h *home, name string, ahead time.Duration) *person {
	t.Helper()
	p := &person{t: t, path: filepath.Join(t.TempDir(), name+".db"), seal: bytes.Repeat([]byte{7}, sdk.SealKeySize), ahead: ahead}
	e, words, err := sdk.Create(t.Context(), p.config(), sdk.NewAccount{Server: h.url, Name: name, Username: name})
	must(t, err)
	p.Engine, p.words = e, words
	t.Cleanup(func() { _ = p.Engine.Close() })
	return p
}

// restart closes the engine and opens it again from its store.
func (p *person) restart() {
	p.t.Helper()
	must(p.t, p.Close())
	e, err := sdk.Open(p.t.Context(), p.config())
	must(p.t, err)
	p.Engine = e
}

func (p *person) invite(room delivery.RoomID, who *person) {
	p.t.Helper()
	id, err := p.Find(p.t.Context(), "@"+who.Name())
	must(p.t, err)
	must(p.t, p.Add(p.t.Context(), room, id))
	must(p.t, who.Accept(p.t.Context(), room))
}

func (p *person) say(room delivery.RoomID, text string) sdk.Sent {
	p.t.Helper()
	sent, err := p.Send(p.t.Context(), room, sdk.Draft{Text: text})
	must(p.t, err)
	return sent
}

// read is the text of a room's conversation as it stands.
func (p *person) read(room delivery.RoomID) []string {
	p.t.Helper()
	must(p.t, p.Refresh(p.t.Context(), room))
	lines, err := p.History(p.t.Context(), room, 0, 0, false)
	must(p.t, err)
	var out []string
	for _, l := range lines {
		if l.Cause != "" {
			out = append(out, "!"+l.Cause)
			continue
		}
		out = append(out, l.Text)
	}
	return out
}

func (p *person) reads(room delivery.RoomID, want ...string) {
	p.t.Helper()
	got := p.read(room)
	if len(got) != len(want) {
		p.t.Fatalf("%s reads %q, want %q", p.Name(), got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			p.t.Fatalf("%s reads %q, want %q", p.Name(), got, want)
		}
	}
}

func TestConversation(t *testing.T) {
	h := newHome(t)
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	ctx := t.Context()
	room, err := ada.NewRoom(ctx, "Tea")
	must(t, err)
	id, err := ada.Find(ctx, "@bob")
	must(t, err)
	must(t, ada.Add(ctx, room, id))

	// A stranger's room is a request: nothing of it is here.
	must(t, bob.Sync(ctx))
	requests, err := bob.Requests(ctx)
	must(t, err)
	if len(requests) != 1 || requests[0].Room != room || requests[0].From != ada.Identity() {
		t.Fatalf("requests %+v", requests)
	}
	if _, err := bob.History(ctx, room, 0, 0, false); !errors.Is(err, sdk.ErrRequest) {
		t.Fatalf("history of a request: %v", err)
	}
	must(t, bob.Accept(ctx, room))
	must(t, bob.Accept(ctx, room))

	first := ada.say(room, "Tea at five? 🫖")
	bob.reads(room, "Tea at five? 🫖")
	chats, err := bob.Chats(ctx)
	must(t, err)
	if len(chats) != 1 || chats[0].Title != "Tea" {
		t.Fatalf("chats %+v", chats)
	}
	l, err := bob.LineAt(ctx, room, first.Seq)
	must(t, err)
	sent, err := bob.Send(ctx, room, sdk.Draft{Text: "Yes, and cake", ReplyTo: l.ID})
	must(t, err)
	_, err = bob.Edit(ctx, room, sent.Seq, "Yes, and scones")
	must(t, err)
	_, err = bob.React(ctx, room, first.Seq, "👍")
	must(t, err)
	ada.reads(room, "Tea at five? 🫖", "Yes, and scones")
	if _, err := ada.Edit(ctx, room, sent.Seq, "No"); !errors.Is(err, sdk.ErrAuthor) {
		t.Fatalf("an edit of another's message: %v", err)
	}
	_, err = bob.Delete(ctx, room, sent.Seq)
	must(t, err)
	ada.restart()
	bob.restart()
	ada.reads(room, "Tea at five? 🫖")
	bob.reads(room, "Tea at five? 🫖")
	found, err := bob.Search(ctx, "tea at", nil, 10)
	must(t, err)
	if len(found) != 1 || found[0].Seq != first.Seq {
		t.Fatalf("found %+v", found)
	}
	if found, err := ada.Search(ctx, "scones", nil, 10); err != nil || len(found) != 0 {
		t.Fatalf("a deleted message is found: %v %v", found, err)
	}
	members, err := bob.Members(ctx, room)
	must(t, err)
	if len(members) != 2 {
		t.Fatalf("members %+v", members)
	}
}

func TestSendingOneDraftTwiceIsOneMessage(t *testing.T) {
	h := newHome(t)
	ada := newPerson(t, h, "ada")
	room, err := ada.NewRoom(t.Context(), "One")
	must(t, err)
	d := sdk.Draft{Text: "once", Key: [16]byte{1}}
	first, err := ada.Send(t.Context(), room, d)
	must(t, err)
	second, err := ada.Send(t.Context(), room, d)
	must(t, err)
	if first != second {
		t.Fatalf("%+v and %+v", first, second)
	}
	ada.reads(room, "once")
}

func TestRemovedReadsNothingAfter(t *testing.T) {
	h := newHome(t)
	ada, bob, carl := newPerson(t, h, "ada"), newPerson(t, h, "bob"), newPerson(t, h, "carl")
	ctx := t.Context()
	room, err := ada.NewRoom(ctx, "Three")
	must(t, err)
	ada.invite(room, bob)
	ada.invite(room, carl)
	ada.say(room, "all")
	carl.reads(room, "all")
	must(t, ada.Remove(ctx, room, carl.Identity()))
	ada.say(room, "without")
	bob.reads(room, "all", "without")
	carl.reads(room, "all")
	if _, err := carl.Send(ctx, room, sdk.Draft{Text: "still here?"}); !errors.Is(err, sdk.ErrOut) {
		t.Fatalf("a removed device sends: %v", err)
	}
	must(t, bob.Leave(ctx, room))
	ada.say(room, "alone")
	members, err := ada.Members(ctx, room)
	must(t, err)
	if len(members) != 1 {
		t.Fatalf("members %+v", members)
	}
	must(t, ada.Add(ctx, room, carl.Identity()))
	must(t, carl.Accept(ctx, room))
	ada.say(room, "back")
	carl.reads(room, "all", "back")
}

func TestPhraseBringsEverythingBack(t *testing.T) {
	h := newHome(t)
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	ctx := t.Context()
	room, err := ada.NewRoom(ctx, "Kept")
	must(t, err)
	ada.invite(room, bob)
	ada.say(room, "before")

	again := &person{t: t, path: filepath.Join(t.TempDir(), "again.db"), seal: bytes.Repeat([]byte{9}, sdk.SealKeySize)}
	again.Engine, err = sdk.Restore(ctx, again.config(), h.url, ada.words)
	must(t, err)
	t.Cleanup(func() { _ = again.Close() })
	if again.Identity() != ada.Identity() || again.Name() != "ada" {
		t.Fatalf("restored %s as %q", again.Identity(), again.Name())
	}
	chats, err := again.Chats(ctx)
	must(t, err)
	if len(chats) != 1 || chats[0].Title != "Kept" {
		t.Fatalf("chats %+v", chats)
	}
	again.say(room, "from the new device")
	bob.reads(room, "before", "from the new device")
	must(t, again.Revoke(ctx, ada.Device(), nil))
	bob.say(room, "after the revocation")
	if _, err := ada.Send(ctx, room, sdk.Draft{Text: "thief"}); err == nil {
		t.Fatal("a revoked device sends")
	} else {
		t.Log(err)
	}
	again.reads(room, "from the new device", "after the revocation")
}

func TestFilesArrive(t *testing.T) {
	h := newHome(t)
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	ctx := t.Context()
	room, err := ada.NewRoom(ctx, "Files")
	must(t, err)
	ada.invite(room, bob)
	for _, size := range []int{1, 150_000, 9_000_001} {
		data := make([]byte, size)
		_, _ = rand.Read(data)
		f := &sdk.File{Name: "film.bin", Type: "application/octet-stream", Size: int64(size), Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
		sent, err := ada.Send(ctx, room, sdk.Draft{Text: "Look", File: f})
		must(t, err)
		a, err := bob.Attachment(ctx, room, sent.Seq)
		must(t, err)
		var sealed, plain bytes.Buffer
		must(t, bob.Download(ctx, a, 0, &sealed, nil))
		must(t, a.Open(&plain, &sealed, a.Size, content.NewAESGCM))
		if !bytes.Equal(plain.Bytes(), data) {
			t.Fatalf("%d bytes arrive as %d other ones", size, plain.Len())
		}
	}
}

func TestOfflineMessagesGoOutLater(t *testing.T) {
	h := newHome(t)
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	ctx := t.Context()
	room, err := ada.NewRoom(ctx, "Later")
	must(t, err)
	ada.invite(room, bob)
	h.stop()
	drafts := []sdk.Draft{{Text: "while it was down"}, {Text: "one more", Key: [16]byte{1}}, {Text: "and another", Key: [16]byte{2}}}
	for range 2 { // said again with its key it is the same message
		for i, d := range drafts {
			if _, err := ada.Send(ctx, room, d); !errors.Is(err, client.ErrOffline) || !errors.Is(err, sdk.ErrKept) {
				t.Fatalf("message %d without a service: %v", i, err)
			}
		}
		drafts = drafts[1:]
	}
	ada.restart()
	h.start()
	ada.say(room, "now")
	sent, err := ada.Send(ctx, room, drafts[0])
	must(t, err)
	if sent.Seq == 0 || sent.Chat != room {
		t.Errorf("what was sent before is said to be %+v", sent)
	}
	bob.reads(room, "while it was down", "one more", "and another", "now")
	ada.reads(room, "while it was down", "one more", "and another", "now")
}

// TestUnsentFileIsNotKept: a file whose upload did not happen leaves no message
// behind, and the error does not claim one.
func TestUnsentFileIsNotKept(t *testing.T) {
	h := newHome(t)
	ada := newPerson(t, h, "ada")
	ctx := t.Context()
	room, err := ada.NewRoom(ctx, "Files")
	must(t, err)
	h.stop()
	file := &sdk.File{Name: "a.txt", Type: "text/plain", Size: 1, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("a")), nil
	}}
	if _, err := ada.Send(ctx, room, sdk.Draft{File: file, Key: [16]byte{1}}); !errors.Is(err, client.ErrOffline) || errors.Is(err, sdk.ErrKept) {
		t.Fatalf("a file without a service: %v", err)
	}
	h.start()
	ada.say(room, "now")
	ada.reads(room, "now")
}

func TestListenHearsOnce(t *testing.T) {
	h := newHome(t)
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	ctx := t.Context()
	room, err := ada.NewRoom(ctx, "Ear")
	must(t, err)
	ada.invite(room, bob)
	ada.say(room, "one")
	heard := make(chan string, 10)
	done := make(chan error, 1)
	go func() {
		done <- bob.Listen(ctx, sdk.Listening{Room: &room}, func(l sdk.Line) error {
			heard <- l.Text
			if len(l.Text) > 4 {
				return sdk.ErrEnough
			}
			return nil
		})
	}()
	if got := <-heard; got != "one" {
		t.Fatalf("heard %q", got)
	}
	ada.say(room, "two")
	if got := <-heard; got != "two" {
		t.Fatalf("heard %q", got)
	}
	ada.say(room, "three")
	if got := <-heard; got != "three" {
		t.Fatalf("heard %q", got)
	}
	must(t, <-done)
	ada.say(room, "four!")
	must(t, bob.Listen(ctx, sdk.Listening{Room: &room}, func(l sdk.Line) error {
		if l.Text != "four!" {
			t.Errorf("heard %q again", l.Text)
		}
		return sdk.ErrEnough
	}))
}

// TestListeningEndsInTheMiddle: the time of a listening ends while a line is given, before
// its place is stored. That is no error, and what is heard then is heard once.
func TestListeningEndsInTheMiddle(t *testing.T) {
	h := newHome(t)
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room := ada.room("Ear")
	ada.invite(room, bob)
	want := []string{"one", "two", "three"}
	for _, text := range want {
		ada.say(room, text)
	}
	must(t, bob.Sync(t.Context()))
	zero := uint64(0)
	for name, l := range map[string]sdk.Listening{"a look at a part": {Room: &room, Since: &zero}, "the profile's own": {Room: &room}} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var got []string
		if err := bob.Listen(ctx, l, func(l sdk.Line) error {
			got = append(got, l.Text)
			cancel()
			return nil
		}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: heard %q, want %q", name, got, want)
		}
	}
}

// TestEachChatHasAPlaceOfItsOwn: where a profile has stopped listening counts for one
// chat, whatever is heard of another, and a look at what lies after a number moves none.
func TestEachChatHasAPlaceOfItsOwn(t *testing.T) {
	h := newHome(t)
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	ctx := t.Context()
	tea, rum := ada.room("Tea"), ada.room("Rum")
	ada.invite(tea, bob)
	ada.invite(rum, bob)
	first := ada.say(tea, "tea 1")
	ada.say(rum, "rum 1")
	ada.say(tea, "tea 2")
	hears := func(l sdk.Listening, want ...string) {
		t.Helper()
		var got []string
		must(t, bob.Listen(ctx, l, func(l sdk.Line) error {
			if got = append(got, l.Text); len(got) == len(want) {
				return sdk.ErrEnough
			}
			return nil
		}))
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("heard %q, want %q", got, want)
		}
	}
	zero := uint64(0)
	hears(sdk.Listening{Room: &tea, Since: &zero}, "tea 1", "tea 2")
	hears(sdk.Listening{Room: &tea, Since: &first.Seq}, "tea 2")
	hears(sdk.Listening{Room: &tea}, "tea 1")
	hears(sdk.Listening{Room: &tea, Since: &zero}, "tea 1", "tea 2")
	bob.restart()
	hears(sdk.Listening{}, "rum 1", "tea 2")
	ada.say(rum, "rum 2")
	ada.say(tea, "tea 3")
	hears(sdk.Listening{Room: &rum}, "rum 2")
	hears(sdk.Listening{}, "tea 3")
}
