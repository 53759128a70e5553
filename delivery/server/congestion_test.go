package server

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
)

// gauge is a machine and a disk as a test wants them.
type gauge struct {
	delivery.BlobStore
	mu   sync.Mutex // guards the fields below
	load float64
	free int64
}

func (g *gauge) set(load float64, free int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.load, g.free = load, free
}

func (g *gauge) Load() (float64, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.load, g.load >= 0
}

func (g *gauge) Free(context.Context) (int64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.free, nil
}

func pressed(t *testing.T) (*world, *gauge) {
	w := newWorld(t)
	g := &gauge{BlobStore: w.blobs, free: 100 << 30}
	w.blobs, w.config.Machine = g, g
	return w, g
}

func TestTheWorstReadingDecides(t *testing.T) {
	w, g := pressed(t)
	w.still = true
	in := w.start()
	ada := in.enrolled("ada")
	for _, c := range []struct {
		load    float64
		free    int64
		want    Level
		largest int64
		refused []string
	}{
		{0, 100 << 30, Calm, in.MaxBlob, []string{}},
		{1.9, 2 << 30, Calm, in.MaxBlob, []string{}},
		{2, 100 << 30, Busy, 8 << 20, []string{"video"}},
		{0, 2<<30 - 1, Busy, 8 << 20, []string{"video"}},
		{3, 100 << 30, Congested, 1 << 20, []string{"video", "photo", "calls"}},
		{0, 1<<30 - 1, Congested, 1 << 20, []string{"video", "photo", "calls"}},
		{4, 100 << 30, Critical, 0, []string{"video", "photo", "calls", "voice"}},
		{-1, 512<<20 - 1, Critical, 0, []string{"video", "photo", "calls", "voice"}},
	} {
		in.pressure.level, in.pressure.at = Calm, time.Time{}
		g.set(c.load, c.free)
		var info delivery.Info
		check(t, ada.json(delivery.RouteInfo, nil, &info))
		if info.Level != c.want.String() || info.MaxBlobBytes != c.largest || !slices.Equal(info.Refused, c.refused) {
			t.Errorf("%+v: %s, %d, %v", c, info.Level, info.MaxBlobBytes, info.Refused)
		}
		var v delivery.BlobView
		if c.largest > 0 && c.largest < in.MaxBlob {
			check(t, ada.json(delivery.RouteUpload, delivery.BlobRequest{Size: c.largest}, &v))
		}
		if c.want > Calm {
			err := ada.json(delivery.RouteUpload, delivery.BlobRequest{Size: c.largest + 1}, &v)
			wantCode(t, err, delivery.CodeFull)
			if !strings.Contains(err.Error(), "short of room or time") || !strings.Contains(err.Error(), "text goes through") {
				t.Errorf("%v", err)
			}
		}
	}
}

// TestTextIsNeverShed: at the worst level entries of the largest text, proposals
// and commits go on, and what refers to a blob that is there.
func TestTextIsNeverShed(t *testing.T) {
	w, g := pressed(t)
	in := w.start()
	p := in.people("ada", "bob")
	id := group(t, p...)
	blob := p[0].blob(t, []byte("sent before"))
	g.set(100, 0)
	w.clock.add(readEvery)
	if l := in.Level(t.Context()); l != Critical {
		t.Fatalf("level %s", l)
	}
	p[0].say(id, strings.Repeat("x", delivery.MaxText-4096))
	_, err := p[0].post(id, delivery.AppendRequest{Entry: p[0].seal(id, "with a picture"), Blobs: []delivery.BlobID{blob}})
	check(t, err)
	p[0].sync(id)
	p[0].commit(id)
	p[1].sync(id)
	agree(t, id, p...)
}

