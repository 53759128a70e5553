package sqlite

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// tailModel is what a store with a few rooms has to answer, kept naively.
type tailModel struct {
	t      *testing.T
	s      *Store
	path   string
	random *rand.Rand
	rooms  []*modelRoom
	clock  int64
	sent   int
}

type modelRoom struct {
	id      delivery.RoomID
	epoch   uint64
	next    uint64
	entries []delivery.Entry // the kept ones
	sent    []modelSent
}

type modelSent struct {
	bytes []byte
	acc   delivery.Accepted
}

var modelDevice = identity.DeviceID{1, 2, 3}

// TestTheTailIsTheLog goes at random through appends, appends that fail, commits,
// the same bytes again, housekeeping, restores and kills, with generations so small
// that entries are placed all the time, and compares every answer.
func TestTheTailIsTheLog(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			m := &tailModel{t: t, path: filepath.Join(t.TempDir(), "0.db"), random: rand.New(rand.NewPCG(seed, 1)), clock: 1000}
			m.open(m.path)
			defer func() { m.must(m.s.Close()) }()
			for n := range 7 {
				r := &modelRoom{id: delivery.RoomID{byte(n), 1}, next: 1}
				m.must(m.s.CreateRoom(t.Context(), delivery.NewRoom{
					ID: r.id, Kind: delivery.RoomGroup, CreatedMS: 1, State: []byte{1}, GroupInfo: []byte{1},
					Members: []delivery.Membership{{Device: modelDevice, Room: r.id}},
				}))
				m.rooms = append(m.rooms, r)
			}
			for range 400 {
				m.step()
			}
			m.compare()
		})
	}
}

func (m *tailModel) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *tailModel) open(path string) {
	s, err := Open(m.t.Context(), path)
	m.must(err)
	m.s, m.path = s, path
	m.must(s.write(m.t.Context(), func(c *change) error { c.tail.size = 40; return nil }))
}

func (m *tailModel) step() {
	m.clock += int64(m.random.IntN(3))
	r := m.rooms[m.random.IntN(len(m.rooms))]
	switch k := m.random.IntN(100); {
	case k < 50:
		m.appendMany()
	case k < 65:
		m.append(r, nil)
	case k < 72:
		m.append(r, errPanic)
	case k < 82:
		m.again(r)
	case k < 86:
		m.commit(r)
	case k < 94:
		m.compare()
	case k < 96:
		m.sweep()
	case k < 98:
		m.kill()
	case k < 99:
		m.must(m.s.Close())
		m.open(m.path)
	default:
		m.restore()
	}
}

// appendMany appends to rooms at random at once, so that they share transactions.
func (m *tailModel) appendMany() {
	var wg sync.WaitGroup
	for _, i := range m.random.Perm(len(m.rooms)) {
		r, bytes := m.rooms[i], m.bytes()
		wg.Go(func() { m.take(r, bytes, nil) })
	}
	wg.Wait()
}

func (m *tailModel) bytes() []byte {
	m.sent++
	return fmt.Appendf(nil, "entry %d", m.sent)
}

func (m *tailModel) append(r *modelRoom, then error) { m.take(r, m.bytes(), then) }

// take appends and, unless then fails the transaction, expects the next seq.
func (m *tailModel) take(r *modelRoom, bytes []byte, then error) {
	var acc delivery.Accepted
	err := m.s.WithRoom(m.t.Context(), r.id, func(tx delivery.RoomTx) (err error) {
		acc, err = tx.Append(m.entry(r, bytes, delivery.KindApplication))
		return errors.Join(err, then)
	})
	if !errors.Is(err, then) {
		m.t.Errorf("append: %v, want %v", err, then)
	}
	if then != nil {
		return
	}
	m.accepted(r, bytes, delivery.KindApplication, acc, delivery.Accepted{Seq: r.next, Epoch: r.epoch, AcceptedMS: m.clock})
}

func (m *tailModel) entry(r *modelRoom, bytes []byte, kind delivery.EntryKind) delivery.NewEntry {
	return delivery.NewEntry{Device: modelDevice, Hash: sha256.Sum256(bytes), Epoch: r.epoch, Kind: kind, AcceptedMS: m.clock, Bytes: bytes}
}

func (m *tailModel) accepted(r *modelRoom, bytes []byte, kind delivery.EntryKind, got, want delivery.Accepted) {
	if got != want {
		m.t.Errorf("accepted %+v, want %+v", got, want)
	}
	r.entries = append(r.entries, delivery.Entry{Seq: r.next, Epoch: r.epoch, Kind: kind, AcceptedMS: m.clock, Bytes: bytes})
	r.sent = append(r.sent, modelSent{bytes, want})
	r.next++
}

