package sqlite

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/askucher/compax-core/delivery"
)

// An append writes one row, the entry in log, at the end of the table: 64 appends
// fill ten pages. What finds the entry again (its row in places and in seen, and its
// room's next_seq) would change three pages each, spread over the file, and be four
// fifths of what a commit writes. It is kept in memory first and written later, many
// at once in the order of rooms, some with every commit: the entry is placed then.
//
// Nothing depends on that memory. Which entries are placed is known from the file
// (placed.upto, and every entry's key in log), and whoever opens it reads the rest.

// generationSize is how many entries wait before they are placed together: the more,
// the fewer pages for each. Two generations wait at most, of about 300 bytes an entry
// in memory, and who opens the file reads them.
const generationSize = 8192

// placeAtOnce is how many rows one statement places.
const placeAtOnce = 16

// place is where an entry stands in log.
type place struct {
	seq        uint64
	at         int64
	acceptedMS int64
}

// unplaced is an entry whose row in log is written and nothing else.
type unplaced struct {
	place
	id    delivery.RoomID
	room  int64 // rooms.n
	epoch uint64
	key   []byte // nil: a marker, which nobody sends twice
}

func (e *unplaced) accepted() delivery.Accepted {
	return delivery.Accepted{Seq: e.seq, Epoch: e.epoch, AcceptedMS: e.acceptedMS}
}

// seenAt is a key of the table seen.
type seenAt struct {
	room int64
	key  [seenKeySize]byte
}

// generation is entries that are placed together.
type generation struct {
	rooms   map[delivery.RoomID][]place // by seq
	seen    map[seenAt]delivery.Accepted
	entries []unplaced
	upto    int64 // the highest at
	placed  int   // how many of the entries are
}

func newGeneration() *generation {
	return &generation{rooms: map[delivery.RoomID][]place{}, seen: map[seenAt]delivery.Accepted{}}
}

func (g *generation) add(e unplaced) {
	g.entries, g.upto = append(g.entries, e), e.at
	g.rooms[e.id] = append(g.rooms[e.id], e.place)
	if e.key != nil {
		g.seen[seenAt{e.room, [seenKeySize]byte(e.key)}] = e.accepted()
	}
}

// tail is what is not placed. The writer's goroutine alone changes it; readers
// look through a view.
type tail struct {
	mu     sync.RWMutex // guards newer and older, the rooms in them, and flying
	newer  *generation  // takes what is committed
	older  *generation  // is being placed, sorted; nil = none
	flying []unplaced   // of the transaction that is being committed now

	// The writer's alone.
	known   known      // what seen has of some rooms
	size    int        // of a generation
	next    int64      // at of the next entry; no number is given twice
	pending []unplaced // of the open transaction
	settled int        // all but pending[settled:] is placed in it; -1 = that was not asked for
	placing int        // how many of older are placed in it
}

// loadTail reads what is not placed.
func loadTail(c *conn) (*tail, error) {
	r, err := c.one("SELECT upto, (SELECT max(at) FROM log) FROM placed")
	if err != nil {
		return nil, err
	}
	upto := r.int(0)
	t := &tail{newer: newGeneration(), size: generationSize, known: newKnown(), next: max(upto, r.int(1)) + 1, settled: -1}
	g := newGeneration()
	err = c.query(`SELECT l.at, l.room, l.seq, l.epoch, l.kind, l.accepted_ms, l.key, r.id
		FROM log l CROSS JOIN rooms r ON r.n = l.room WHERE l.at > ? ORDER BY l.at`, func(r row) error {
		e := unplaced{place: place{at: r.int(0), seq: r.uint(2), acceptedMS: r.int(5)}, room: r.int(1), epoch: r.uint(3), key: r.blob(6)}
		r.bytes(7, e.id[:])
		if delivery.EntryKind(r.int(4)) == delivery.KindCommit {
			e.epoch++
		}
		g.add(e)
		return nil
	}, upto)
	if err != nil {
		return nil, err
	}
	t.newer = g
	t.turn(1)
	return t, nil
}

