//go:build unix

package local

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/sdk"
)

func TestSecondProcessTalksToTheFirst(t *testing.T) {
	dir := shortDir(t)
	startOwner(t, dir)
	h := open2(t, dir, &fake{name: "this process"})
	if h.Owns() {
		t.Fatal("two processes own one profile")
	}
	self, err := h.Self(t.Context(), None{})
	if err != nil || self.Profile != "other process" {
		t.Fatalf("%+v, %v", self, err)
	}
}

func TestErrorsCrossWithCodeAndAdvice(t *testing.T) {
	dir := shortDir(t)
	first := open2(t, dir, &fake{})
	second := open2(t, dir, &fake{})
	_, here := first.Leave(t.Context(), RoomRequest{Chat: chat})
	if !errors.Is(here, errFake) {
		t.Fatalf("the owner itself gets %v", here)
	}
	_, there := second.Leave(t.Context(), RoomRequest{Chat: chat})
	var shown *Error
	if !errors.As(there, &shown) || *shown != *explainFake(here) {
		t.Fatalf("the other gets %#v, want what the owner would show", there)
	}
}

func TestKilledOwnerIsReplacedAndListeningGoesOn(t *testing.T) {
	dir := shortDir(t)
	other := startOwner(t, dir)
	f := &fake{name: "this process", rows: 5}
	h := open2(t, dir, f)
	since := uint64(0)
	var got []string
	_, err := h.Listen(t.Context(), ListenRequest{Since: &since}, func(r Row) error {
		got = append(got, r.Text)
		if r.Seq == 2 {
			other.kill()
		}
		if r.Seq == 5 {
			return ErrStop
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// Rows 1 and 2, perhaps 3, came from the process that was killed; each number came once.
	if len(got) != 5 || got[0] != "other process" || got[4] != "this process" {
		t.Fatalf("heard %q", got)
	}
	if !h.Owns() {
		t.Fatal("nobody owns the profile")
	}
}

func TestKilledOwnerLeavesAChangeToTheNext(t *testing.T) {
	dir := shortDir(t)
	other := startOwner(t, dir)
	f := &fake{name: "this process", entered: make(chan string, 1), release: make(chan struct{})}
	close(f.release)
	h := open2(t, dir, f)
	failed := make(chan error, 1)
	go func() {
		_, err := h.Add(context.Background(), MemberRequest{Chat: chat})
		failed <- err
	}()
	other.says("add")
	other.kill()
	if err := <-failed; err != nil || <-f.entered != "add" {
		t.Fatalf("the next owner was not asked: %v", err)
	}
}

// TestWhatWouldDoubleCarriesAKey: every request that makes something new has a key,
// which crosses the socket.
func TestWhatWouldDoubleCarriesAKey(t *testing.T) {
	dir := shortDir(t)
	other := startOwner(t, dir)
	f := &keyed{keys: map[string]Key{}}
	h := open2(t, dir, &f.fake)
	h.config.Own = func(ctx context.Context) (Profile, io.Closer, error) {
		_, lock, err := config(dir, &f.fake).Own(ctx)
		return f, lock, err
	}
	want := map[string]Key{}
	for i, call := range []func(Key) error{
		func(k Key) error { _, err := h.Edit(t.Context(), EditRequest{Key: k, Chat: chat}); return err },
		func(k Key) error { _, err := h.Delete(t.Context(), DeleteRequest{Key: k, Chat: chat}); return err },
		func(k Key) error { _, err := h.React(t.Context(), ReactRequest{Key: k, Chat: chat}); return err },
		func(k Key) error { _, err := h.NewRoom(t.Context(), NewRoomRequest{Key: k}); return err },
	} {
		k := Key{byte(i + 1)}
		want[[]string{"edit", "delete", "react", "room"}[i]] = k
		failed := make(chan error, 1)
		if i == 0 { // the other process does not answer, and is killed
			go func() { failed <- call(k) }()
			other.says("edit")
			other.kill()
		} else {
			failed <- call(k)
		}
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	if !maps.Equal(f.keys, want) {
		t.Fatalf("the next owner got the keys %v, want %v", f.keys, want)
	}
}

// keyed notes the keys of what it is asked.
type keyed struct {
	fake
	keys map[string]Key
}

func (k *keyed) Edit(_ context.Context, r EditRequest) (Sent, error) {
	k.keys["edit"] = r.Key
	return Sent{}, nil
}

func (k *keyed) Delete(_ context.Context, r DeleteRequest) (Sent, error) {
	k.keys["delete"] = r.Key
	return Sent{}, nil
}

func (k *keyed) React(_ context.Context, r ReactRequest) (Sent, error) {
	k.keys["react"] = r.Key
	return Sent{}, nil
}

func (k *keyed) NewRoom(_ context.Context, r NewRoomRequest) (Room, error) {
	k.keys["room"] = r.Key
	return Room{}, nil
}

func TestEndingOwnerHandsListeningOver(t *testing.T) {
	dir := shortDir(t)
	other := startOwner(t, dir)
	h := open2(t, dir, &fake{name: "this process", rows: 4})
	since := uint64(0)
	var got []uint64
	_, err := h.Listen(t.Context(), ListenRequest{Since: &since}, func(r Row) error {
		got = append(got, r.Seq)
		switch r.Seq {
		case 3:
			return other.in.Close()
		case 4:
			return ErrStop
		}
		return nil
	})
	if err != nil || len(got) != 4 {
		t.Fatalf("heard %v, %v", got, err)
	}
}

func TestEndingOwnerFinishesChanges(t *testing.T) {
	dir := shortDir(t)
	f := &fake{release: make(chan struct{}), entered: make(chan string, 4)}
	first := open2(t, dir, f)
	second := open2(t, dir, &fake{})
	added := make(chan error, 1)
	go func() {
		_, err := second.Add(context.Background(), MemberRequest{Chat: chat})
		added <- err
	}()
	<-f.entered
	closed := make(chan error, 1)
	go func() { closed <- first.Close() }()
	close(f.release)
	if err := errors.Join(<-added, <-closed); err != nil {
		t.Fatal(err)
	}
}

func TestEndingOwnerDoesNotWaitForever(t *testing.T) {
	dir := shortDir(t)
	f := &fake{release: make(chan struct{}), entered: make(chan string, 4)}
	first := open2(t, dir, f)
	first.own.grace = time.Millisecond
	second := open2(t, dir, &fake{})
	added := make(chan error, 1)
	go func() {
		_, err := second.Add(context.Background(), MemberRequest{Chat: chat})
		added <- err
	}()
	<-f.entered
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-added; err == nil {
		t.Fatal("a call that was broken off succeeded")
	}
}

func TestWhoGoesCancelsItsCall(t *testing.T) {
	dir := shortDir(t)
	f := &fake{release: make(chan struct{}), entered: make(chan string, 4)}
	open2(t, dir, f)
	second := open2(t, dir, &fake{})
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := second.Add(ctx, MemberRequest{Chat: chat})
		failed <- err
	}()
	if call := <-f.entered; call != "add" {
		t.Fatal(call)
	}
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if call := <-f.entered; call != "add cancelled" {
		t.Fatal(call)
	}
}

func TestTheCursorPassesWhatWasTaken(t *testing.T) {
	refusal := errors.New("the printer is gone")
	for _, test := range []struct {
		name   string
		end    error
		marked int64
	}{
		{"enough", ErrStop, 2},
		{"failed", refusal, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := shortDir(t)
			f := &fake{rows: 3}
			first := open2(t, dir, f)
			second := open2(t, dir, &fake{})
			_, err := second.Listen(t.Context(), ListenRequest{}, func(r Row) error {
				if r.Seq == 2 {
					return test.end
				}
				return nil
			})
			if test.end == refusal && !errors.Is(err, refusal) || test.end == ErrStop && err != nil {
				t.Fatal(err)
			}
			if err := first.Close(); err != nil { // waits for the call's end
				t.Fatal(err)
			}
			if got := f.marked.Load(); got != test.marked {
				t.Fatalf("the cursor stands at %d, want %d", got, test.marked)
			}
		})
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	dir := shortDir(t)
	other := startOwner(t, dir)
	other.kill()
	_ = other.cmd.Wait() // killed: an error
	path := filepath.Join(dir, "socket")
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("the killed process left no socket: %v", err)
	}
	if h := open2(t, dir, &fake{}); !h.Owns() {
		t.Fatal("the stale socket was taken for a process")
	}
}

func TestOnlyTheUserMayConnect(t *testing.T) {
	dir := shortDir(t)
	open2(t, dir, &fake{})
	info, err := os.Stat(filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Fatalf("the socket's mode is %v", info.Mode().Perm())
	}
}

func TestLongPathsWork(t *testing.T) {
	dir := filepath.Join(shortDir(t), strings.Repeat("long", 40))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", shortDir(t))
	open2(t, dir, &fake{name: "first"})
	second := open2(t, dir, &fake{name: "second"})
	if self, err := second.Self(t.Context(), None{}); err != nil || self.Profile != "first" {
		t.Fatalf("%+v, %v", self, err)
	}
}

func TestAFolderOfOthersIsRefused(t *testing.T) {
	dir := filepath.Join(shortDir(t), strings.Repeat("long", 40))
	tmp := shortDir(t)
	t.Setenv("TMPDIR", tmp)
	base, err := socketPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(base), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := socketPath(dir); err == nil {
		t.Fatal("a folder that others may write to was taken")
	}
}

func TestABusyProfileWithoutAProcessThatAnswers(t *testing.T) {
	dir := shortDir(t)
	c := config(dir, &fake{})
	_, lock, err := c.Own(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	c.Patience = time.Millisecond
	if _, err := Open(t.Context(), c); !errors.Is(err, ErrBusy) {
		t.Fatalf("got %v, want ErrBusy", err)
	}
}

// hostile sends raw bytes to an owner and returns what it answers until it hangs up.
func hostile(t *testing.T, send []byte) []byte {
	t.Helper()
	dir := shortDir(t)
	first := open2(t, dir, &fake{name: "first"})
	conn, err := net.Dial("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write(send); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) { // hung up with bytes unread
		t.Fatal(err)
	}
	// The owner goes on.
	if self, err := open2(t, dir, &fake{}).Self(t.Context(), None{}); err != nil || self.Profile != "first" {
		t.Fatalf("%+v, %v", self, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestNonsenseIsHungUpOn(t *testing.T) {
	for name, send := range map[string][]byte{
		"huge length":  binary.BigEndian.AppendUint32(nil, 1<<31),
		"empty frame":  {0, 0, 0, 0},
		"wrong type":   {0, 0, 0, 3, byte(frameDone), '{', '}'},
		"no JSON":      {0, 0, 0, 2, byte(frameHello), '{'},
		"HTTP request": []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			if answer := hostile(t, send); len(answer) > 0 {
				t.Fatalf("answered %q", answer)
			}
		})
	}
}

func helloFrame(t *testing.T, h hello) []byte {
	t.Helper()
	var b strings.Builder
	if err := writeFrame(&b, frameHello, h); err != nil {
		t.Fatal(err)
	}
	return []byte(b.String())
}

func TestAnotherVersionIsTold(t *testing.T) {
	for name, h := range map[string]hello{
		"protocol": {protocol + 1, "self", json.RawMessage("{}"), 0},
		"call":     {protocol, "no such call", json.RawMessage("{}"), 0},
		"request":  {protocol, "self", json.RawMessage("[1]"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			answer := hostile(t, helloFrame(t, h))
			kind, body, err := readFrame(strings.NewReader(string(answer)), maxAnswer)
			var e Error
			if err != nil || kind != frameFailed || json.Unmarshal(body, &e) != nil || e.Detail == "" {
				t.Fatalf("type %d, %s, %v", kind, body, err)
			}
		})
	}
}

func TestAnAnswerThatIsTooLargeIsAnError(t *testing.T) {
	dir := shortDir(t)
	open2(t, dir, &fake{})
	second := open2(t, dir, &fake{})
	_, err := second.Chats(t.Context(), None{})
	var shown *Error
	if !errors.As(err, &shown) || !strings.Contains(shown.Detail, "limit") {
		t.Fatalf("got %v", err)
	}
}

// TestHugeAnswersOfAFalseOwner: whoever listens there may promise anything.
func TestHugeAnswersOfAFalseOwner(t *testing.T) {
	dir := shortDir(t)
	l, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _, _ = readFrame(conn, maxRequest)
			_, _ = conn.Write(binary.BigEndian.AppendUint32(nil, 1<<32-1))
		}
	}()
	h := open2(t, dir, &fake{})
	if _, err := h.Self(t.Context(), None{}); !errors.Is(err, ErrFrame) {
		t.Fatalf("got %v, want ErrFrame", err)
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte{0, 0, 0, 3, 1, '{', '}'})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		kind, body, err := readFrame(strings.NewReader(string(raw)), maxRequest)
		if err != nil {
			return
		}
		if len(body) > len(raw) || byte(kind) != raw[4] {
			t.Fatalf("type %d and %d bytes of %d", kind, len(body), len(raw))
		}
	})
}

