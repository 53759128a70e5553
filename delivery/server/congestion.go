package server

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/askucher/compax-core/delivery"
)

// A service that runs out of something gives things up in order, the largest
// and least urgent first, instead of falling over. Three readings are taken
// (load, free disk, bytes moved) and the worst decides. Entries are never
// refused by it: nothing in this file is asked on their way.

// Level says how hard pressed an instance is.
type Level uint8

// The levels.
const (
	Calm Level = iota
	Busy
	Congested
	Critical
)

var levelNames = [...]string{"calm", "busy", "congested", "critical"}

func (l Level) String() string { return levelNames[min(l, Critical)] }

// UnmarshalText reads a level's name.
func (l *Level) UnmarshalText(text []byte) error {
	for i, name := range levelNames {
		if string(text) == name {
			*l = Level(i)
			return nil
		}
	}
	return fmt.Errorf("%q is not calm, busy, congested or critical", text)
}

// Machine reads what an instance runs on.
type Machine interface {
	// Load is the average number of processes that want to run, for each
	// processor; ok is false where the system does not tell.
	Load() (perCore float64, ok bool)
}

// CongestionLimits is the section [congestion] of the limits: from which reading
// on an instance is at a level. A zero takes the default. They only narrow what
// the other limits allow.
type CongestionLimits struct {
	Off bool

	CPUBusy, CPUCongested, CPUCritical    float64 // load for each processor; 2, 3, 4
	DiskBusy, DiskCongested, DiskCritical int64   // bytes free where blobs lie; 2 GiB, 1 GiB, 512 MiB
	MovedBusy, MovedCongested             int64   // bytes of blobs a second, in and out; 1 GiB, 2 GiB
	MovedCritical                         int64   // 4 GiB

	// MaxUploadBusy and MaxUploadCongested are the largest uploads that begin at
	// these levels, in bytes: 8 MiB (a photo, no video), 1 MiB (a voice message).
	// None begins when it is critical.
	MaxUploadBusy, MaxUploadCongested int64
	RefuseCallsAt, RefuseVoiceAt      Level // Congested, Critical

	CalmAfter time.Duration // how long a lower reading must last for each step down; a minute
}

func (c *CongestionLimits) defaults() {
	rising(&c.CPUBusy, &c.CPUCongested, &c.CPUCritical, 2, 3, 4)
	rising(&c.MovedBusy, &c.MovedCongested, &c.MovedCritical, 1<<30, 2<<30, 4<<30)
	busy, congested, critical := -c.DiskBusy, -c.DiskCongested, -c.DiskCritical // less is worse
	rising(&busy, &congested, &critical, -2<<30, -1<<30, -512<<20)
	c.DiskBusy, c.DiskCongested, c.DiskCritical = -busy, -congested, -critical
	def(&c.MaxUploadBusy, max(8<<20, c.MaxUploadCongested))
	def(&c.MaxUploadCongested, min(1<<20, c.MaxUploadBusy))
	def(&c.RefuseCallsAt, Congested)
	def(&c.RefuseVoiceAt, Critical)
	def(&c.CalmAfter, time.Minute)
}

// rising fills in what is not set of three rising bounds, bent to those that are.
func rising[T int64 | float64](busy, congested, critical *T, b, c, k T) {
	if *busy == 0 {
		*busy = b
		for _, above := range []T{*congested, *critical} {
			if above != 0 {
				*busy = min(*busy, above)
			}
		}
	}
	if *congested == 0 {
		*congested = max(c, *busy)
		if *critical != 0 {
			*congested = max(*busy, min(*congested, *critical))
		}
	}
	if *critical == 0 {
		*critical = max(k, *congested)
	}
}

// Faults says what is wrong, by the setting's name in the section.
func (c CongestionLimits) Faults() map[string]string {
	faults := map[string]string{}
	for name, v := range map[string]float64{
		"cpu_busy": c.CPUBusy, "cpu_congested": c.CPUCongested, "cpu_critical": c.CPUCritical,
		"disk_free_busy": float64(c.DiskBusy), "disk_free_congested": float64(c.DiskCongested), "disk_free_critical": float64(c.DiskCritical),
		"moved_busy": float64(c.MovedBusy), "moved_congested": float64(c.MovedCongested), "moved_critical": float64(c.MovedCritical),
		"max_upload_busy": float64(c.MaxUploadBusy), "max_upload_congested": float64(c.MaxUploadCongested), "calm_after_seconds": float64(c.CalmAfter),
	} {
		if v < 0 {
			faults[name] = "it is not negative"
		}
	}
	c.defaults()
	for name, above := range map[string]bool{
		"cpu_busy": c.CPUBusy > c.CPUCongested, "cpu_congested": c.CPUCongested > c.CPUCritical,
		"moved_busy": c.MovedBusy > c.MovedCongested, "moved_congested": c.MovedCongested > c.MovedCritical,
	} {
		if above && faults[name] == "" {
			faults[name] = "it is above the bound of the next level"
		}
	}
	for name, below := range map[string]bool{"disk_free_busy": c.DiskBusy < c.DiskCongested, "disk_free_congested": c.DiskCongested < c.DiskCritical} {
		if below && faults[name] == "" {
			faults[name] = "it is below the bound of the next level"
		}
	}
	if c.MaxUploadCongested > c.MaxUploadBusy {
		faults["max_upload_congested"] = "it allows more than max_upload_busy"
	}
	return faults
}

