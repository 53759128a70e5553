package sdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/sdk"
)

// between stands between a device and its service and may answer in its place.
type between struct {
	client.Transport
	answer  func(method, path string, query url.Values) (status int, media string, body []byte)
	lose    func(path string) bool                   // the service gets the request and its answer is lost
	spoil   func(path string) bool                   // the service gets the request and a proxy says that it is away
	body    func(path string, r io.Reader) io.Reader // what is sent instead; nil = the same
	commits atomic.Int32                             // appends with a GroupInfo that went through
	header  atomic.Value                             // the last Authorization
}

func (b *between) Do(ctx context.Context, r client.Request) (client.Response, error) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return client.Response{}, err
	}
	if token := r.Header["Authorization"]; token != "" {
		b.header.Store(token)
	}
	if b.answer != nil {
		if status, media, body := b.answer(r.Method, u.Path, u.Query()); status != 0 {
			return client.Response{Status: status, Body: io.NopCloser(bytes.NewReader(body)), Header: func(name string) string {
				if name == "Content-Type" {
					return media
				}
				return ""
			}}, nil
		}
	}
	if strings.HasSuffix(u.Path, "/append") && r.Body != nil {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return client.Response{}, err
		}
		if a, err := delivery.ParseAppend(raw); err == nil && len(a.GroupInfo) > 0 {
			b.commits.Add(1)
		}
		r.Body = bytes.NewReader(raw)
	}
	if b.body != nil && r.Body != nil {
		r.Body = b.body(u.Path, r.Body)
	}
	if b.lose != nil && b.lose(u.Path) {
		got, err := b.Transport.Do(ctx, r)
		if err == nil {
			err = errors.Join(got.Body.Close(), errors.New("the answer was lost"))
		}
		return client.Response{}, err
	}
	if b.spoil != nil && b.spoil(u.Path) {
		got, err := b.Transport.Do(ctx, r)
		if err == nil {
			err = got.Body.Close()
		}
		page := io.NopCloser(strings.NewReader("<html>502 Bad Gateway</html>"))
		return client.Response{Status: 502, Body: page, Header: func(string) string { return "text/html" }}, err
	}
	return b.Transport.Do(ctx, r)
}

func jsonOf(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	must(t, err)
	return raw
}

func problem(t *testing.T, e *delivery.Error) []byte {
	t.Helper()
	return jsonOf(t, e.Problem())
}

// get asks the service itself, with the device's session.
func (b *between) get(p *person, base, path string) []byte {
	p.t.Helper()
	r, err := b.Transport.Do(p.t.Context(), client.Request{Method: "GET", URL: base + path, Header: map[string]string{"Authorization": b.header.Load().(string)}})
	must(p.t, err)
	defer r.Body.Close()
	raw, err := io.ReadAll(r.Body)
	must(p.t, err)
	if r.Status != 200 {
		p.t.Fatalf("%s: %d %s", path, r.Status, raw)
	}
	return raw
}

// through puts somebody in between a person and the service.
func (p *person) through() *between {
	p.t.Helper()
	must(p.t, p.Close())
	c := p.config()
	b := &between{Transport: c.Transport}
	c.Transport = b
	e, err := sdk.Open(p.t.Context(), c)
	must(p.t, err)
	p.Engine = e
	return b
}

// TestAttackRollback: a service that says it was restored shows a former state of
// the room, in which somebody is who was removed since. The device does not go
// back there, sends nothing, and goes on when the service is honest again.
func TestAttackRollback(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob, eve := newPerson(t, h, "ada"), newPerson(t, h, "bob"), newPerson(t, h, "eve")
	room, err := ada.NewRoom(ctx, "Rollback")
	must(t, err)
	ada.invite(room, bob)
	ada.invite(room, eve)
	b := bob.through()
	bob.say(room, "with Eve")
	at := "/v1/rooms/" + room.String()
	info, tree := b.get(bob, h.url, at+"/groupinfo"), b.get(bob, h.url, at+"/tree")
	must(t, ada.Remove(ctx, room, eve.Identity()))
	bob.reads(room, "with Eve")
	stale, err := json.Marshal((&delivery.Error{Code: delivery.CodeStaleEpoch, Detail: "the room is in another epoch", Epoch: 1, Seq: 1}).Problem())
	must(t, err)
	b.answer = func(method, path string, _ url.Values) (int, string, []byte) {
		switch {
		case strings.HasSuffix(path, "/append"):
			return 409, delivery.ProblemType, stale
		case strings.HasSuffix(path, "/groupinfo"):
			return 200, delivery.BinaryType, info
		case strings.HasSuffix(path, "/tree"):
			return 200, delivery.BinaryType, tree
		}
		return 0, "", nil
	}
	sent := b.commits.Load()
	if _, err := bob.Send(ctx, room, sdk.Draft{Text: "without Eve"}); !errors.Is(err, sdk.ErrStuck) {
		t.Fatalf("sending ends with %v", err)
	}
	if b.commits.Load() != sent {
		t.Error("the device went back to the state with Eve")
	}
	b.answer = nil
	must(t, bob.Flush(ctx))
	ada.reads(room, "with Eve", "without Eve")
}

