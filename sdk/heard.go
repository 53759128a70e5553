package sdk

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
)

// What frames of others are held to. A clock that is off by more than frameAge
// shows nobody and is shown to nobody.
const (
	frameAge      = 30 * time.Second // a frame counts this long before and after its time
	frameBurst    = 8                // frames of one device in a room at once
	framesASecond = 2
)

// How long what was said counts, unless it is said again.
const (
	typingFor = 6 * time.Second
	onlineFor = 150 * time.Second
)

// The kinds of frames. The numbers are the protocol's; others are passed over.
const (
	frameTyping    uint16 = 1
	frameTypingEnd uint16 = 2
	frameOnline    uint16 = 3
	frameOffline   uint16 = 4
)

// peer is what is remembered of a leaf in an epoch.
type peer struct {
	last   uint64  // time of its last frame
	tokens float64 // frames that it may still send at once
	filled int64   // when tokens was right, this device's clock, Unix milliseconds
}

// admit says whether a frame of a leaf may be looked into: it is of now, after the
// leaf's last one, and not one of too many. It costs no cryptography. l.mu is held.
func (l *live) admit(leaf uint32, frameMS uint64, nowMS int64) error {
	age := time.Duration(nowMS-int64(frameMS)) * time.Millisecond
	if frameMS > 1<<62/uint64(time.Millisecond) || age > frameAge || age < -frameAge {
		return errFrameTime
	}
	p := l.peers[leaf]
	if p == nil {
		p = &peer{tokens: frameBurst, filled: nowMS}
		l.peers[leaf] = p
	}
	if frameMS <= p.last {
		return errFrameTime
	}
	p.tokens = min(frameBurst, p.tokens+float64(max(nowMS-p.filled, 0))/1000*framesASecond)
	p.filled = nowMS
	if p.tokens < 1 {
		return errFrameFlood
	}
	p.tokens--
	return nil
}

// accept takes a frame of a member: it must be of this epoch, of now, and signed by
// the leaf that it names. Who it is from is read from the tree.
func (l *live) accept(f *delivery.Ephemeral, nowMS int64) (from policy.Member, kind uint16, err error) {
	u, err := parseEphemeral(f.Payload)
	if err != nil {
		return from, 0, err
	}
	l.mu.Lock()
	if !l.open || f.Epoch != l.at.epoch || f.Room != l.at.room || f.Leaf == l.at.leaf {
		l.mu.Unlock()
		return from, 0, errFrameForm
	}
	from, in := l.roster.At(f.Leaf)
	if !in {
		l.mu.Unlock()
		return from, 0, errFrameSigner
	}
	err = l.admit(f.Leaf, u.timeMS(), nowMS)
	secret, peers := l.secret.copied(), l.peers
	l.mu.Unlock()
	if err != nil {
		return from, 0, err
	}
	kind, err = u.open(secret, origin{f.Room, f.Epoch, f.Leaf}, from.Key)
	secret.wipe()
	if err != nil {
		return from, 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p := peers[f.Leaf]
	if p.last >= u.timeMS() {
		return from, 0, errFrameTime
	}
	p.last = u.timeMS()
	return from, kind, nil
}

// hearFrame acts on an ephemeral frame of the socket. What is not as it should be
// is dropped in silence.
func (e *Engine) hearFrame(f *delivery.Ephemeral) {
	l := e.liveOf(f.Room)
	if l == nil {
		return
	}
	now := e.Now()
	from, kind, err := l.accept(f, now.UnixMilli())
	if err != nil || from.Identity == e.account.Identity {
		return // the own devices need not be told what their person does
	}
	what := Activity{Room: f.Room, From: from.Identity}
	switch kind {
	case frameTyping:
		what.Kind = ActivityTyping
		e.heard.begin(what, now.Add(typingFor))
	case frameTypingEnd:
		what.Kind = ActivityTyping
		e.heard.end(what)
	case frameOnline:
		what.Kind = ActivityOnline
		e.heard.begin(what, now.Add(onlineFor))
	case frameOffline:
		what.Kind = ActivityOnline
		e.heard.end(what)
	}
}

// heard is what people do now, in all rooms.
type heard struct {
	mu    sync.Mutex             // guards everything below
	until map[Activity]time.Time // what goes on, and when it is over unless said again
	stir  chan struct{}          // closed and replaced when until changed
}

func newHeard() *heard { return &heard{until: map[Activity]time.Time{}, stir: make(chan struct{})} }

// stirred is closed when something begins, ends or is prolonged.
func (h *heard) stirred() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stir
}

// ring wakes who waits. h.mu is held.
func (h *heard) ring() {
	close(h.stir)
	h.stir = make(chan struct{})
}

func (h *heard) begin(a Activity, until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.until[a] = until
	h.ring()
}

func (h *heard) end(a Activity) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, goes := h.until[a]; goes {
		delete(h.until, a)
		h.ring()
	}
}

// keep forgets what people do in a room who are not in it any more; with a nil
// roster, everybody.
func (h *heard) keep(room delivery.RoomID, roster *policy.Roster) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := len(h.until)
	for a := range h.until {
		if a.Room == room && (roster == nil || roster.Has(a.From) == 0) {
			delete(h.until, a)
		}
	}
	if len(h.until) != before {
		h.ring()
	}
}

// now lists what goes on, in the order of rooms, people and kinds, and when the
// first of it is over. What is over already is forgotten.
func (h *heard) now(now time.Time) (out []Activity, next time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for a, until := range h.until {
		if !until.After(now) {
			delete(h.until, a)
			continue
		}
		out = append(out, a)
		if next.IsZero() || until.Before(next) {
			next = until
		}
	}
	slices.SortFunc(out, func(a, b Activity) int {
		return cmp.Or(bytes.Compare(a.Room[:], b.Room[:]), a.From.Compare(b.From), cmp.Compare(a.Kind, b.Kind))
	})
	return out, next
}

// spoke ends the typing of who said something: what they wrote is there.
func (e *Engine) spoke(r *room, done []opened) {
	if r.state.roster == nil {
		return
	}
	for _, o := range done {
		if o.app == nil {
			continue
		}
		if m, in := r.state.roster.At(o.app.Sender.Leaf); in {
			e.heard.end(Activity{Room: r.rec.ID, From: m.Identity, Kind: ActivityTyping})
		}
	}
}

// doing lists who does something in a room now.
func (e *Engine) doing(id delivery.RoomID, kind ActivityKind) (who []identity.PublicKey) {
	all, _ := e.heard.now(e.Now())
	for _, a := range all {
		if a.Room == id && a.Kind == kind {
			who = append(who, a.From)
		}
	}
	return who
}