// TestAnUploadStopsAtTheLastOfTheDisk: what has begun goes on while it is busy,
// and waits, with what it has, when it is critical.
func TestAnUploadStopsAtTheLastOfTheDisk(t *testing.T) {
	w, g := pressed(t)
	w.still = true
	in := w.start()
	ada := in.enrolled("ada")
	data := make([]byte, 10<<20)
	var v delivery.BlobView
	check(t, ada.json(delivery.RouteUpload, delivery.BlobRequest{Size: int64(len(data))}, &v))
	g.set(0, 1500<<20)
	w.clock.add(readEvery)
	got, err := ada.upload(v.ID, 0, bytes.NewReader(data[:1<<20]))
	check(t, err)
	g.set(0, 1<<20)
	w.clock.add(readEvery)
	_, err = ada.upload(v.ID, got.Received, bytes.NewReader(data[1<<20:]))
	wantCode(t, err, delivery.CodeFull)
	if st := ada.state(t, v.ID); st.Received != 1<<20 {
		t.Errorf("%+v", st)
	}
	g.set(0, 100<<30)
	for range 3 {
		w.clock.add(in.Limits.Congestion.CalmAfter)
		in.Level(t.Context())
	}
	got, err = ada.upload(v.ID, got.Received, bytes.NewReader(data[1<<20:]))
	check(t, err)
	if got.Received != int64(len(data)) {
		t.Errorf("%+v", got)
	}
}

func TestPressureGoesUpAtOnceAndDownInSteps(t *testing.T) {
	w, g := pressed(t)
	w.still = true
	in := w.start()
	at := func(load float64, later time.Duration) Level {
		g.set(load, 100<<30)
		w.clock.add(later)
		return in.Level(t.Context())
	}
	for i, c := range []struct {
		load  float64
		later time.Duration
		want  Level
	}{
		{0, 0, Calm},
		{5, time.Second, Calm}, // the reading still counts
		{5, readEvery, Critical},
		{0, readEvery, Critical},
		{0, 50 * time.Second, Critical}, // 55 s of less
		{5, readEvery, Critical},        // and again
		{0, 59 * time.Second, Critical},
		{0, readEvery, Congested}, // a minute of less: one step
		{0, 59 * time.Second, Congested},
		{0, readEvery, Busy},
		{0, time.Minute, Calm},
		{2, readEvery, Busy},
	} {
		if got := at(c.load, c.later); got != c.want {
			t.Errorf("step %d: %s, want %s", i, got, c.want)
		}
	}
}

func TestMovedBytesCount(t *testing.T) {
	w, _ := pressed(t)
	w.still = true
	w.config.Limits.Congestion = CongestionLimits{MovedBusy: 1000, MovedCongested: 2000, MovedCritical: 3000}
	in := w.start()
	ada := in.enrolled("ada")
	if l := in.Level(t.Context()); l != Calm {
		t.Fatalf("level %s", l)
	}
	id := ada.blob(t, make([]byte, 10_000))
	_, err := ada.call(delivery.RouteBlob, nil, "", id.String())
	check(t, err)
	w.clock.add(10 * time.Second)
	if l := in.Level(t.Context()); l != Congested { // 20,000 bytes in 10 s
		t.Errorf("level %s", l)
	}
}

func TestCongestionOnlyNarrows(t *testing.T) {
	c := CongestionLimits{MaxUploadBusy: 1 << 40, MaxUploadCongested: 1 << 40}
	c.defaults()
	for l := Calm; l <= Critical; l++ {
		if got := c.maxUpload(l, 1000); got > 1000 {
			t.Errorf("%s raises the largest upload to %d", l, got)
		}
	}
	for name, bad := range map[string]CongestionLimits{
		"cpu_critical":         {CPUCritical: -1},
		"cpu_busy":             {CPUBusy: 5, CPUCongested: 1},
		"disk_free_busy":       {DiskBusy: 1, DiskCongested: 2},
		"moved_congested":      {MovedBusy: 9, MovedCritical: 3},
		"max_upload_congested": {MaxUploadBusy: 1, MaxUploadCongested: 2},
	} {
		if faults := bad.Faults(); faults[name] == "" {
			t.Errorf("%s: %v", name, faults)
		}
	}
	for _, one := range []CongestionLimits{
		{CPUBusy: 9, DiskBusy: 100}, {CPUCritical: 0.5, DiskCritical: 1 << 60}, {CPUCongested: 1, DiskCongested: 1 << 50, MaxUploadCongested: 1 << 30},
	} {
		if faults := one.Faults(); len(faults) > 0 {
			t.Errorf("one number moves the others' defaults: %v", faults)
		}
	}
	w, g := pressed(t)
	g.set(100, 0)
	w.config.Limits.Congestion.Off = true
	if l := w.start().Level(t.Context()); l != Calm {
		t.Errorf("off, and %s", l)
	}
}
