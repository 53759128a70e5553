package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls"
)

// errKilled is what an instance sees of the write during which it dies.
var errKilled = errors.New("the instance was killed here")

// mortal is a store whose nth write ends the instance: before it has happened,
// or after, when the store has it and nobody heard.
type mortal struct {
	delivery.Store
	mu     sync.Mutex
	writes int
	fatal  int // 0 = none
	after  bool
	names  []string
}

func (m *mortal) write(name string, do func() error) error {
	m.mu.Lock()
	m.writes++
	n := m.writes
	m.names = append(m.names, name)
	m.mu.Unlock()
	if n != m.fatal {
		return do()
	}
	if m.after {
		if err := do(); err != nil {
			return err
		}
	}
	return errKilled
}

func (m *mortal) arm(fatal int, after bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes, m.fatal, m.after, m.names = 0, fatal, after, nil
}

func (m *mortal) CreateRoom(ctx context.Context, r delivery.NewRoom) error {
	return m.write("CreateRoom", func() error { return m.Store.CreateRoom(ctx, r) })
}

func (m *mortal) WithRoom(ctx context.Context, id delivery.RoomID, fn func(delivery.RoomTx) error) error {
	return m.write("WithRoom", func() error { return m.Store.WithRoom(ctx, id, fn) })
}

func (m *mortal) FinishRelay(ctx context.Context, r delivery.Relay) error {
	return m.write("FinishRelay", func() error { return m.Store.FinishRelay(ctx, r) })
}

func (m *mortal) AckWelcome(ctx context.Context, id delivery.RoomID, epoch uint64, d identity.DeviceID) error {
	return m.write("AckWelcome", func() error { return m.Store.AckWelcome(ctx, id, epoch, d) })
}

func (m *mortal) Revoke(ctx context.Context, r delivery.StoredRevocation, most delivery.DeviceBound) (fresh bool, err error) {
	err = m.write("Revoke", func() error {
		fresh, err = m.Store.Revoke(ctx, r, most)
		return err
	})
	return fresh, err
}

func (m *mortal) PutMail(ctx context.Context, d identity.DeviceID, item delivery.MailItem) (id uint64, put bool, err error) {
	err = m.write("PutMail", func() error {
		id, put, err = m.Store.PutMail(ctx, d, item)
		return err
	})
	return id, put, err
}

func (m *mortal) AckMail(ctx context.Context, d identity.DeviceID, ids []uint64) error {
	return m.write("AckMail", func() error { return m.Store.AckMail(ctx, d, ids) })
}

func (m *mortal) AdvanceBlob(ctx context.Context, id delivery.BlobID, from, to int64) error {
	return m.write("AdvanceBlob", func() error { return m.Store.AdvanceBlob(ctx, id, from, to) })
}

// TestKilledAtEveryWrite runs a room's life, and kills the instance at each
// write in turn, before and after it. Devices send the same bytes again, to
// another instance. Nothing acknowledged is lost, nothing is there twice.
func TestKilledAtEveryWrite(t *testing.T) {
	writes := 0
	t.Run("nobody dies", func(t *testing.T) { writes = life(t, 0, false) })
	if writes < 15 {
		t.Fatalf("only %d writes: the life is not what it should be", writes)
	}
	for n := 1; n <= writes; n++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d after %v", n, after), func(t *testing.T) { life(t, n, after) })
		}
	}
}

