package server

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/wire"
)

// Attacks with numbers and bytes: what is taken too often, reused, endless, or no
// entry at all.

// Attack 5, key package drain and double claim: a hundred claims at once on two
// instances get a hundred different packages, then the last resort, and one
// requester's budget ends it.
func TestAttackKeyPackageDrain(t *testing.T) {
	w := newWorld(t)
	w.config.Limits.Buckets = map[string]Bucket{"drain": {Burst: 25, PerHour: 1}}
	one, two := w.start(), w.start()
	victim := one.member(newPerson("victim").attest(t, "victim"))
	victim.publish(100, false)
	victim.publish(1, true)
	var claimers []*member
	for i := range 4 {
		m := []*instance{one, two}[i%2].people(fmt.Sprint("claimer", i))[0]
		claimers = append(claimers, m)
	}
	room := claimers[0].create(delivery.RoomGroup)
	var mu sync.Mutex
	seen := map[string]int{}
	var wg sync.WaitGroup
	for _, m := range claimers {
		for range 25 {
			wg.Go(func() {
				var r delivery.ClaimResponse
				err := m.json(delivery.RouteClaim, delivery.ClaimRequest{Identity: victim.owner.id, Suite: uint16(m.at.w.suite), Room: room}, &r)
				mu.Lock()
				defer mu.Unlock()
				if err != nil || len(r.Packages) != 1 {
					t.Errorf("%v %d packages", err, len(r.Packages))
					return
				}
				seen[string(r.Packages[0])]++
			})
		}
	}
	wg.Wait()
	if len(seen) != 100 {
		t.Errorf("%d different packages", len(seen))
	}
	for raw, n := range seen {
		if raw == string(victim.bundles[100].Message()) || n != 1 {
			t.Error("a package was given twice, or the last resort before its time")
		}
	}
	err := claimers[0].json(delivery.RouteClaim, delivery.ClaimRequest{Identity: victim.owner.id, Suite: uint16(claimers[0].at.w.suite), Room: room}, nil)
	wantCode(t, err, delivery.CodeSlowDown)
	fresh := one.people("fresh")[0]
	for range 2 {
		if got := fresh.claim(room, victim.owner.id); len(got) != 1 || !bytes.Equal(wire.Marshal(&wire.MLSMessage{WireFormat: wire.WireFormatKeyPackage, KeyPackage: got[0]}), victim.bundles[100].Message()) {
			t.Fatal("not the last resort")
		}
	}
	// The device was told to publish, once.
	one.work.Wait()
	two.work.Wait()
	var mail delivery.MailResponse
	check(t, victim.json(delivery.RouteMailbox, nil, &mail))
	if len(mail.Items) != 1 || mail.Items[0].Kind != delivery.MailLowKeys {
		t.Errorf("%+v", mail)
	}
}

// Attack 10 is in account_test.go (envelopes) and here: work is bound to its
// device and bytes.
func TestAttackWorkIsReused(t *testing.T) {
	w := newWorld(t)
	w.config.Limits.Work = WorkLimits{FreeMessages: 2, MaxBits: 6, Step: 1}
	in := w.start()
	p := in.people("ada", "bob")
	id := group(t, p...)
	send := func(m *member, entry []byte, nonce []byte) error {
		method, target := path(delivery.RouteAppend, id.String())
		req, err := http.NewRequest(method, in.http.URL+target, bytes.NewReader((&delivery.AppendRequest{Entry: entry}).AppendTo(nil)))
		check(t, err)
		req.Header.Set("Authorization", "Bearer "+m.token)
		if nonce != nil {
			req.Header.Set(delivery.HeaderWork, fmt.Sprintf("%x", nonce))
		}
		_, err = do(req)
		return err
	}
	var demand *delivery.Error
	var entry []byte
	for range 20 {
		entry = p[0].seal(id, "more")
		if err := send(p[0], entry, nil); err != nil {
			if demand = wantCode(t, err, delivery.CodeSolveWork); demand.Work.Bits >= 4 {
				break
			}
			check(t, send(p[0], entry, solve(p[0], demand.Work, entry)))
		}
	}
	nonce := solve(p[0], demand.Work, entry)
	// Other bytes for which the nonce is worth nothing: so few bits come by chance,
	// under the seed of this hour or of the last one, which the server takes too.
	other := p[0].seal(id, "other bytes")
	for now := in.Now(); slices.ContainsFunc([]time.Time{now, now.Add(-time.Hour)}, func(at time.Time) bool {
		return delivery.WorkBits(in.seed(at), p[0].id(), sha(other), nonce) >= demand.Work.Bits-2
	}); {
		other = p[0].seal(id, "other bytes")
	}
	before := w.fingerprint(t, id)
	wantCode(t, send(p[0], other, nonce), delivery.CodeSolveWork)
	if w.fingerprint(t, id) != before {
		t.Error("a refused append changed the room")
	}
	check(t, send(p[0], entry, nonce))
	// Another device is within its free pace; a big entry costs it as much.
	check(t, send(p[1], p[1].seal(id, "hello"), nil))
	err := send(p[1], p[1].seal(id, strings.Repeat("x", 1<<20)), nil)
	wantCode(t, err, delivery.CodeSolveWork)
}