// turn lets the next generation begin when this one has enough.
func (t *tail) turn(enough int) {
	if t.older != nil || len(t.newer.entries) < enough {
		return
	}
	sortPlaces(t.newer.entries)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.older, t.newer = t.newer, newGeneration()
}

func sortPlaces(entries []unplaced) {
	slices.SortFunc(entries, func(a, b unplaced) int {
		return cmp.Or(cmp.Compare(a.room, b.room), cmp.Compare(a.seq, b.seq))
	})
}

// give is the place in log for a new row.
func (t *tail) give() int64 {
	t.next++
	return t.next - 1
}

// find looks an entry up by its key, also in the open transaction.
func (t *tail) find(room int64, key []byte) (delivery.Accepted, bool) {
	for i := range t.pending {
		if e := &t.pending[i]; e.room == room && string(e.key) == string(key) {
			return e.accepted(), true
		}
	}
	at := seenAt{room, [seenKeySize]byte(key)}
	if acc, ok := t.newer.seen[at]; ok {
		return acc, true
	}
	if t.older != nil {
		acc, ok := t.older.seen[at]
		return acc, ok
	}
	return delivery.Accepted{}, false
}

// newest is a room's last entry as the open transaction sees it.
func (t *tail) newest(id delivery.RoomID) (place, bool) {
	for i := len(t.pending) - 1; i >= 0; i-- {
		if t.pending[i].id == id {
			return t.pending[i].place, true
		}
	}
	return t.view().newest(id)
}

// extend brings a room's row up to its last entry.
func (p place) extend(room *delivery.Room) {
	if p.seq >= room.NextSeq {
		room.NextSeq, room.ChangedMS = p.seq+1, p.acceptedMS
	}
}

// mark says where the open transaction stands, and cut goes back there.
func (t *tail) mark() (pending, settled int) { return len(t.pending), t.settled }

func (t *tail) cut(pending, settled int) { t.pending, t.settled = t.pending[:pending], settled }

// launch shows readers what is about to be committed: they take of it what their
// own state of the file has.
func (t *tail) launch() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flying = slices.Clone(t.pending)
}

// rollback forgets the open transaction.
func (t *tail) rollback() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end()
}

func (t *tail) end() { t.flying, t.pending, t.settled, t.placing = nil, t.pending[:0], -1, 0 }

// committed takes over what the transaction wrote.
func (t *tail) committed() {
	t.mu.Lock()
	left := t.pending
	if t.settled >= 0 {
		left = left[t.settled:]
		t.older, t.newer = nil, newGeneration()
	}
	if t.older != nil {
		if t.older.placed += t.placing; t.older.placed == len(t.older.entries) {
			t.older = nil
		}
	}
	for _, e := range left {
		t.newer.add(e)
	}
	t.end()
	t.mu.Unlock()
	t.turn(t.size)
}

// exec is how places are written.
type exec func(query string, args ...any) (int64, error)

// placeSome places entries of the older generation, somewhat more than the open
// transaction brings.
func (t *tail) placeSome(run exec) error {
	g := t.older
	if g == nil || t.settled >= 0 {
		return nil
	}
	n := len(g.entries) - g.placed
	if len(t.newer.entries)+len(t.pending) < t.size {
		n = min(n, placeAtOnce*(1+len(t.pending)*5/4/placeAtOnce))
	}
	if err := t.placeRows(run, g.entries[g.placed:g.placed+n]); err != nil {
		return err
	}
	t.placing = n
	if g.placed+n == len(g.entries) {
		return t.placedUpto(run, g.upto)
	}
	return nil
}

// placeAll places everything, also what the open transaction brought so far: for who
// changes or drops many rooms' entries by the tables alone.
func (t *tail) placeAll(run exec) error {
	var all []unplaced
	if t.settled >= 0 {
		all = slices.Clone(t.pending[t.settled:])
	} else {
		if t.older != nil {
			all = slices.Clone(t.older.entries[t.older.placed:])
		}
		all = append(append(all, t.newer.entries...), t.pending...)
	}
	sortPlaces(all)
	if err := t.placeRows(run, all); err != nil {
		return err
	}
	t.settled = len(t.pending)
	return t.placedUpto(run, t.next-1)
}

