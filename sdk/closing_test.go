package sdk_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/sdk"
)

// slow is a service that takes endlessly for some requests, and counts all.
type slow struct {
	client.Transport
	holds   func(path string) bool
	reached chan string
	count   atomic.Int64
}

func (s *slow) Do(ctx context.Context, r client.Request) (client.Response, error) {
	s.count.Add(1)
	if u, err := url.Parse(r.URL); err == nil && s.holds(u.Path) {
		s.reached <- u.Path
		<-ctx.Done()
		return client.Response{}, ctx.Err()
	}
	return s.Transport.Do(ctx, r)
}

func photo(data []byte) *sdk.File {
	return &sdk.File{Name: "photo.jpg", Type: "image/jpeg", Size: int64(len(data)), Key: "photo", Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
}

// TestCloseEndsWhatRuns: a device reads a long log, sends a file and listens, and the
// service answers none of it. It is closed three times at once: everything ends with
// ErrClosed, nothing is touched afterwards, and what is opened again goes on.
func TestCloseEndsWhatRuns(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room, files := ada.room("Close"), ada.room("Files")
	ada.invite(room, bob)
	ada.invite(files, bob)
	must(t, bob.Sync(ctx))
	said := []string{"one", "two"}
	for _, text := range said {
		ada.say(room, text)
	}
	must(t, bob.Close())
	c := bob.config()
	s := &slow{Transport: c.Transport, reached: make(chan string, 10)}
	s.holds = func(path string) bool {
		return strings.HasSuffix(path, room.String()+"/log") || strings.Contains(path, "/blobs/")
	}
	c.Transport = s
	e, err := sdk.Open(ctx, c)
	must(t, err)
	data := bytes.Repeat([]byte("photo"), 50_000)
	running := map[string]func() error{
		"catching up": func() error { return e.Refresh(ctx, room) },
		"uploading": func() error {
			_, err := e.Send(ctx, files, sdk.Draft{File: photo(data), Key: sdk.Key{1}})
			return err
		},
		"listening": func() error {
			return e.Listen(ctx, sdk.Listening{Events: true, Activity: func(sdk.Activity, bool) error { return nil }}, func(sdk.Line) error { return nil })
		},
	}
	var calls, closes sync.WaitGroup
	for name, run := range running {
		calls.Go(func() {
			if err := run(); !errors.Is(err, sdk.ErrClosed) {
				t.Errorf("%s ends with %v", name, err)
			}
		})
	}
	for range 2 { // one of who reads and who listens waits for the other
		t.Log(<-s.reached)
	}
	for range 3 {
		closes.Go(func() {
			if err := e.Close(); err != nil {
				t.Errorf("closing: %v", err)
			}
		})
	}
	closes.Wait()
	asked := s.count.Load()
	calls.Wait()
	if err := e.Sync(ctx); !errors.Is(err, sdk.ErrClosed) {
		t.Errorf("closed it syncs: %v", err)
	}
	if now := s.count.Load(); now != asked {
		t.Errorf("%d requests after it was closed", now-asked)
	}
	must(t, e.Close())

	bob.Engine, err = sdk.Open(ctx, bob.config())
	must(t, err)
	bob.reads(room, said...)
	_, err = bob.Send(ctx, files, sdk.Draft{File: photo(data), Key: sdk.Key{1}})
	must(t, err)
	if got := ada.read(files); len(got) != 1 {
		t.Errorf("ada reads %q", got)
	}
}

// TestCloseAnywhere: a device that reads, writes and listens is closed at whatever
// request it makes. Opened again it has everything once, and so have the others.
func TestCloseAnywhere(t *testing.T) {
	h := newHome(t)
	ctx := t.Context()
	ada, bob := newPerson(t, h, "ada"), newPerson(t, h, "bob")
	room := ada.room("Anywhere")
	ada.invite(room, bob)
	var want []string
	for at, all := int64(1), false; !all; at++ {
		text := fmt.Sprintf("ada %d", at)
		ada.say(room, text)
		want = append(want, text)
		must(t, bob.Close())
		c := bob.config()
		s := &slow{Transport: c.Transport}
		there := make(chan struct{})
		s.holds = func(string) bool {
			if s.count.Load() == at {
				close(there)
			}
			return false
		}
		c.Transport = s
		e, err := sdk.Open(ctx, c)
		must(t, err)
		draft := sdk.Draft{Text: fmt.Sprintf("bob %d", at), Key: sdk.Key{byte(at), 9}}
		var calls sync.WaitGroup
		calls.Go(func() { _ = e.Listen(ctx, sdk.Listening{}, func(sdk.Line) error { return nil }) })
		sent := make(chan struct{})
		calls.Go(func() { defer close(sent); _, _ = e.Send(ctx, room, draft) })
		select {
		case <-there:
		case <-sent: // that was its last request, or one of the listener's is meant
			all = at > 8
		}
		must(t, e.Close())
		calls.Wait()

		bob.Engine, err = sdk.Open(ctx, bob.config())
		must(t, err)
		_, err = bob.Send(ctx, room, draft)
		must(t, err)
		want = append(want, draft.Text)
		for _, p := range []*person{ada, bob} {
			got := p.read(room)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("closed at %d: %s reads %q, want %q", at, p.Name(), got, want)
			}
		}
	}
}
