package server

import (
	"encoding/binary"
	"encoding/hex"
	"sync"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/identity"
)

// Proof of work stands before what a device appends beyond a person's pace. It
// covers the service's seed of the hour, the device and the exact bytes, so an
// answer is good for one entry of one device.

// WorkLimits is the section [pow] of the limits.
type WorkLimits struct {
	Off          bool
	FreeMessages int // a minute; 60
	FreeBytes    int // a minute; 256 KiB
	Step         int // messages past the free ones for each further bit; 20
	MaxBits      int // 22
}

func (w *WorkLimits) defaults() {
	def(&w.FreeMessages, 60)
	def(&w.FreeBytes, 256<<10)
	def(&w.Step, 20)
	def(&w.MaxBits, 22)
}

// bits is the price after so many messages and bytes in a minute. Bytes count
// as the messages that they would be at the free average.
func (w *WorkLimits) bits(messages, size int) int {
	over := max(messages-w.FreeMessages, (size-w.FreeBytes)*w.FreeMessages/w.FreeBytes)
	if w.Off || over <= 0 {
		return 0
	}
	return min((over+w.Step-1)/w.Step, w.MaxBits)
}

// usages counts what devices append, by minute. Each instance counts for
// itself: a device that spreads over instances pays a little less.
type usages struct {
	mu     sync.Mutex // guards the fields below
	minute int64
	now    map[identity.DeviceID]usage
	last   map[identity.DeviceID]usage
}

type usage struct{ messages, bytes int }

func (u *usages) init() {
	u.now, u.last = map[identity.DeviceID]usage{}, map[identity.DeviceID]usage{}
}

// take counts one more entry of a device and asks pay for its price; what was not
// paid is not counted. It is counted first, so that entries that come at the same
// moment pay for each other. The previous minute counts by what is left of it.
func (u *usages) take(device identity.DeviceID, size int, at time.Time, pay func(messages, bytes int) error) error {
	minute := at.Unix() / 60
	u.mu.Lock()
	switch {
	case minute == u.minute+1:
		u.last, u.now = u.now, make(map[identity.DeviceID]usage, len(u.now))
		u.minute = minute
	case minute != u.minute:
		clear(u.last)
		clear(u.now)
		u.minute = minute
	}
	counted, n, last := u.now, u.now[device], u.last[device]
	n = usage{n.messages + 1, n.bytes + size}
	counted[device] = n
	u.mu.Unlock()
	left := 60 - int(at.Unix()%60)
	err := pay(n.messages+last.messages*left/60, n.bytes+last.bytes*left/60)
	if err != nil {
		u.mu.Lock()
		if n, still := counted[device]; still { // not swept with its minute
			counted[device] = usage{n.messages - 1, n.bytes - size}
		}
		u.mu.Unlock()
	}
	return err
}

// seed is the work's seed of an hour.
func (s *Server) seed(at time.Time) []byte {
	hour := binary.BigEndian.AppendUint64(nil, uint64(at.Unix()/3600))
	return s.secrets.seal("work", hour)[:16]
}

// checkWork demands work for an entry when its device is past the free pace.
func (s *Server) checkWork(device identity.DeviceID, hash [32]byte, size int, answer string) error {
	if s.Limits.Work.Off {
		return nil
	}
	now := s.Now()
	return s.usages.take(device, size, now, func(messages, bytes int) error {
		need := s.Limits.Work.bits(messages, bytes)
		if need == 0 {
			return nil
		}
		return s.paid(device, hash, need, answer, now)
	})
}

func (s *Server) paid(device identity.DeviceID, hash [32]byte, need int, answer string, now time.Time) error {
	if nonce, err := hex.DecodeString(answer); err == nil && len(nonce) > 0 && len(nonce) <= delivery.MaxWorkNonce {
		for _, at := range []time.Time{now, now.Add(-time.Hour)} {
			// A step of slack: other entries may have come in while this was solved.
			if delivery.WorkBits(s.seed(at), device, hash, nonce) >= need-1 {
				s.metrics.work.WithLabelValues("solved").Inc()
				return nil
			}
		}
	}
	s.metrics.work.WithLabelValues("demanded").Inc()
	return &delivery.Error{
		Code: delivery.CodeSolveWork, Detail: "more than the free pace: solve the work over these bytes and send once more",
		Work: &delivery.Work{Seed: s.seed(now), Bits: need},
	}
}