func (t *tail) placedUpto(run exec, at int64) error {
	_, err := run("UPDATE placed SET upto = ?", at)
	return err
}

// placeRows writes the places of sorted entries. It may have been done before: a
// service that was killed does not know how far it came.
func (t *tail) placeRows(run exec, entries []unplaced) error {
	for len(entries) > 0 {
		n := 1
		if len(entries) >= placeAtOnce {
			n = placeAtOnce
		}
		if err := t.placeChunk(run, entries[:n]); err != nil {
			return err
		}
		entries = entries[n:]
	}
	return nil
}

const (
	intoPlaces   = "INSERT INTO places(room, seq, at) VALUES (?, ?, ?)"
	intoSeen     = "INSERT INTO seen(room, key, seq, epoch, accepted_ms) VALUES (?, ?, ?, ?, ?)"
	onlyNew      = " ON CONFLICT DO NOTHING"
	placeOne     = intoPlaces + onlyNew
	seeOne       = intoSeen + onlyNew
	bringForward = "UPDATE rooms SET next_seq = ?, changed_ms = ? WHERE n = ? AND next_seq < ?"
)

var (
	placeMany = intoPlaces + strings.Repeat(", (?, ?, ?)", placeAtOnce-1) + onlyNew
	seeMany   = intoSeen + strings.Repeat(", (?, ?, ?, ?, ?)", placeAtOnce-1) + onlyNew
)

func (t *tail) placeChunk(run exec, entries []unplaced) error {
	places := make([]any, 0, 3*placeAtOnce)
	seen := make([]any, 0, 5*placeAtOnce)
	for i := range entries {
		e := &entries[i]
		room, seq := any(e.room), any(int64(e.seq))
		places = append(places, room, seq, e.at)
		if e.key != nil {
			t.known.add(e.room, e.key)
			seen = append(seen, room, e.key, seq, int64(e.epoch), e.acceptedMS)
		}
		if i == len(entries)-1 || entries[i+1].room != e.room {
			if _, err := run(bringForward, int64(e.seq)+1, e.acceptedMS, room, int64(e.seq)+1); err != nil {
				return err
			}
		}
	}
	if err := insertRows(run, placeOne, placeMany, 3, places); err != nil {
		return err
	}
	return insertRows(run, seeOne, seeMany, 5, seen)
}

// insertRows inserts rows of some columns with one statement, or one by one.
func insertRows(run exec, one, many string, columns int, args []any) error {
	if len(args) == columns*placeAtOnce {
		_, err := run(many, args...)
		return err
	}
	for ; len(args) > 0; args = args[columns:] {
		if _, err := run(one, args[:columns]...); err != nil {
			return err
		}
	}
	return nil
}

// view is the tail of a moment: whatever is not placed in a state of the file that
// is read after it is in the view.
type view struct {
	mu           *sync.RWMutex // the tail's
	newer, older *generation
	flying       []unplaced
}

func (t *tail) view() view {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return view{&t.mu, t.newer, t.older, t.flying}
}

// newest is the room's last entry that was committed.
func (v view) newest(id delivery.RoomID) (place, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, g := range []*generation{v.newer, v.older} {
		if g == nil {
			continue
		}
		if places := g.rooms[id]; len(places) > 0 {
			return places[len(places)-1], true
		}
	}
	return place{}, false
}

// after is a room's entries behind a seq, by seq. The last of them may not have been
// committed: then their rows are not in the file.
func (v view) after(id delivery.RoomID, seq uint64) []place {
	v.mu.RLock()
	defer v.mu.RUnlock()
	var found []place
	add := func(p place) {
		if p.seq > seq {
			found, seq = append(found, p), p.seq
		}
	}
	for _, g := range []*generation{v.older, v.newer} {
		if g != nil {
			for _, p := range g.rooms[id] {
				add(p)
			}
		}
	}
	for i := range v.flying {
		if v.flying[i].id == id {
			add(v.flying[i].place)
		}
	}
	return found
}
