package server

import (
	"sync"

	"github.com/askucher/compax-core/delivery"
)

// readLog answers with a page of a room's log: what the device may read, which
// is what was appended while it was a member.
func (s *Server) readLog(c *call) error {
	id, err := s.room(c)
	if err != nil {
		return err
	}
	after, err := c.number("after", 0)
	if err != nil {
		return err
	}
	upto, err := c.number("upto", 0)
	if err != nil {
		return err
	}
	limit, err := c.number("limit", delivery.MaxLogEntries)
	if err != nil {
		return err
	}
	intervals, err := s.store.Memberships(c, id, c.device())
	if err != nil {
		return err
	}
	span, ok := readable(intervals, after)
	if !ok {
		return delivery.Refuse(delivery.CodeNotFound, "no such room, or nothing in it for this device")
	}
	room, err := s.store.Room(c, id)
	if err != nil {
		return err
	}
	after = max(after, span.From)
	head := room.NextSeq - 1
	if span.Until != 0 {
		head = min(head, span.Until)
		if upto == 0 || upto > span.Until {
			upto = span.Until
		}
	}
	if after < head && after+1 < room.FirstSeq {
		return &delivery.Error{Code: delivery.CodeTrimmed, Detail: "older entries are past retention", Seq: room.FirstSeq}
	}
	page := delivery.LogPage{Head: head, First: room.FirstSeq}
	if upto == 0 || upto > after {
		page.Entries, err = s.store.Log(c, id, delivery.LogRange{
			After: after, Upto: upto, Limit: int(min(max(limit, 1), delivery.MaxLogEntries)), MaxBytes: delivery.MaxLogPage,
		})
		if err != nil {
			return err
		}
	}
	s.metrics.read.Add(float64(len(page.Entries)))
	buffer := pages.Get().(*[]byte)
	b := page.AppendTo((*buffer)[:0])
	err = c.binary(b)
	if cap(b) <= 256<<10 {
		*buffer = b
		pages.Put(buffer)
	}
	return err
}

var pages = sync.Pool{New: func() any { return new([]byte) }}

// readable is the first interval, in order, with something after a seq.
func readable(intervals []delivery.Membership, after uint64) (delivery.Membership, bool) {
	for _, m := range intervals {
		if m.Current() || m.Until > after {
			return m, true
		}
	}
	if n := len(intervals); n > 0 { // everything it may read is read
		return intervals[n-1], true
	}
	return delivery.Membership{}, false
}