func solve(m *member, w *delivery.Work, entry []byte) []byte {
	for n := uint64(0); ; n++ {
		nonce := fmt.Appendf(nil, "%d", n)
		if delivery.WorkBits(w.Seed, m.id(), sha(entry), nonce) >= w.Bits {
			return nonce
		}
	}
}

// TestHugeLengthsAndGarbageEntries: whatever the bytes, the room stays.
func TestGarbageEntries(t *testing.T) {
	in := newWorld(t).start()
	p := in.people("ada", "bob")
	id := group(t, p...)
	good := p[0].seal(id, "x")
	commit := request(p[0].prepare(id))
	entries := map[string]delivery.AppendRequest{
		"empty":     {},
		"garbage":   {Entry: []byte("\x00\x01\x00\x02garbage")},
		"trailing":  {Entry: append(bytes.Clone(good), 1)},
		"a Welcome": {Entry: commit.GroupInfo},
		"version":   {Entry: append([]byte{0, 9}, good[2:]...)},
		"huge":      {Entry: []byte{0, 1, 0, 2, 0xbf, 0xff, 0xff, 0xff}},
		"cut":       {Entry: commit.Entry[:len(commit.Entry)/2], GroupInfo: commit.GroupInfo},
	}
	for name, r := range entries {
		t.Run(name, func(t *testing.T) {
			p[0].t = t
			p[0].refused(id, r, delivery.CodeBadRequest)
		})
	}
	p[0].t = t
	for cut := 1; cut < len(good); cut += 7 {
		_, err := p[0].post(id, delivery.AppendRequest{Entry: good[:cut]})
		wantCode(t, err, delivery.CodeBadRequest)
	}
	body := (&delivery.AppendRequest{Entry: good}).AppendTo(nil)
	for cut := range body {
		_, err := p[0].call(delivery.RouteAppend, body[:cut], "", id.String())
		wantCode(t, err, delivery.CodeBadRequest)
	}
	private := p[0].in(id).group
	s, err := private.Propose(mls.ProposeParams{Random: rand.Reader, Now: p[0].now(), Proposal: mls.RemoveProposal(1), Private: true})
	check(t, err)
	p[0].refused(id, delivery.AppendRequest{Entry: s.Message}, delivery.CodeBadRequest)
}

// endless is a body that never ends by itself; it counts what was read of it.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, "{\"x\":\"")
	e.read += n
	return n, nil
}

// TestBodiesAreBoundedBeforeTheyAreRead: a body without end, whether it names no
// length or one too large, is refused after its bound at the latest.
func TestBodiesAreBoundedBeforeTheyAreRead(t *testing.T) {
	in := newWorld(t).start()
	d := in.enrolled("ada")
	for _, length := range []int64{-1, 1 << 40} {
		body := &endless{}
		req := httptest.NewRequestWithContext(t.Context(), "PUT", "/v1/snapshot", body)
		req.ContentLength = length
		req.Header.Set("Authorization", "Bearer "+d.token)
		answer := httptest.NewRecorder()
		in.Handler().ServeHTTP(answer, req)
		var p delivery.Problem
		check(t, json.Unmarshal(answer.Body.Bytes(), &p))
		wantCode(t, p.Err(), delivery.CodeTooLarge)
		if body.read > jsonMax+16 {
			t.Errorf("%d bytes were read", body.read)
		}
	}
}

// TestBodiesThatNeverComeAreGivenUp: a head that promises a body, small or large,
// and then silence: the connection is let go of, also before anybody logged in.
func TestBodiesThatNeverComeAreGivenUp(t *testing.T) {
	in := hurried(t, Patience{Body: 50 * time.Millisecond})
	for _, size := range []string{"Content-Length: 100", "Content-Length: 60000", "Transfer-Encoding: chunked"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(in.http.URL, "http://"))
		check(t, err)
		_, err = fmt.Fprintf(conn, "POST /v1/challenges HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n", size)
		check(t, err)
		check(t, conn.SetReadDeadline(time.Now().Add(patience)))
		answer, err := io.ReadAll(conn)
		if err != nil || !bytes.Contains(answer, []byte(`"retry"`)) || !bytes.Contains(answer, []byte("too slowly")) {
			t.Errorf("%s: %q, %v", size, answer, err)
		}
		check(t, conn.Close())
	}
}

// TestEntriesAtTheSameMomentPayForEachOther: an entry counts from when its price
// is asked, so that a burst in parallel is not free; what is not paid does not
// count.
func TestEntriesAtTheSameMomentPayForEachOther(t *testing.T) {
	var u usages
	u.init()
	at := time.Unix(3600, 0)
	refused := errors.New("not paid")
	var inner, outer int
	err := u.take(identity.DeviceID{1}, 100, at, func(messages, bytes int) error {
		outer = messages
		return u.take(identity.DeviceID{1}, 100, at, func(messages, bytes int) error {
			inner = messages
			if bytes != 200 {
				t.Errorf("the second of two counts %d bytes", bytes)
			}
			return refused
		})
	})
	if !errors.Is(err, refused) || outer != 1 || inner != 2 {
		t.Errorf("%v, %d, %d", err, outer, inner)
	}
	check(t, u.take(identity.DeviceID{1}, 1, at, func(messages, bytes int) error {
		if messages != 1 || bytes != 1 {
			t.Errorf("what was not paid counts: %d messages, %d bytes", messages, bytes)
		}
		return nil
	}))
}
