package client

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// TestHeldProposalsAreInOrder: with gaps, but never twice or backwards.
func TestHeldProposalsAreInOrder(t *testing.T) {
	for _, seqs := range [][]uint64{{2, 2}, {3, 2}, {2, 5}} {
		p := delivery.LogPage{Head: 9, First: 1}
		for _, s := range seqs {
			p.Entries = append(p.Entries, delivery.Entry{Seq: s, Kind: delivery.KindProposal})
		}
		c, _ := newClient(t, challenge, login, give(200, delivery.BinaryType, p.AppendTo(nil)))
		if _, err := c.Held(t.Context(), room); errors.Is(err, ErrGarbage) == (seqs[1] > seqs[0]) {
			t.Errorf("%v: %v", seqs, err)
		}
	}
}

// TestRangeIsWhatWasAsked: who goes on with a download does not get its beginning again.
func TestRangeIsWhatWasAsked(t *testing.T) {
	whole, part := give(200, "application/octet-stream", []byte("0123")), give(206, "application/octet-stream", []byte("23"))
	for _, ask := range []struct {
		offset int64
		answer func(Request) (Response, error)
		want   string // "": garbage
	}{{0, whole, "0123"}, {2, part, "23"}, {2, whole, ""}} {
		c, _ := newClient(t, challenge, login, ask.answer)
		r, err := c.DownloadBlob(t.Context(), delivery.BlobID{1}, ask.offset)
		if ask.want == "" {
			if !errors.Is(err, ErrGarbage) {
				t.Errorf("the whole blob for its rest: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); string(got) != ask.want || err != nil {
			t.Errorf("from %d: %q, %v", ask.offset, got, err)
		}
	}
}

// TestWhoGivesUpIsNotRepeated: not once more, and the reason stands in the error.
func TestWhoGivesUpIsNotRepeated(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c, a := newClient(t, challenge, login, func(Request) (Response, error) {
		cancel()
		return Response{}, io.ErrUnexpectedEOF
	})
	if _, err := c.Append(ctx, room, entry); !errors.Is(err, ErrOffline) || !errors.Is(err, context.Canceled) || len(a.asked) != 3 {
		t.Errorf("%v after %d requests", err, len(a.asked))
	}
}

// TestUploadIsSentOnce: what was read of a stream is gone, so nothing of it goes out a
// second time, whatever is answered. An ended session is dropped all the same.
func TestUploadIsSentOnce(t *testing.T) {
	for _, e := range []*delivery.Error{
		delivery.Refuse(delivery.CodeLogIn, "d"), delivery.Refuse(delivery.CodeRetry, "d"), delivery.Refuse(delivery.CodeSlowDown, "d"),
		{Code: delivery.CodeSolveWork, Detail: "d", Work: &delivery.Work{Seed: []byte("s"), Bits: 1}},
	} {
		c, a := newClient(t, challenge, login, refuse(e))
		err := c.UploadBlob(t.Context(), delivery.BlobID{1}, 0, bytes.NewReader([]byte("ciphertext")), 10)
		if delivery.CodeOf(err) != e.Code || len(a.asked) != 3 {
			t.Errorf("%s: %v after %d requests", e.Code, err, len(a.asked))
		}
		if dropped := c.held() == ""; dropped != (e.Code == delivery.CodeLogIn) {
			t.Errorf("%s: the session is dropped: %v", e.Code, dropped)
		}
	}
	c, a := newClient(t, challenge, login, lost)
	err := c.UploadBlob(t.Context(), delivery.BlobID{1}, 0, bytes.NewReader([]byte("ciphertext")), 10)
	if !errors.Is(err, ErrOffline) || len(a.asked) != 3 {
		t.Errorf("a lost answer: %v after %d requests", err, len(a.asked))
	}
}

// TestNoRouteIsNoRequest: what is no route of the protocol is not sent.
func TestNoRouteIsNoRequest(t *testing.T) {
	c, a := newClient(t)
	if _, err := c.try(t.Context(), call{route: "/v1/rooms"}, ""); err == nil || len(a.asked) != 0 {
		t.Errorf("%v after %d requests", err, len(a.asked))
	}
}

// TestWhatStandsInFront: a proxy's page says nothing about the request. Of a service that
// is away the request is repeated; anything else is garbage, a refusal in another form,
// too.
func TestWhatStandsInFront(t *testing.T) {
	for _, status := range []int{500, 502, 599} {
		c, _ := newClient(t, challenge, login, give(status, "text/html", []byte("<html>")), accepted)
		if _, err := c.Append(t.Context(), room, entry); err != nil {
			t.Errorf("%d, then an answer: %v", status, err)
		}
	}
	refused := []byte(`{"code":"refused","status":403,"detail":"d"}`)
	for _, media := range []string{"", "text/html", "application/json", "application/problem+json2"} {
		c, _ := newClient(t, challenge, login, give(403, media, refused))
		if _, err := c.Append(t.Context(), room, entry); !errors.Is(err, ErrGarbage) {
			t.Errorf("a refusal as %q: %v", media, err)
		}
	}
	c, _ := newClient(t, challenge, login, give(403, delivery.ProblemType+" ; charset=utf-8", refused))
	if _, err := c.Append(t.Context(), room, entry); delivery.CodeOf(err) != delivery.CodeRefused {
		t.Errorf("a refusal with a parameter: %v", err)
	}
}

// TestAnswersAreBounded: to the byte.
func TestAnswersAreBounded(t *testing.T) {
	for size, fits := range map[int]bool{delivery.MaxGroupInfo: true, delivery.MaxGroupInfo + 1: false} {
		c, _ := newClient(t, challenge, login, give(200, delivery.BinaryType, make([]byte, size)))
		got, err := c.GroupInfo(t.Context(), room, 1)
		if fits && (err != nil || len(got) != size) || !fits && !errors.Is(err, ErrGarbage) {
			t.Errorf("%d bytes: %d, %v", size, len(got), err)
		}
	}
}

// TestWhoHasNoAccount: is told to log in, and asks nobody.
func TestWhoHasNoAccount(t *testing.T) {
	a := &answers{t: t}
	c := New(Config{Base: "https://home.example/", Transport: a})
	if _, err := c.Append(t.Context(), room, entry); delivery.CodeOf(err) != delivery.CodeLogIn {
		t.Errorf("%v", err)
	}
}

// TestLoginIsRefused: a session is a token, and only a spent budget is waited for.
func TestLoginIsRefused(t *testing.T) {
	c, _ := newClient(t, challenge, giveJSON(delivery.SessionResponse{}))
	if _, err := c.Append(t.Context(), room, entry); !errors.Is(err, ErrGarbage) {
		t.Errorf("no token: %v", err)
	}
	for _, code := range []delivery.Code{delivery.CodeRefused, delivery.CodeRevoked, delivery.CodeNotFound} {
		c, a := newClient(t, refuse(delivery.Refuse(code, "d")))
		if _, err := c.Append(t.Context(), room, entry); delivery.CodeOf(err) != code || len(a.asked) != 1 {
			t.Errorf("%s: %v after %d requests", code, err, len(a.asked))
		}
	}
}

// TestWorkWithinReason: not over a seed of any length, and not for who gave up.
func TestWorkWithinReason(t *testing.T) {
	for n, taken := range map[int]bool{64: true, 65: false, 1 << 20: false} {
		_, err := solve(t.Context(), delivery.Work{Seed: make([]byte, n), Bits: 1}, identity.DeviceID{7}, nil)
		if taken && err != nil || !taken && delivery.CodeOf(err) != delivery.CodeSlowDown {
			t.Errorf("a seed of %d bytes: %v", n, err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := solve(gone, delivery.Work{Seed: []byte("seed"), Bits: 1}, identity.DeviceID{7}, nil); !errors.Is(err, ErrOffline) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// dialing is a transport whose sockets say one thing.
type dialing struct {
	*answers
	frame []byte
}

func (d dialing) Dial(context.Context, string) (Socket, error) { return &oneFrame{d.frame}, nil }

// TestHelloIsAnsweredByReady: and by nothing else.
func TestHelloIsAnsweredByReady(t *testing.T) {
	for _, answer := range []any{&delivery.Ready{TimeMS: 5}, &delivery.MailFrame{}, &delivery.Gap{Room: room}, &delivery.Drain{}} {
		c, a := newClient(t, challenge, login)
		c.Transport = dialing{a, delivery.AppendFrame(nil, answer)}
		_, ready := answer.(*delivery.Ready)
		conn, err := c.Connect(t.Context(), nil)
		if ready && (err != nil || conn.Ready.TimeMS != 5) || !ready && !errors.Is(err, ErrGarbage) {
			t.Errorf("%T: %v", answer, err)
		}
	}
}
