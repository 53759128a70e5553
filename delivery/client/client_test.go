package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// answers is a transport that gives canned answers in order and keeps what was asked.
type answers struct {
	t     *testing.T
	queue []func(Request) (Response, error)
	asked []Request
	sent  [][]byte
}

func (a *answers) Do(_ context.Context, r Request) (Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			a.t.Fatal(err)
		}
	}
	a.asked, a.sent = append(a.asked, r), append(a.sent, body)
	if len(a.queue) == 0 {
		a.t.Fatalf("unexpected request %s %s", r.Method, r.URL)
	}
	next := a.queue[0]
	a.queue = a.queue[1:]
	return next(r)
}

func (a *answers) Dial(context.Context, string) (Socket, error) { return nil, io.EOF }

func give(status int, media string, body []byte) func(Request) (Response, error) {
	return func(Request) (Response, error) {
		header := func(name string) string {
			if name == "Content-Type" {
				return media
			}
			return ""
		}
		return Response{Status: status, Header: header, Body: io.NopCloser(bytes.NewReader(body))}, nil
	}
}

func giveJSON(v any) func(Request) (Response, error) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return give(200, "application/json", b)
}

func refuse(e *delivery.Error) func(Request) (Response, error) {
	b, err := json.Marshal(e.Problem())
	if err != nil {
		panic(err)
	}
	return give(e.Code.Status(), delivery.ProblemType, b)
}

func lost(Request) (Response, error) { return Response{}, io.ErrUnexpectedEOF }

type account struct {
	copied bool
	cut    int
}

func (*account) Device() identity.DeviceID { return identity.DeviceID{7} }
func (*account) SignLogin(identity.Home, []byte) ([]byte, error) {
	return make([]byte, 64), nil
}
func (*account) CopyCounter(context.Context) (have, want [16]byte, err error) {
	return have, [16]byte{1}, nil
}
func (a *account) LoggedIn(_ context.Context, _ [16]byte, copied bool) error {
	a.copied = copied
	return nil
}

func (a *account) CutOff(context.Context) error {
	a.cut++
	return nil
}

func newClient(t *testing.T, queue ...func(Request) (Response, error)) (*Client, *answers) {
	a := &answers{t: t, queue: queue}
	c := New(Config{Base: "https://home.example/", Transport: a, Account: &account{}, Sleep: func(context.Context, time.Duration) error { return nil }})
	return c, a
}

var (
	challenge = giveJSON(delivery.ChallengeResponse{Challenge: make([]byte, 32)})
	login     = giveJSON(delivery.SessionResponse{Token: "first"})
	again     = giveJSON(delivery.SessionResponse{Token: "second"})
	accepted  = giveJSON(delivery.Accepted{Seq: 5, Epoch: 2, AcceptedMS: 1})
	room      = delivery.RoomID{1, 2, 3, 4, 5, 6, 0x80, 0, 0x80}
	entry     = delivery.AppendRequest{Entry: []byte("ciphertext")}
)

// An append whose answers were lost goes out again with the very same bytes.
func TestAppendRepeatsTheSameBytes(t *testing.T) {
	c, a := newClient(t, challenge, login, lost, refuse(delivery.Refuse(delivery.CodeRetry, "busy")), accepted)
	got, err := c.Append(t.Context(), room, entry)
	if err != nil || got.Seq != 5 {
		t.Fatalf("%+v, %v", got, err)
	}
	for i := 3; i < 5; i++ {
		if !bytes.Equal(a.sent[i], a.sent[2]) {
			t.Errorf("try %d sent other bytes", i-1)
		}
	}
}

func TestDefinitiveRefusalIsNotRepeated(t *testing.T) {
	home := identity.Home{9, 9, 9}
	for _, want := range []*delivery.Error{
		{Code: delivery.CodeStaleEpoch, Detail: "d", Epoch: 7}, {Code: delivery.CodeCommitFirst, Detail: "d", Epoch: 7},
		{Code: delivery.CodeGoElsewhere, Detail: "d", Home: &home}, {Code: delivery.CodeRefused, Detail: "d"},
		{Code: delivery.CodeHealing, Detail: "d"}, {Code: delivery.CodeFull, Detail: "d"},
	} {
		c, a := newClient(t, challenge, login, refuse(want))
		_, err := c.Append(t.Context(), room, entry)
		var got *delivery.Error
		if !errors.As(err, &got) || got.Code != want.Code || got.Epoch != want.Epoch || len(a.asked) != 3 {
			t.Errorf("%s: %v after %d requests", want.Code, err, len(a.asked))
		}
	}
}