// reading is what was measured at one moment.
type reading struct {
	load  float64 // negative: not known
	free  int64   // negative: not known
	moved int64   // a second
}

// level is the worst of a reading.
func (c *CongestionLimits) level(r reading) Level {
	l := Calm
	for at, reached := range map[Level]bool{
		Busy:      r.load >= c.CPUBusy || r.free >= 0 && r.free < c.DiskBusy || r.moved >= c.MovedBusy,
		Congested: r.load >= c.CPUCongested || r.free >= 0 && r.free < c.DiskCongested || r.moved >= c.MovedCongested,
		Critical:  r.load >= c.CPUCritical || r.free >= 0 && r.free < c.DiskCritical || r.moved >= c.MovedCritical,
	} {
		if reached {
			l = max(l, at)
		}
	}
	return l
}

// maxUpload is the largest upload that begins at a level; it never raises most.
func (c *CongestionLimits) maxUpload(l Level, most int64) int64 {
	switch l {
	case Calm:
		return most
	case Busy:
		return min(most, c.MaxUploadBusy)
	case Congested:
		return min(most, c.MaxUploadCongested)
	}
	return 0
}

// refused lists what is not on offer at a level, the least urgent first.
func (c *CongestionLimits) refused(l Level) []string {
	out := []string{}
	for _, kind := range []struct {
		name string
		at   Level
	}{{"video", Busy}, {"photo", Congested}, {"calls", c.RefuseCallsAt}, {"voice", c.RefuseVoiceAt}} {
		if kind.at != Calm && l >= kind.at {
			out = append(out, kind.name)
		}
	}
	return out
}

// pressure remembers an instance's level.
type pressure struct {
	moved atomic.Int64 // bytes of blobs so far

	mu     sync.Mutex // guards the fields below
	level  Level
	since  time.Time // the last moment at which the level was reached
	at     time.Time // of the last reading
	before int64     // moved at that time
}

// readEvery is how long a reading counts.
const readEvery = 5 * time.Second

// note takes a reading in. Up goes it at once, down a step each time that the
// readings were lower for CalmAfter, so that nothing flutters at a border.
func (p *pressure) note(l Level, now time.Time, calmAfter time.Duration) Level {
	switch {
	case l >= p.level:
		p.level, p.since = l, now
	case now.Sub(p.since) >= calmAfter:
		p.level, p.since = p.level-1, now
	}
	return p.level
}

// Level is how hard pressed this instance is now.
func (s *Server) Level(ctx context.Context) Level {
	c := &s.Limits.Congestion
	if c.Off || s.Machine == nil {
		return Calm
	}
	p := &s.pressure
	now := s.Now()
	p.mu.Lock()
	last, level := p.at, p.level
	fresh := !last.IsZero() && now.Sub(last) < readEvery && !now.Before(last)
	if !fresh {
		p.at = now // this call reads, and nobody else meanwhile
	}
	p.mu.Unlock()
	if fresh {
		return level
	}
	r := reading{load: -1, free: -1}
	if load, ok := s.Machine.Load(); ok {
		r.load = load
	}
	if free, err := s.Blobs.Free(ctx); err == nil {
		r.free = free
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	moved := p.moved.Load()
	if took := now.Sub(last); !last.IsZero() && took > 0 {
		r.moved = int64(float64(moved-p.before) / took.Seconds())
	}
	p.before = moved
	level = p.note(c.level(r), now, c.CalmAfter)
	s.metrics.pressure.Set(float64(level))
	return level
}

// mayUpload refuses an upload that is too large for the present level.
func (s *Server) mayUpload(ctx context.Context, size int64) error {
	l := s.Level(ctx)
	most := s.Limits.Congestion.maxUpload(l, s.MaxBlob)
	if size <= most {
		return nil
	}
	s.metrics.shed.WithLabelValues(l.String()).Inc()
	detail := "the service is short of room or time and takes no files now; text goes through"
	if most > 0 {
		detail = fmt.Sprintf("the service is short of room or time and takes files of at most %d bytes now; text goes through", most)
	}
	return &delivery.Error{Code: delivery.CodeFull, Detail: detail, RetryAfter: s.Limits.Congestion.CalmAfter}
}

// pressureLoop reads also when nobody asks, for the metrics.
func (s *Server) pressureLoop(ctx context.Context) {
	make(kick).every(ctx, 2*readEvery, func(ctx context.Context) { s.Level(ctx) })
}
