package server

import (
	"context"
	"time"

	"github.com/askucher/compax-core/delivery"
)

// Bucket is a budget: Burst at once, refilled with PerHour.
type Bucket struct {
	Burst   float64
	PerHour float64
}

// Limits are a service's budgets. A bucket's subject is a device, an identity
// or an address, for the whole fleet; its name is a key of [DefaultBuckets].
type Limits struct {
	Buckets    map[string]Bucket // what differs from DefaultBuckets
	Work       WorkLimits
	Congestion CongestionLimits
	Archive    ArchiveLimits
	Memory     MemoryLimits
}

// ArchiveLimits are how much an account may keep sealed for itself. Zero is the
// default.
type ArchiveLimits struct {
	Segments int   // of history, of one identity; 8192
	Bytes    int64 // of them together; 256 MiB
	Snapshot int   // bytes of the sealed snapshot; delivery.MaxSnapshot, which is also the most
	Keys     int   // generations of account keys wrapped to one device; Config.MaxRevocations and one
}

func (l *ArchiveLimits) defaults() {
	def(&l.Segments, 8192)
	def(&l.Bytes, 256<<20)
	def(&l.Snapshot, delivery.MaxSnapshot)
}

// DefaultBuckets is the budget of everything that is not an append. What the
// subject is stands behind it.
func DefaultBuckets() map[string]Bucket {
	return map[string]Bucket{
		"enrol":     {60, 120},    // address
		"login":     {300, 6000},  // device: every run of a command may be a login
		"challenge": {300, 6000},  // address
		"revoke":    {60, 120},    // address
		"claim":     {200, 600},   // requester's identity
		"drain":     {30, 30},     // requester's identity and the claimed one
		"publish":   {30, 120},    // device, batches
		"room":      {60, 120},    // identity
		"search":    {120, 3600},  // device
		"profile":   {20, 20},     // identity
		"listing":   {30, 60},     // device
		"ask":       {10, 20},     // identity
		"report":    {20, 60},     // device
		"resync":    {3, 6},       // device and room
		"blob":      {600, 3600},  // device, uploads begun
		"archive":   {600, 3600},  // identity
		"ephemeral": {60, 7200},   // device
		"heal":      {600, 36000}, // device
	}
}

func (l *Limits) defaults() {
	merged := DefaultBuckets()
	for name, b := range l.Buckets {
		merged[name] = b
	}
	l.Buckets = merged
	l.Work.defaults()
	l.Congestion.defaults()
	l.Archive.defaults()
	l.Memory.defaults()
}

// spend takes cost from a bucket. One that cannot be read allows and counts.
func (s *Server) spend(ctx context.Context, name, subject string, cost float64) error {
	b, known := s.Limits.Buckets[name]
	if !known || b.Burst <= 0 {
		return nil
	}
	ok, after, err := s.Buckets.Take(ctx, name+":"+subject, cost, b.PerHour/3600, b.Burst, s.Now())
	if err != nil {
		s.metrics.bucketsOpen.Inc()
		return nil
	}
	if ok {
		return nil
	}
	s.metrics.throttled.WithLabelValues(name).Inc()
	return &delivery.Error{Code: delivery.CodeSlowDown, Detail: "this budget is spent: " + name, RetryAfter: max(after, time.Second)}
}
