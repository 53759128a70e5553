package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/identity/phrase"
	"github.com/askucher/compax-core/sdk"
	"github.com/askucher/compax-core/sdk/local"
)

// fake is a profile that records what it is asked and answers what a test says.
type fake struct {
	local.Profile
	asked          []string
	rows           []local.Row
	chats          []local.Chat
	members        []local.Member
	devices        []local.Device
	past           local.Past
	app            *app
	away           []sdk.CatchUp // what its Sync tells
	failSync, fail error
	slow           bool // opening it takes longer than anybody waits
}

func (f *fake) note(format string, args ...any) {
	f.asked = append(f.asked, fmt.Sprintf(format, args...))
}

func (f *fake) Sync(context.Context, local.None) (local.None, error) {
	for _, u := range f.away {
		f.app.catchingUp(u)
	}
	return local.None{}, f.failSync
}

func (f *fake) Self(context.Context, local.None) (local.Self, error) { return local.Self{}, nil }

func (f *fake) EditAccount(_ context.Context, r local.EditAccountRequest) (local.Self, error) {
	said := func(s *string) string {
		if s == nil {
			return "-"
		}
		return fmt.Sprintf("%q", *s)
	}
	f.note("edit %s %s %s phrase %v", said(r.Name), said(r.About), said(r.Username), r.Phrase != "")
	if r.Phrase == "" && f.fail != nil {
		return local.Self{}, f.fail
	}
	return local.Self{Profile: "ada", Name: "Ada L.", About: "Tea"}, nil
}

func (f *fake) Chats(context.Context, local.None) ([]local.Chat, error) { return f.chats, f.fail }

func (f *fake) People(context.Context, local.None) ([]local.Contact, error) {
	return []local.Contact{{Name: "Bob", Username: "bob"}}, f.fail
}

func (f *fake) Members(context.Context, local.RoomRequest) ([]local.Member, error) {
	return f.members, f.fail
}

func (f *fake) Devices(context.Context, local.None) ([]local.Device, error) {
	if errors.Is(f.fail, sdk.ErrNoKey) { // no key is needed for it
		return f.devices, nil
	}
	return f.devices, f.fail
}

func (f *fake) Send(_ context.Context, r local.SendRequest, progress func(local.Progress) error) (local.Sent, error) {
	f.note("send %q file %q reply %d", r.Text, filepath.Base(r.File), r.Reply)
	if r.Key == (local.Key{}) {
		return local.Sent{}, errors.New("a message without a key")
	}
	return local.Sent{Chat: r.Chat, Seq: 7, Epoch: 2, ID: "ab"}, f.fail
}

func (f *fake) Add(_ context.Context, r local.MemberRequest) (local.None, error) {
	f.note("add %s", r.Who)
	return local.None{}, f.fail
}

func (f *fake) Listen(ctx context.Context, r local.ListenRequest, give func(local.Row) error) (local.None, error) {
	for _, row := range f.rows {
		if err := give(row); errors.Is(err, local.ErrStop) {
			f.note("stopped at %d", row.Seq)
			return local.None{}, nil
		} else if err != nil {
			return local.None{}, err
		}
	}
	<-ctx.Done()
	return local.None{}, ctx.Err()
}

func (f *fake) History(_ context.Context, _ local.HistoryRequest, give func(local.Row) error) (local.None, error) {
	for _, row := range f.rows {
		if err := give(row); err != nil {
			return local.None{}, err
		}
	}
	return local.None{}, f.fail
}

func (f *fake) Past(context.Context, local.RoomRequest) (local.Past, error) { return f.past, nil }

func (f *fake) Revoke(_ context.Context, r local.RevokeRequest) (local.None, error) {
	f.note("revoke with phrase %v", r.Phrase != "")
	if r.Phrase == "" {
		return local.None{}, f.fail
	}
	return local.None{}, nil
}

// world is a program with a home of its own, and the fake profile "ada" in it.
type world struct {
	t        *testing.T
	home     string
	fake     *fake
	in       string
	tty      bool
	env      map[string]string
	out, err bytes.Buffer
}

var (
	teaRoom  = delivery.RoomID{1, 0xaa, 0xbb, 0xcc, 6: 0x80, 8: 0x80, 15: 1}
	someone  = identity.PublicKey{0x2a, 0x2b, 0x2c}
	fakeNoon = time.Date(2026, 12, 2, 12, 0, 0, 0, time.UTC)
)

func newWorld(t *testing.T) *world {
	w := &world{t: t, home: t.TempDir(), fake: &fake{chats: []local.Chat{{Chat: teaRoom, Title: "Tea", Status: "open"}}}, env: map[string]string{}}
	w.makeProfile("ada")
	return w
}

func (w *world) makeProfile(name string) {
	w.t.Helper()
	dir := filepath.Join(w.home, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, storeFile), nil, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// run runs a command line and returns its exit code.
func (w *world) run(args ...string) int {
	w.t.Helper()
	w.out.Reset()
	w.err.Reset()
	a := &app{
		slot: openSlot,
		in:   strings.NewReader(w.in), out: &w.out, err: &w.err, now: func() time.Time { return fakeNoon }, width: 80, outTTY: w.tty, errTTY: w.tty,
		env: func(name string) string {
			if name == envHome {
				return w.home
			}
			return w.env[name]
		},
	}
	a.engines = engines{
		own: func(ctx context.Context, a *app, _, _ string) (local.Profile, io.Closer, error) {
			w.fake.app = a
			if w.fake.slow {
				<-ctx.Done()
				return nil, nil, ctx.Err()
			}
			return w.fake, io.NopCloser(nil), nil
		},
		create: func(_ context.Context, _ *app, profile, _ string, n newAccount) (local.Self, phrase.Phrase, error) {
			words, err := phrase.Parse(strings.TrimSpace(strings.Repeat("abandon ", 23)) + " art")
			if err == nil {
				err = w.fake.fail
			}
			return local.Self{Profile: profile, Name: n.name, Server: n.server, Identity: someone}, words, err
		},
		restore: func(_ context.Context, _ *app, profile, _, server string, _ phrase.Phrase) (local.Self, error) {
			return local.Self{Profile: profile, Server: server, Name: "Ada"}, w.fake.fail
		},
	}
	return run(w.t.Context(), a, args)
}

// wants runs a command line and wants an exit code.
func (w *world) wants(code int, args ...string) {
	w.t.Helper()
	if got := w.run(args...); got != code {
		w.t.Fatalf("compax %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), got, code, &w.out, &w.err)
	}
}

// object is the only line of standard output.
func (w *world) object() map[string]any {
	w.t.Helper()
	text := w.out.String()
	var out map[string]any
	if strings.Count(text, "\n") != 1 || json.Unmarshal([]byte(text), &out) != nil {
		w.t.Fatalf("not one JSON line: %q", text)
	}
	return out
}