// TestAttackForcedRejoinByTheService: the service puts a commit of its own making
// into the log that it shows. The device reports it and does not replace its leaf,
// because nothing shows that the room went on.
func TestAttackForcedRejoinByTheService(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Forced")
	must(t, err)
	ada.invite(room, bob)
	b := bob.through()
	last := bob.say(room, "before")
	reports := 0
	b.answer = func(method, path string, query url.Values) (int, string, []byte) {
		switch {
		case strings.HasSuffix(path, "/log"):
			forged := delivery.Entry{Seq: last.Seq + 1, Epoch: last.Epoch, Kind: delivery.KindCommit, AcceptedMS: 1, Bytes: []byte("no commit")}
			page := delivery.LogPage{Head: last.Seq + 1, First: 1, Entries: []delivery.Entry{forged}}
			return 200, delivery.BinaryType, page.AppendTo(nil)
		case strings.HasSuffix(path, "/report"):
			reports++
			return 204, "", nil
		}
		return 0, "", nil
	}
	sent := b.commits.Load()
	if err := bob.Refresh(ctx, room); !errors.Is(err, sdk.ErrStuck) {
		t.Fatalf("reading ends with %v", err)
	}
	if b.commits.Load() != sent || reports == 0 {
		t.Errorf("%d commits, %d reports", b.commits.Load()-sent, reports)
	}
	b.answer = nil
	ada.say(room, "after")
	bob.reads(room, "before", "after")
}

// TestRemovedAndAddedAgainWhileAway: the log says that the device is out, and the
// invitation behind it counts, also from somebody who came after its removal.
func TestRemovedAndAddedAgainWhileAway(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob, carl := newPerson(t, h, "ada"), newPerson(t, h, "bob"), newPerson(t, h, "carl")
	room, err := ada.NewRoom(ctx, "Again")
	must(t, err)
	ada.invite(room, bob)
	ada.say(room, "one")
	bob.reads(room, "one")
	must(t, ada.Remove(ctx, room, bob.Identity()))
	ada.invite(room, carl)
	ada.say(room, "not for Bob")
	id, err := carl.Find(ctx, "@bob")
	must(t, err)
	must(t, carl.Add(ctx, room, id))
	must(t, bob.Accept(ctx, room))
	carl.say(room, "two")
	got := bob.read(room)
	if len(got) < 2 || got[0] != "one" || got[len(got)-1] != "two" {
		t.Errorf("bob reads %q", got)
	}
}

// TestAttackWelcomeOverAnOpenRoom: an invitation to a chat that the device is in
// and up to date with, genuine in itself, does not replace what it has: the service
// shows a log without the removal that stands before it.
func TestAttackWelcomeOverAnOpenRoom(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, err := ada.NewRoom(ctx, "Replaced")
	must(t, err)
	ada.invite(room, bob)
	b := bob.through()
	last := bob.say(room, "one")
	must(t, ada.Remove(ctx, room, bob.Identity()))
	must(t, ada.Add(ctx, room, bob.Identity()))
	b.answer = func(method, path string, _ url.Values) (int, string, []byte) {
		if strings.HasSuffix(path, "/log") {
			page := delivery.LogPage{Head: last.Seq, First: 1}
			return 200, delivery.BinaryType, page.AppendTo(nil)
		}
		return 0, "", nil
	}
	must(t, bob.ReadMail(ctx))
	now, err := bob.RoomOf(ctx, room)
	must(t, err)
	if now.Epoch != last.Epoch {
		t.Errorf("the chat went from epoch %d to %d by an invitation", last.Epoch, now.Epoch)
	}
}