// TestRowsAreGivenOnce: an owner that is asked again gives rows again, with a place
// in their chat or without one.
func TestRowsAreGivenOnce(t *testing.T) {
	var got []string
	f := notTwice(func(r Row) error { got = append(got, r.ID); return nil })
	list := []Row{{Seq: 1, ID: "a"}, {ID: "ask"}, {Seq: 2, ID: "b"}, {Seq: 2, ID: "c"}}
	for _, r := range append(list, list...) {
		if err := f(r); err != nil {
			t.Fatal(err)
		}
	}
	if want := "a ask b c"; strings.Join(got, " ") != want {
		t.Fatalf("given %q, want %q", got, want)
	}
}

// TestPassingRowsComeAsOftenAsTheyHappen: what somebody does now is no row of the
// log, which is given once and moves the place behind it.
func TestPassingRowsComeAsOftenAsTheyHappen(t *testing.T) {
	var given []string
	f := notTwice(func(r Row) error { given = append(given, r.Kind); return nil })
	for _, r := range []Row{
		{Chat: chat, Kind: RowTyping}, {Chat: chat, Kind: RowTypingEnded}, {Chat: chat, Kind: RowTyping},
		{Chat: chat, Seq: 1, Kind: "text", ID: "a"}, {Chat: chat, Seq: 1, Kind: "text", ID: "a"},
		{Chat: chat, Kind: RowOnline}, {Chat: chat, Kind: RowOffline}, {Chat: chat, Kind: RowOnline},
	} {
		if err := f(r); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{RowTyping, RowTypingEnded, RowTyping, "text", RowOnline, RowOffline, RowOnline}
	if !slices.Equal(given, want) {
		t.Errorf("given %q, want %q", given, want)
	}
}

// TestTypingEndsWithAnotherOwner: a listener whose owner ends asks the next one,
// and tells it what it was told that goes on.
func TestTypingEndsWithAnotherOwner(t *testing.T) {
	from := identity.PublicKey{7}
	var kinds []string
	r, f := ListenRequest{Events: true}.following(func(row Row) error { kinds = append(kinds, row.Kind); return nil })
	for _, kind := range []string{RowOnline, RowTyping, RowTyping, RowOffline} {
		if err := f(Row{Chat: chat, From: from, Kind: kind}); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := json.Marshal(r) // as do asks the next owner
	if err != nil {
		t.Fatal(err)
	}
	var again ListenRequest
	if err := json.Unmarshal(raw, &again); err != nil {
		t.Fatal(err)
	}
	want := []sdk.Activity{{Room: chat, From: from, Kind: sdk.ActivityTyping}}
	if got := again.told(); !slices.Equal(got, want) {
		t.Errorf("the next owner is told %v, want %v", got, want)
	}
	if err := f(Row{Chat: chat, From: from, Kind: RowTypingEnded}); err != nil || len(r.told()) != 0 || len(kinds) != 5 {
		t.Errorf("after its end: %v %v %v", r.told(), kinds, err)
	}
	broken := errors.New("it cannot be shown")
	_, f = r.following(func(Row) error { return broken })
	if err := f(Row{Chat: chat, From: from, Kind: RowTyping}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}
