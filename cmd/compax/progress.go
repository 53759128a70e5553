package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/askucher/compax-core/sdk/local"
)

// bar shows how far a transfer is: on a terminal one line that changes, with
// --progress elsewhere a line every second. Short transfers show nothing.
type bar struct {
	a       *app
	name    string
	began   time.Time
	first   int64 // done when it began: what an earlier one had got
	drawn   time.Time
	shown   bool
	counted bool
}

const (
	barPatience = 400 * time.Millisecond // transfers shorter than this need no bar
	barPeriod   = 100 * time.Millisecond // between two drawings on a terminal
	barColumns  = 24
)

func (a *app) bar(name string) *bar { return &bar{a: a, name: line(name), began: a.now()} }

// show is told how far the transfer is.
func (b *bar) show(p local.Progress) error {
	if !b.a.errTTY && !b.a.progress || p.Total == 0 {
		return nil
	}
	now := b.a.now()
	if !b.counted {
		b.counted, b.first, b.began = true, p.Done, now
	}
	period := barPeriod
	if !b.a.errTTY {
		period = time.Second
	}
	patient := now.Sub(b.began) < barPatience && !b.a.progress
	if patient || p.Done < p.Total && now.Sub(b.drawn) < period {
		return nil
	}
	b.drawn, b.shown = now, true
	text := b.text(p, now.Sub(b.began))
	if b.a.errTTY {
		fmt.Fprint(b.a.err, "\r\x1b[K"+text)
		return nil
	}
	fmt.Fprintln(b.a.err, text)
	return nil
}

// text is the line: name, bar, share, bytes, speed and what is left.
func (b *bar) text(p local.Progress, took time.Duration) string {
	share := float64(p.Done) / float64(p.Total)
	full := int(share * barColumns)
	text := fmt.Sprintf("%s  %s%s  %3.0f%%  %s of %s", short(b.name, 30), strings.Repeat("█", full), strings.Repeat("░", barColumns-full),
		share*100, humanize.IBytes(uint64(p.Done)), humanize.IBytes(uint64(p.Total)))
	if moved := p.Done - b.first; moved > 0 && took > barPatience {
		speed := float64(moved) / took.Seconds()
		left := time.Duration(float64(p.Total-p.Done) / speed * float64(time.Second))
		text += fmt.Sprintf("  %s/s", humanize.IBytes(uint64(speed)))
		if p.Done < p.Total {
			text += "  " + left.Round(time.Second).String() + " left"
		}
	}
	return text
}

// end takes the bar's line away.
func (b *bar) end() {
	if b.shown && b.a.errTTY {
		fmt.Fprint(b.a.err, "\r\x1b[K")
	}
}