// again sends bytes that were accepted, or that went in the housekeeping.
func (m *tailModel) again(r *modelRoom) {
	if len(r.sent) == 0 {
		return
	}
	old := r.sent[m.random.IntN(len(r.sent))]
	kept := len(r.entries) > 0 && old.acc.Seq >= r.entries[0].Seq
	err := m.s.WithRoom(m.t.Context(), r.id, func(tx delivery.RoomTx) error {
		got, found, err := tx.Duplicate(modelDevice, sha256.Sum256(old.bytes))
		want := old.acc
		want.Duplicate = true
		if err != nil || found != kept || found && got != want {
			m.t.Errorf("duplicate: %+v, %v, %v; want %+v, %v", got, found, err, want, kept)
		}
		if !kept {
			return nil
		}
		if _, err := tx.Append(m.entry(r, old.bytes, delivery.KindApplication)); !errors.Is(err, delivery.ErrExists) {
			m.t.Errorf("the same bytes again: %v", err)
		}
		return delivery.ErrExists
	})
	if kept != errors.Is(err, delivery.ErrExists) {
		m.t.Errorf("the same bytes again: %v", err)
	}
}

func (m *tailModel) commit(r *modelRoom) {
	bytes := m.bytes()
	var acc delivery.Accepted
	m.must(m.s.WithRoom(m.t.Context(), r.id, func(tx delivery.RoomTx) (err error) {
		if acc, err = tx.Append(m.entry(r, bytes, delivery.KindCommit)); err != nil {
			return err
		}
		return tx.Advance(delivery.Advance{Epoch: r.epoch + 1, Delta: []byte{1}, GroupInfo: []byte{2}})
	}))
	m.accepted(r, bytes, delivery.KindCommit, acc, delivery.Accepted{Seq: r.next, Epoch: r.epoch + 1, AcceptedMS: m.clock})
	r.epoch++
}

// sweep drops what is older than a moment ago.
func (m *tailModel) sweep() {
	before := m.clock - 60
	for more := true; more; {
		got, err := m.s.Sweep(m.t.Context(), delivery.SweepPlan{NowMS: m.clock, LogBefore: before, Limit: 50})
		m.must(err)
		more = got.More
	}
	for _, r := range m.rooms {
		for len(r.entries) > 0 && r.entries[0].AcceptedMS < before {
			r.entries = r.entries[1:]
		}
	}
}

// kill goes on with a copy of the files as they are, as after a kill.
func (m *tailModel) kill() {
	next := filepath.Join(filepath.Dir(m.path), fmt.Sprintf("%d.db", m.sent+1))
	for _, end := range []string{"", "-wal"} {
		from, err := os.Open(m.path + end)
		m.must(err)
		to, err := os.OpenFile(next+end, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		m.must(err)
		_, err = io.Copy(to, from)
		m.must(errors.Join(err, from.Close(), to.Close()))
	}
	m.must(m.s.Close())
	m.open(next)
}

func (m *tailModel) restore() {
	m.clock++
	marker, err := m.s.StartIncarnation(m.t.Context(), m.clock, m.clock, func(delivery.Marker) (map[string][]byte, error) { return nil, nil })
	m.must(err)
	for _, r := range m.rooms {
		seq := r.next + marker.Jump
		r.entries = append(r.entries, delivery.Entry{Seq: seq, Epoch: r.epoch, Kind: delivery.KindIncarnation, AcceptedMS: m.clock, Bytes: marker.Bytes()})
		r.next = seq + 1
	}
}

// compare reads everything.
func (m *tailModel) compare() {
	m.t.Helper()
	heads, err := m.s.HeadsOf(m.t.Context(), modelDevice)
	m.must(err)
	for _, r := range m.rooms {
		room, err := m.s.Room(m.t.Context(), r.id)
		m.must(err)
		if room.NextSeq != r.next || room.Epoch != r.epoch || heads[r.id] != r.next-1 {
			m.t.Errorf("next seq %d, epoch %d, head %d; want %d, %d", room.NextSeq, room.Epoch, heads[r.id], r.next, r.epoch)
		}
		if n := len(r.entries); n > 0 && room.ChangedMS != r.entries[n-1].AcceptedMS {
			m.t.Errorf("changed %d, want %d", room.ChangedMS, r.entries[n-1].AcceptedMS)
		}
		var got []delivery.Entry
		after, limit := uint64(0), 1+m.random.IntN(9)
		for {
			page, err := m.s.Log(m.t.Context(), r.id, delivery.LogRange{After: after, Limit: limit})
			m.must(err)
			if len(page) == 0 {
				break
			}
			got, after = append(got, page...), page[len(page)-1].Seq
		}
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", r.entries) {
			m.t.Fatalf("the log of room %d:\n%+v\nwant\n%+v", r.id[0], got, r.entries)
		}
		if n := len(r.entries); n > 2 {
			from, to := r.entries[n/3].Seq, r.entries[n-2].Seq
			page, err := m.s.Log(m.t.Context(), r.id, delivery.LogRange{After: from, Upto: to, Limit: n})
			m.must(err)
			if fmt.Sprintf("%+v", page) != fmt.Sprintf("%+v", r.entries[n/3+1:n-1]) {
				m.t.Fatalf("from %d to %d: %+v", from, to, page)
			}
		}
	}
}