// TestLoginWaitsForItsBudget: a device that has logged in too often comes in when the
// service says that it may, with a new challenge; not without end, and who would have to
// wait for long hears for how long.
func TestLoginWaitsForItsBudget(t *testing.T) {
	slow := refuse(&delivery.Error{Code: delivery.CodeSlowDown, Detail: "login", RetryAfter: time.Second})
	c, a := newClient(t, challenge, slow, challenge, slow, challenge, login, accepted)
	var waited []time.Duration
	c.Sleep = func(_ context.Context, d time.Duration) error { waited = append(waited, d); return nil }
	if _, err := c.Append(t.Context(), room, entry); err != nil || len(a.asked) != 7 {
		t.Fatalf("%v after %d requests", err, len(a.asked))
	}
	if len(waited) != 2 || waited[0] < time.Second || waited[1] > 2*time.Second {
		t.Errorf("waited %v", waited)
	}
	c, a = newClient(t, challenge, slow, challenge, slow, challenge, slow, challenge, slow)
	if _, err := c.Append(t.Context(), room, entry); delivery.CodeOf(err) != delivery.CodeSlowDown || len(a.asked) != 8 {
		t.Errorf("%v after %d requests", err, len(a.asked))
	}
	long := refuse(&delivery.Error{Code: delivery.CodeSlowDown, Detail: "login", RetryAfter: time.Minute})
	c, a = newClient(t, challenge, long)
	_, err := c.Append(t.Context(), room, entry)
	var got *delivery.Error
	if !errors.As(err, &got) || got.RetryAfter != time.Minute || len(a.asked) != 2 {
		t.Errorf("%v after %d requests", err, len(a.asked))
	}
	c, _ = newClient(t, challenge, slow)
	c.Sleep = func(context.Context, time.Duration) error { return context.Canceled }
	if err := c.Ensure(t.Context()); !errors.Is(err, context.Canceled) || !errors.Is(err, ErrOffline) {
		t.Errorf("given up while it waits: %v", err)
	}
}

func TestEndedSessionLogsInOnceMore(t *testing.T) {
	ended := refuse(delivery.Refuse(delivery.CodeLogIn, "ended"))
	c, a := newClient(t, challenge, login, ended, challenge, again, accepted)
	if _, err := c.Append(t.Context(), room, entry); err != nil {
		t.Fatal(err)
	}
	if got := a.asked[5].Header["Authorization"]; got != "Bearer second" {
		t.Errorf("the last request carries %q", got)
	}
	c, _ = newClient(t, challenge, login, ended, challenge, again, ended)
	if _, err := c.Append(t.Context(), room, entry); delivery.CodeOf(err) != delivery.CodeLogIn {
		t.Errorf("a session refused twice: %v", err)
	}
}

// A call whose session ended while another call logged in takes that session: one
// more login would end it.
func TestEndedSessionIsNotRenewedTwice(t *testing.T) {
	var c *Client
	ended := refuse(delivery.Refuse(delivery.CodeLogIn, "ended"))
	meanwhile := func(r Request) (Response, error) {
		if err := c.Login(t.Context()); err != nil {
			t.Error(err)
		}
		return ended(r)
	}
	c, a := newClient(t, challenge, login, meanwhile, challenge, again, accepted)
	if _, err := c.Append(t.Context(), room, entry); err != nil {
		t.Fatal(err)
	}
	if got := a.asked[5].Header["Authorization"]; len(a.asked) != 6 || got != "Bearer second" {
		t.Errorf("request %d carries %q", len(a.asked), got)
	}
}

