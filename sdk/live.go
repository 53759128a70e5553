package sdk

import (
	"sync"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
)

// live is what typing and presence need of a room's current epoch, beside the
// room's turn: who catches up with a long absence holds the turn for long, and is seen
// typing all the same. It is brought up to date whenever the turn is given back.
type live struct {
	mu     sync.Mutex // guards everything below; never held over I/O
	open   bool       // else nothing is sent or taken
	silent bool       // nothing is sent: the leaf is about to be replaced
	at     origin     // room, epoch and this device's own leaf
	roster *policy.Roster
	secret ephemeralSecret
	peers  map[uint32]*peer // by leaf, of this epoch
	last   uint64           // time of the last frame that this device sealed, Unix milliseconds
}

// epochView is a copy of the part of live that one frame needs.
type epochView struct {
	at     origin
	roster *policy.Roster
	silent bool
	secret ephemeralSecret // of keyed alone
}

// keyed is view with the epoch's secret, which the caller wipes.
func (l *live) keyed() (v epochView, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open {
		return epochView{}, false
	}
	return epochView{at: l.at, roster: l.roster, silent: l.silent, secret: l.secret.copied()}, true
}

// view copies what deciding about a frame needs; ok is false when the room takes
// none.
func (l *live) view() (v epochView, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return epochView{at: l.at, roster: l.roster, silent: l.silent}, l.open
}

// hush lets nothing be said any more until the room was looked at again.
func (l *live) hush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = true
}

// stamp is the time for the next frame: the clock's, and above the last one's. A
// clock that was set back by more than a frame counts begins anew: what it said
// before was too early for anybody to take.
func (l *live) stamp(nowMS int64) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := uint64(max(nowMS, 0))
	if l.last > now+uint64(frameAge.Milliseconds()) {
		l.last = 0
	}
	l.last = max(now, l.last+1)
	return l.last
}

// publish brings r.live up to date with the room. The caller holds the room's turn.
func (e *Engine) publish(r *room) {
	l, s := &r.live, r.state
	open := r.rec.Status == StatusOpen && r.rec.Kind != delivery.RoomSelf && s.group != nil && s.group.Active() && s.roster != nil
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = r.rec.Renew != ""
	if open && l.open && l.roster == s.roster && l.at.epoch == s.group.Epoch() {
		return
	}
	was := l.open
	l.open, l.peers, l.roster = false, nil, nil
	l.secret.wipe()
	if open {
		secret, err := s.group.Export(ephemeralLabel, r.rec.ID[:], ephemeralSecretSize)
		if err == nil {
			l.secret = ephemeralSecret{(*[ephemeralSecretSize]byte)(secret)}
			l.at = origin{room: r.rec.ID, epoch: s.group.Epoch(), leaf: s.group.OwnLeaf()}
			l.roster, l.peers, l.open = s.roster, map[uint32]*peer{}, true
		}
	}
	if was || l.open {
		e.heard.keep(r.rec.ID, l.roster)
	}
}

// liveOf finds what frames of a room need, without loading the room.
func (e *Engine) liveOf(id delivery.RoomID) *live {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.rooms[id]; r != nil {
		return &r.live
	}
	return nil
}