// TestWhoReadsMeanwhileSeesAllThatWasAcknowledged: readers beside a writer that places
// entries all the time see each room without a gap up to what was acknowledged before
// they began, and never a head below it.
func TestWhoReadsMeanwhileSeesAllThatWasAcknowledged(t *testing.T) {
	m := &tailModel{t: t, random: rand.New(rand.NewPCG(1, 1))}
	m.open(filepath.Join(t.TempDir(), "store.db"))
	m.must(m.s.write(t.Context(), func(c *change) error { c.tail.size = 10; return nil }))
	defer func() { m.must(m.s.Close()) }()
	var ids [3]delivery.RoomID
	var acknowledged [3]atomic.Uint64
	for n := range ids {
		ids[n] = delivery.RoomID{byte(n), 1}
		m.must(m.s.CreateRoom(t.Context(), delivery.NewRoom{
			ID: ids[n], Kind: delivery.RoomGroup, CreatedMS: 1, State: []byte{1}, GroupInfo: []byte{1},
			Members: []delivery.Membership{{Device: modelDevice, Room: ids[n]}},
		}))
	}
	const entries = 60
	var writers, readers sync.WaitGroup
	for n, id := range ids {
		writers.Go(func() {
			for i := range uint64(entries) {
				bytes := fmt.Appendf(nil, "%d in %d", i, n)
				err := m.s.WithRoom(t.Context(), id, func(tx delivery.RoomTx) error {
					_, err := tx.Append(delivery.NewEntry{Device: modelDevice, Hash: sha256.Sum256(bytes), Kind: delivery.KindApplication, Bytes: bytes})
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
				acknowledged[n].Store(i + 1)
			}
		})
		readers.Go(func() {
			for last := false; !last && !t.Failed(); {
				least := acknowledged[n].Load()
				last = least == entries
				room, err := m.s.Room(t.Context(), id)
				if err != nil || room.NextSeq <= least {
					t.Errorf("next seq %d, %v; %d were acknowledged", room.NextSeq, err, least)
				}
				heads, err := m.s.HeadsOf(t.Context(), modelDevice)
				if err != nil || heads[id] < least {
					t.Errorf("head %d, %v; %d were acknowledged", heads[id], err, least)
				}
				page, err := m.s.Log(t.Context(), id, delivery.LogRange{})
				if err != nil || uint64(len(page)) < least {
					t.Errorf("%d entries, %v; %d were acknowledged", len(page), err, least)
				}
				for i, e := range page {
					if e.Seq != uint64(i)+1 {
						t.Errorf("seq %d at place %d", e.Seq, i)
						return
					}
				}
			}
		})
	}
	writers.Wait()
	readers.Wait()
}

// TestAFileFromBeforeTheTail: entries and dedupe keys of an older schema stay.
func TestAFileFromBeforeTheTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.db")
	c, err := open(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"0001_first", "0002_owed_removals"} {
		script, err := migrations.ReadFile("migrations/" + name + ".sql")
		if err != nil {
			t.Fatal(err)
		}
		if err := step(c, i+1, string(script)); err != nil {
			t.Fatal(err)
		}
	}
	id := delivery.RoomID{1}
	key := seenKey(modelDevice, sha256.Sum256([]byte("second")))
	for _, q := range []struct {
		query string
		args  []any
	}{
		{"INSERT INTO rooms(n, id, epoch, next_seq, first_seq, kind, status, created_ms, changed_ms, first_ms) VALUES(1, ?, 0, 3, 1, 1, 1, 5, 8, 7)", []any{id[:]}},
		{"INSERT INTO log(at, room, seq, epoch, kind, accepted_ms, bytes) VALUES(4, 1, 1, 0, 1, 7, x'6669727374'), (9, 1, 2, 0, 1, 8, x'7365636f6e64')", nil},
		{"INSERT INTO seen(room, key, seq, epoch, accepted_ms) VALUES(1, ?, 2, 0, 8)", []any{key}},
	} {
		if _, err := c.exec(q.query, q.args...); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	m := &tailModel{t: t, clock: 20}
	m.open(path)
	defer func() { m.must(m.s.Close()) }()
	r := &modelRoom{id: id, next: 3, entries: []delivery.Entry{
		{Seq: 1, Kind: 1, AcceptedMS: 7, Bytes: []byte("first")}, {Seq: 2, Kind: 1, AcceptedMS: 8, Bytes: []byte("second")},
	}}
	r.sent = []modelSent{{[]byte("second"), delivery.Accepted{Seq: 2, AcceptedMS: 8}}}
	m.random = rand.New(rand.NewPCG(1, 1))
	m.again(r)
	m.append(r, nil)
	page, err := m.s.Log(t.Context(), id, delivery.LogRange{})
	m.must(err)
	if fmt.Sprintf("%+v", page) != fmt.Sprintf("%+v", r.entries) {
		t.Fatalf("%+v\nwant %+v", page, r.entries)
	}
	// Their dedupe keys go with them, and with what came since.
	_, err = m.s.Sweep(t.Context(), delivery.SweepPlan{LogBefore: 9})
	m.must(err)
	m.seenLeft(1)
	_, err = m.s.Sweep(t.Context(), delivery.SweepPlan{LogBefore: 1 << 40})
	m.must(err)
	m.seenLeft(0)
}

// seenLeft demands that so many dedupe keys are in the file.
func (m *tailModel) seenLeft(want int64) {
	m.t.Helper()
	m.must(m.s.write(m.t.Context(), func(c *change) error {
		r, err := c.one("SELECT count(*) FROM seen")
		if err == nil && r.int(0) != want {
			m.t.Errorf("%d dedupe keys are left, want %d", r.int(0), want)
		}
		return err
	}))
}

// TestTrimmingSearchesNoRoom: what a sweep drops it finds by an index, in a room of
// however many entries.
func TestTrimmingSearchesNoRoom(t *testing.T) {
	m := &tailModel{t: t}
	m.open(filepath.Join(t.TempDir(), "store.db"))
	defer func() { m.must(m.s.Close()) }()
	m.must(m.s.read(t.Context(), func(c *conn) error {
		return c.query("EXPLAIN QUERY PLAN "+forgetSeen, func(r row) error {
			step := r.text(3)
			if strings.Contains(step, "SCAN") || strings.Contains(step, " seen ") && !strings.Contains(step, "room=? AND key=?") {
				t.Errorf("a step of it is %q", step)
			}
			return nil
		}, 1, 1, 1)
	}))
}

// TestARoomOfManyEntriesKnowsThemAll: also when they are more than known keeps.
func TestARoomOfManyEntriesKnowsThemAll(t *testing.T) {
	m := &tailModel{t: t}
	m.open(filepath.Join(t.TempDir(), "store.db"))
	defer func() { m.must(m.s.Close()) }()
	id := delivery.RoomID{1}
	m.must(m.s.CreateRoom(t.Context(), delivery.NewRoom{ID: id, Kind: delivery.RoomGroup, CreatedMS: 1, State: []byte{1}, GroupInfo: []byte{1}}))
	entry := func(i int) delivery.NewEntry {
		bytes := fmt.Appendf(nil, "%d", i)
		return delivery.NewEntry{Device: modelDevice, Hash: sha256.Sum256(bytes), Kind: delivery.KindApplication, Bytes: bytes}
	}
	const step = maxKnownRoom / 2
	for first := 0; first < 4*step; first += step {
		m.must(m.s.WithRoom(t.Context(), id, func(tx delivery.RoomTx) error {
			for i := range first + step {
				acc, found, err := tx.Duplicate(modelDevice, entry(i).Hash)
				if err != nil || found != (i < first) || found && acc.Seq != uint64(i)+1 {
					return fmt.Errorf("entry %d of %d: %+v, %v, %w", i, first, acc, found, err)
				}
				if found {
					continue
				}
				if _, err := tx.Append(entry(i)); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	if keys, ok := m.s.writer.tail.known.rooms[1]; !ok || keys != nil {
		t.Errorf("%d keys are kept of a room with too many", len(keys))
	}
}