// A client whose session another copy of the profile has taken over leaves it that
// copy: it says so once, and asks for none any more.
func TestCutOffByACopy(t *testing.T) {
	ended := refuse(delivery.Refuse(delivery.CodeLogIn, "ended"))
	c, a := newClient(t, challenge, login, ended, challenge, giveJSON(delivery.SessionResponse{Copied: true}))
	for range 2 {
		if _, err := c.Append(t.Context(), room, entry); !errors.Is(err, ErrCopied) || delivery.CodeOf(err) != "" {
			t.Fatalf("got %v", err)
		}
	}
	who := c.Account.(*account)
	if len(a.asked) != 5 || who.cut != 1 || who.copied {
		t.Errorf("%d requests, %+v", len(a.asked), who)
	}
	var first, second delivery.SessionRequest
	if err := errors.Join(json.Unmarshal(a.sent[1], &first), json.Unmarshal(a.sent[4], &second)); err != nil || first.Resume || !second.Resume {
		t.Errorf("%v: resume is %v, then %v", err, first.Resume, second.Resume)
	}
}

// What a proxy or a wrong address answers is not taken for the protocol.
func TestGarbageIsNamed(t *testing.T) {
	for name, answer := range map[string]func(Request) (Response, error){
		"a page": give(200, "text/html", []byte("<html>")), "a page not found": give(404, "text/html", nil),
		"a redirect": give(302, "text/html", nil), "no seq": giveJSON(struct{}{}),
	} {
		c, _ := newClient(t, challenge, login, answer)
		if _, err := c.Append(t.Context(), room, entry); !errors.Is(err, ErrGarbage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, _ := newClient(t, lost, lost, lost, lost)
	if _, err := c.Append(t.Context(), room, entry); !errors.Is(err, ErrOffline) {
		t.Errorf("no answer: %v", err)
	}
}

func TestLogWithAGapIsGarbage(t *testing.T) {
	page := func(seqs ...uint64) func(Request) (Response, error) {
		p := delivery.LogPage{Head: 9, First: 1}
		for _, s := range seqs {
			kind := delivery.KindApplication
			if s >= delivery.IncarnationJump {
				kind = delivery.KindIncarnation
			}
			p.Entries = append(p.Entries, delivery.Entry{Seq: s, Kind: kind})
		}
		return give(200, delivery.BinaryType, p.AppendTo(nil))
	}
	for _, seqs := range [][]uint64{{1, 3}, {2, 1}, {1, 1}} {
		c, _ := newClient(t, challenge, login, page(seqs...))
		if _, err := c.Log(t.Context(), room, 0, 0); !errors.Is(err, ErrGarbage) {
			t.Errorf("%v: %v", seqs, err)
		}
	}
	c, _ := newClient(t, challenge, login, page(1, 2, 2+delivery.IncarnationJump))
	if _, err := c.Log(t.Context(), room, 0, 0); err != nil {
		t.Errorf("an incarnation's jump: %v", err)
	}
}

// A page that does not go beyond where it was asked from would be asked for again
// without end.
func TestPageThatDoesNotAdvanceIsGarbage(t *testing.T) {
	const after = 7
	for _, seqs := range [][]uint64{{7}, {3, 4}, {1, 2, 3, 4, 5, 6, 7, 8}} {
		p := delivery.LogPage{Head: 9, First: 1}
		for _, s := range seqs {
			p.Entries = append(p.Entries, delivery.Entry{Seq: s, Kind: delivery.KindApplication})
		}
		c, _ := newClient(t, challenge, login, give(200, delivery.BinaryType, p.AppendTo(nil)))
		if _, err := c.Log(t.Context(), room, after, 0); !errors.Is(err, ErrGarbage) {
			t.Errorf("log %v: %v", seqs, err)
		}
	}
	mail := func(more bool, ids ...uint64) error {
		r := delivery.MailResponse{More: more}
		for _, id := range ids {
			r.Items = append(r.Items, delivery.MailView{ID: id, Kind: delivery.MailLowKeys})
		}
		c, _ := newClient(t, challenge, login, giveJSON(r))
		got, err := c.Mailbox(t.Context(), after)
		if err == nil && len(got.Items) != len(ids) {
			t.Errorf("mail %v: %v", ids, got.Items)
		}
		return err
	}
	for _, ids := range [][]uint64{{7}, {3}, {9, 8}, {8, 8}, {}} {
		if err := mail(true, ids...); !errors.Is(err, ErrGarbage) {
			t.Errorf("mail %v: %v", ids, err)
		}
	}
	if err := mail(true, 8, 10); err != nil {
		t.Errorf("mail that goes on: %v", err)
	}
	if err := mail(false); err != nil {
		t.Errorf("no mail: %v", err)
	}
}

// A demand for work is answered once, over the entry, and not beyond reason.
func TestDemandForWorkIsAnsweredOnce(t *testing.T) {
	work := &delivery.Error{Code: delivery.CodeSolveWork, Detail: "d", Work: &delivery.Work{Seed: []byte("seed"), Bits: 10}}
	c, a := newClient(t, challenge, login, refuse(work), accepted)
	if _, err := c.Append(t.Context(), room, entry); err != nil {
		t.Fatal(err)
	}
	var nonce []byte
	for i := 0; i+1 < len(a.asked[3].Header[delivery.HeaderWork]); i += 2 {
		var b byte
		for _, h := range a.asked[3].Header[delivery.HeaderWork][i : i+2] {
			b = b<<4 | byte(bytes.IndexByte([]byte("0123456789abcdef"), byte(h)))
		}
		nonce = append(nonce, b)
	}
	if bits := delivery.WorkBits([]byte("seed"), identity.DeviceID{7}, sha256.Sum256(entry.Entry), nonce); bits < 10 {
		t.Errorf("the answer is worth %d bits", bits)
	}
	c, _ = newClient(t, challenge, login, refuse(work), refuse(work))
	if _, err := c.Append(t.Context(), room, entry); delivery.CodeOf(err) != delivery.CodeSolveWork {
		t.Errorf("a second demand: %v", err)
	}
	work.Work.Bits = 40
	c, _ = newClient(t, challenge, login, refuse(work))
	if _, err := c.Append(t.Context(), room, entry); delivery.CodeOf(err) != delivery.CodeSlowDown {
		t.Errorf("40 bits: %v", err)
	}
}

// Values from people cannot reach another route or parameter.
func TestPathAndQueryAreEscaped(t *testing.T) {
	c, a := newClient(t, challenge, login, giveJSON(delivery.ProfilesResponse{}))
	if _, err := c.SearchPeople(t.Context(), "a&username=b/../\x00é"); err != nil {
		t.Fatal(err)
	}
	if got, want := a.asked[2].URL, "https://home.example/v1/people?prefix=a%26username%3Db%2F..%2F%00%C3%A9"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// A session that another process left is tried first, and replaced when it is over:
// without a word, and as by a process that has just started.
func TestKeptSession(t *testing.T) {
	kept := func(queue ...func(Request) (Response, error)) (*Client, *answers) {
		_, a := newClient(t, queue...)
		return New(Config{Base: "https://home.example", Transport: a, Account: &account{}, Kept: "kept", Tries: 1}), a
	}
	ended := refuse(delivery.Refuse(delivery.CodeLogIn, "ended"))
	known := giveJSON(struct{}{})

	c, a := kept(known, accepted, ended, challenge, giveJSON(delivery.SessionResponse{Copied: true}))
	if _, err := c.Append(t.Context(), room, entry); err != nil {
		t.Fatal(err)
	}
	if got := a.asked[1].Header["Authorization"]; got != "Bearer kept" {
		t.Errorf("the request carries %q", got)
	}
	// From then on it is this process's own: a copy that takes over keeps it.
	if _, err := c.Append(t.Context(), room, entry); !errors.Is(err, ErrCopied) || c.Leave() != "" {
		t.Errorf("got %v", err)
	}

	c, a = kept(ended, challenge, login, accepted)
	if _, err := c.Append(t.Context(), room, entry); err != nil {
		t.Fatal(err)
	}
	var req delivery.SessionRequest
	if err := json.Unmarshal(a.sent[2], &req); err != nil || req.Resume {
		t.Errorf("%v, %+v", err, req)
	}
	left := c.Leave()
	if left == "" || left == "kept" || c.Leave() != "" {
		t.Error("what it leaves is not its own session, or is left twice")
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		for _, v := range []any{left, Config{Kept: left}} {
			if got := fmt.Sprintf(verb, v); strings.Contains(got, string(left)) || strings.Contains(got, fmt.Sprintf("%x", []byte(left))) {
				t.Errorf("%s prints %s", verb, got)
			}
		}
	}

	c, _ = kept(lost)
	if _, err := c.Append(t.Context(), room, entry); !errors.Is(err, ErrOffline) || c.Leave() != "kept" {
		t.Errorf("offline: %v, and the session is not left to the next", err)
	}
}
