package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// routine is a transport that answers the login as a service does, and whatever is
// asked then with the same bytes.
type routine struct {
	status      int
	media, time string
	body        []byte
}

func (r *routine) Do(_ context.Context, req Request) (Response, error) {
	if req.Body != nil {
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return Response{}, err
		}
	}
	switch req.URL {
	case "https://home.example/v1/challenges":
		return challenge(req)
	case "https://home.example/v1/sessions":
		return login(req)
	}
	header := func(name string) string {
		return map[string]string{"Content-Type": r.media, delivery.HeaderTime: r.time}[name]
	}
	return Response{Status: r.status, Header: header, Body: io.NopCloser(bytes.NewReader(r.body))}, nil
}

func (r *routine) Dial(context.Context, string) (Socket, error) { return &oneFrame{r.body}, nil }

// oneFrame is a socket whose peer says one thing.
type oneFrame struct{ frame []byte }

func (*oneFrame) Write(context.Context, []byte) error { return nil }
func (*oneFrame) Close() error                        { return nil }
func (s *oneFrame) Read(context.Context) ([]byte, error) {
	b := s.frame
	if s.frame = nil; b == nil {
		return nil, io.EOF
	}
	return b, nil
}

// FuzzAnswers: whatever a service, or what stands in its place, answers to any call,
// the client makes of it what was asked for or an error of its own.
func FuzzAnswers(f *testing.F) {
	for _, body := range []string{
		`{"seq":"5","epoch":"2"}`, `{"devices":[{}],"packages":[null]}`, `[]`, `null`, `{"code":"retry","status":503}`,
		`{"code":"solve_work","status":429,"work":{"seed":"AA==","bits":255}}`, `{"code":"log_in","status":401}`,
	} {
		f.Add(uint16(200), "application/json", "1", []byte(body))
		f.Add(uint16(429), delivery.ProblemType, "x", []byte(body))
	}
	page := delivery.LogPage{Entries: []delivery.Entry{{Seq: 1, Kind: delivery.KindCommit, Bytes: []byte("x")}}}
	f.Add(uint16(200), delivery.BinaryType, "", page.AppendTo(nil))
	f.Add(uint16(200), delivery.BinaryType, "", delivery.AppendFrame(nil, &delivery.Ready{}))
	f.Fuzz(func(t *testing.T, status uint16, media, at string, body []byte) {
		r := &routine{status: int(status), media: media, time: at, body: body}
		tries := 0
		c := New(Config{
			Base: "https://home.example/", Transport: r, Account: &account{},
			Sleep: func(context.Context, time.Duration) error {
				if tries++; tries > 3 {
					return context.Canceled
				}
				return nil
			},
		})
		ctx := t.Context()
		for name, call := range map[string]func() error{
			"append":   func() error { got, err := c.Append(ctx, room, entry); return must(err, got.Seq > 0) },
			"room":     func() error { _, err := c.Room(ctx, room); return err },
			"rooms":    func() error { _, err := c.Rooms(ctx); return err },
			"idle":     func() error { _, err := c.Idle(ctx, room); return err },
			"log":      func() error { _, err := c.Log(ctx, room, 0, 10); return err },
			"held":     func() error { _, err := c.Held(ctx, room); return err },
			"info":     func() error { _, err := c.Info(ctx); return err },
			"group":    func() error { _, err := c.CurrentGroupInfo(ctx, room); return err },
			"tree":     func() error { _, err := c.Tree(ctx, room, 1); return err },
			"heal":     func() error { _, err := c.Heal(ctx, room, delivery.HealRequest{}); return err },
			"devices":  func() error { _, err := c.Devices(ctx); return err },
			"snapshot": func() error { _, err := c.Snapshot(ctx); return err },
			"packages": func() error { _, err := c.ClaimKeyPackages(ctx, delivery.ClaimRequest{}); return err },
			"mailbox":  func() error { _, err := c.Mailbox(ctx, 0); return err },
			"username": func() error { _, err := c.PersonByUsername(ctx, "ada"); return err },
			"search":   func() error { _, err := c.SearchPeople(ctx, "a"); return err },
			"person":   func() error { _, err := c.Person(ctx, identity.PublicKey{}); return err },
			"listings": func() error { _, err := c.Listings(ctx, "q"); return err },
			"blob":     func() error { _, err := c.BlobState(ctx, delivery.BlobID{1}); return err },
			"archive":  func() error { _, err := c.Archive(ctx, ""); return err },
			"segment":  func() error { _, err := c.ArchiveSegment(ctx, "s"); return err },
			"keys":     func() error { _, err := c.WrappedKeys(ctx); return err },
			"connecting": func() error {
				conn, err := c.Connect(ctx, nil)
				return must(err, conn != nil)
			},
		} {
			err := call()
			var refused *delivery.Error
			if err != nil && !errors.As(err, &refused) && !errors.Is(err, ErrGarbage) && !errors.Is(err, ErrOffline) && !errors.Is(err, context.Canceled) {
				t.Errorf("%s: error of another kind: %v", name, err)
			}
		}
	})
}

var errNothing = errors.New("neither an answer nor an error")

func must(err error, answered bool) error {
	if err == nil && !answered {
		return errNothing
	}
	return err
}