func life(t *testing.T, fatal int, after bool) int {
	w := newWorld(t)
	w.still = true
	w.config.LowWater = 1
	store := &mortal{Store: w.store}
	w.store = store
	one, two := w.start(), w.start()
	p := one.people("ada", "bob", "eve")
	laptop := one.member(p[1].owner.attest(t, "laptop"))
	w.retry = func() *instance { return two }
	settle := func(loop func(*instance) error) {
		t.Helper()
		for _, in := range []*instance{one, two} {
			in.work.Wait()
		}
		if err := loop(one); err != nil {
			if !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			check(t, loop(two))
		}
	}
	relay := func(in *instance) error { _, err := in.Relay(t.Context()); return err }
	store.arm(fatal, after)

	id := p[0].create(delivery.RoomGroup)
	p[0].commit(id, p[0].adding(id, p[1].owner, p[2].owner)...)
	settle(relay)
	p[1].join()
	p[2].join()
	first := p[0].say(id, "one")
	blob := p[1].blobOf(t, "photo")
	p[1].sync(id)
	_, err := p[1].post(id, delivery.AppendRequest{Entry: p[1].seal(id, "two"), Blobs: []delivery.BlobID{blob}})
	check(t, err)
	p[2].sync(id)
	_, err = p[2].propose(id, mls.SelfRemoveProposal())
	check(t, err)
	p[0].commit(id)
	check(t, laptop.enter(id, laptop.external(id)))
	r := laptop.revocation(t, p[1].owner)
	check(t, p[1].json(delivery.RouteRevoke, delivery.RevokeRequest{Revocation: r.Bytes()}, nil))
	settle(func(in *instance) error {
		if err := in.ProposeRemovals(t.Context()); err != nil {
			return err
		}
		return in.ProposeRemovals(t.Context()) // a failed one is logged and owed: the next round
	})
	p[0].commit(id)
	last := p[0].say(id, "three")
	settle(relay)
	done := store.writes
	store.arm(0, false)

	agree(t, id, p[0], p[1])
	if got := p[1].in(id).texts; !slices.Equal(got, []string{"one", "three"}) {
		t.Errorf("bob read %q", got)
	}
	if got := p[0].in(id).texts; !slices.Equal(got, []string{"two"}) {
		t.Errorf("ada read %q", got)
	}
	page, err := p[0].log(id, 0)
	check(t, err)
	for i, e := range page.Entries {
		if e.Seq != uint64(i)+1 {
			t.Fatalf("entry %d has seq %d", i, e.Seq)
		}
	}
	if first.Seq != 2 || last.Seq != page.Head || len(page.Entries) != 9 {
		t.Errorf("first %d, last %d, %d entries", first.Seq, last.Seq, len(page.Entries))
	}
	room, err := policy.RoomOf(p[0].in(id).group.Context().Extensions)
	check(t, err)
	if !room.Revocations.Covers(p[1].owner.id, laptop.id()) {
		t.Error("the revocation is not in the room")
	}
	owed, err := w.store.PendingRelays(t.Context(), 10)
	check(t, err)
	if len(owed) != 0 {
		t.Errorf("relays are owed: %+v", owed)
	}
	got, err := p[0].call(delivery.RouteBlob, nil, "", blob.String())
	check(t, err)
	if string(got) != "photo" {
		t.Errorf("the blob is %q", got)
	}
	return done
}

// blobOf uploads text as a client does that may be interrupted: it asks how far
// the upload is and goes on from there.
func (m *member) blobOf(t *testing.T, text string) delivery.BlobID {
	t.Helper()
	var v delivery.BlobView
	check(t, m.json(delivery.RouteUpload, delivery.BlobRequest{Size: int64(len(text))}, &v))
	for range 3 {
		if v = m.state(t, v.ID); v.Received == v.Size {
			return v.ID
		}
		if _, err := m.upload(v.ID, v.Received, strings.NewReader(text[v.Received:])); err != nil {
			m.at = m.at.w.retry()
		}
	}
	t.Fatal("the upload does not end")
	return v.ID
}

// TestTwoInstancesRace: members commit at once through two instances over one
// store; each epoch has one winner, and everybody agrees.
func TestTwoInstancesRace(t *testing.T) {
	w := newWorld(t)
	ins := []*instance{w.start(), w.start()}
	p := ins[0].people("ada", "bob", "eve", "joe")
	id := group(t, p...)
	for i, m := range p {
		m.at = ins[i%2]
	}
	const rounds = 5
	for range rounds {
		commits := make([]*mls.Commit, len(p))
		for i, m := range p {
			m.sync(id)
			commits[i] = m.prepare(id)
		}
		results := make([]error, len(p))
		var accepted [4]delivery.Accepted
		var wg sync.WaitGroup
		for i, m := range p {
			wg.Go(func() { accepted[i], results[i] = m.post(id, request(commits[i])) })
		}
		wg.Wait()
		won := 0
		for i, err := range results {
			if err == nil {
				won++
				st, err := commits[i].Apply(p[i].in(id).group, p[i].now())
				check(t, err)
				p[i].in(id).group, p[i].in(id).seq = st.Next, accepted[i].Seq
			} else {
				wantCode(t, err, delivery.CodeStaleEpoch)
			}
		}
		if won != 1 {
			t.Fatalf("%d winners", won)
		}
	}
	agree(t, id, p...)
	if h := p[0].head(id); h.Epoch != 1+rounds || h.LastSeq != 1+rounds {
		t.Errorf("%+v", h)
	}
}

// TestProposalRacesCommit: a commit that was checked before a SelfRemove came in
// is checked anew, and refused for leaving it out.
func TestProposalRacesCommit(t *testing.T) {
	w := newWorld(t)
	one, two := w.start(), w.start()
	p := one.people("ada", "bob", "eve")
	id := group(t, p...)
	blind := request(p[0].prepare(id))
	p[2].at = two
	_, err := p[2].propose(id, mls.SelfRemoveProposal())
	check(t, err)
	p[0].refused(id, blind, delivery.CodeRefused)
	p[0].commit(id)
	agree(t, id, p[0], p[1])
}
