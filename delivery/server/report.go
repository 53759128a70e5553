package server

import (
	"errors"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
)

// The ladder of recovery (RFC 9420 §16.12, RFC 9750 §5): a member reports a
// commit that it cannot process, because the service cannot see whether path
// secrets decrypt; then devices resync, held back by a rate; then the room gets
// a successor.

// reasons are the ones that are counted by name.
var reasons = map[string]bool{"path_secret": true, "confirmation_tag": true, "welcome": true, "parent_hash": true, "signature": true, "policy": true}

// report notes that the caller cannot process the commit that led to the
// present epoch.
func (s *Server) report(c *call) error {
	id, err := s.room(c)
	if err != nil {
		return err
	}
	var req delivery.ReportRequest
	if err := c.readJSON(&req); err != nil {
		return err
	}
	if len(req.Reason) > 64 {
		return bad("a reason is one of the client's codes")
	}
	if err := s.spend(c, "report", c.device().String(), 1); err != nil {
		return err
	}
	intervals, err := s.store.Memberships(c, id, c.device())
	if err != nil {
		return err
	}
	member := false // before the commit, and still after it: who it removed has no say
	for _, m := range intervals {
		member = member || m.From < req.Seq && (m.Current() || req.Seq < m.Until)
	}
	if !member {
		return delivery.ErrNotFound
	}
	entries, err := s.store.Log(c, id, delivery.LogRange{After: req.Seq - 1, Upto: req.Seq, Limit: 1, MaxBytes: delivery.MaxEntry})
	if err != nil {
		return err
	}
	if len(entries) != 1 || entries[0].Kind != delivery.KindCommit || entries[0].Epoch != req.Epoch {
		return bad("no commit of this epoch stands at this seq")
	}
	reason := req.Reason
	if !reasons[reason] {
		reason = "other"
	}
	s.metrics.reports.WithLabelValues(reason).Inc()
	if _, err := s.store.Report(c, id, req.Epoch+1, c.who.Device.Identity); err != nil {
		return err
	}
	return c.nothing()
}

// succeed closes a room for its successor, which exists already, has the caller in
// it and keeps what this one decided. An admin may always; anybody may once half of
// those who did not make the commit that led to this epoch have reported it, and in a
// room of three or more not on their own word alone.
func (s *Server) succeed(c *call) error {
	id, err := s.room(c)
	if err != nil {
		return err
	}
	var req delivery.SucceedRequest
	if err := c.readJSON(&req); err != nil {
		return err
	}
	if _, err := delivery.RoomIDFromBytes(req.Successor[:]); err != nil || req.Successor == id {
		return bad("the successor is not another room")
	}
	for range maxTries {
		if err := s.goOn(c, id, req.Successor); !errors.Is(err, errMoved) {
			return err
		}
	}
	return delivery.Refuse(delivery.CodeRetry, "the room is changing too fast: ask again")
}

// goOn checks a succession outside any lock and closes the room when it is as it was
// checked (errMoved).
func (s *Server) goOn(c *call, id, next delivery.RoomID) error {
	f, err := s.follow(c, id)
	if err != nil {
		return err
	}
	held, err := s.held(c, id)
	if err != nil {
		return err
	}
	m, in := f.roster.Device(c.device())
	if !in {
		return delivery.ErrNotFound
	}
	if policy.Going(f.roster, policyHeld(held), m.Leaf) {
		return delivery.Refuse(delivery.CodeRefused, policy.ErrUnderRemoval.Error())
	}
	room, err := s.store.Room(c, id)
	if err != nil {
		return err
	}
	if next.Home() == s.Home && room.Status != delivery.RoomSucceeded {
		if err := s.checkSuccessor(c, f, policyHeld(held), next); err != nil {
			return err
		}
	}
	if !policy.IsAdmin(f.room, f.roster, m) {
		n, err := s.store.Report(c, id, f.epoch, c.who.Device.Identity)
		if err != nil {
			return err
		}
		if others := len(f.roster.Identities()) - 1; 2*n < others || others > 1 && n < 2 {
			if err := s.broken(RuleSucceed, delivery.Refuse(delivery.CodeRefused, "only an admin closes a room whose commits can be processed")); err != nil {
				return err
			}
		}
	}
	refs := make([][]byte, len(held))
	for i, h := range held {
		refs[i] = h.Ref
	}
	head := uint64(1)
	err = s.store.WithRoom(c, id, func(tx delivery.RoomTx) error {
		room := tx.Room()
		head = max(room.NextSeq-1, 1)
		if _, err := tx.Member(c.device()); err != nil {
			return err
		}
		switch {
		case room.Status == delivery.RoomSucceeded && *room.Successor == next:
			return nil
		case room.Status == delivery.RoomSucceeded:
			return delivery.Refuse(delivery.CodeConflict, "the room has another successor")
		}
		now, err := tx.Proposals()
		if err != nil {
			return err
		}
		if room.Epoch != f.epoch || !sameHeld(refs, now) {
			return errMoved
		}
		return tx.SetStatus(delivery.RoomSucceeded, &next)
	})
	if err != nil {
		return err
	}
	s.metrics.succeeded.Inc()
	members, err := s.members(c, id, f.epoch)
	if err != nil {
		return err
	}
	// Whoever looks at the room now learns of its successor.
	s.ring(c, members, delivery.Hint{Kind: delivery.HintEntry, Room: id, Seq: head})
	return c.nothing()
}

// checkSuccessor checks a successor of this home: the caller is in it, and it keeps
// what the room decided.
func (s *Server) checkSuccessor(c *call, f *followed, held []policy.Proposal, next delivery.RoomID) error {
	absent := delivery.Refuse(delivery.CodeRefused, "the successor has to exist, with this device in it")
	to, err := s.follow(c, next)
	if errors.Is(err, delivery.ErrNotFound) {
		return absent
	}
	if err != nil {
		return err
	}
	if _, in := to.roster.Device(c.device()); !in {
		return absent
	}
	if err := policy.CheckSuccession(f.room, f.roster, held, to.room); err != nil {
		return s.broken(RuleSuccessor, delivery.Refuse(delivery.CodeRefused, err.Error()))
	}
	return nil
}
