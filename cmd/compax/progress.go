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
	barMost     = 24                     // columns of a bar
	barLeast    = 5                      // of one that says anything
	nameMost    = 30                     // columns of a name
	nameLeast   = 10                     // of one that is told from others
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

// text is the line: name, bar, share, bytes, speed and what is left. On a terminal
// it takes one column less than there are: of a line that wraps only the end could
// be drawn over. What does not fit goes in this order: the bar, the end of the name,
// the speed, the time that is left, the bytes; the share stays.
func (b *bar) text(p local.Progress, took time.Duration) string {
	share := float64(p.Done) / float64(p.Total)
	percent := fmt.Sprintf("%3.0f%%", share*100)
	bytes := fmt.Sprintf("  %s of %s", humanize.IBytes(uint64(p.Done)), humanize.IBytes(uint64(p.Total)))
	speed, left := "", ""
	if moved := p.Done - b.first; moved > 0 && took > barPatience {
		rate := float64(moved) / took.Seconds()
		speed = fmt.Sprintf("  %s/s", humanize.IBytes(uint64(rate)))
		if p.Done < p.Total {
			left = "  " + (time.Duration(float64(p.Total-p.Done) / rate * float64(time.Second))).Round(time.Second).String() + " left"
		}
	}
	if !b.a.errTTY {
		return b.draw(nameMost, barMost, share, percent+bytes+speed+left)
	}
	limit := b.a.errColumns() - 1
	least := min(nameLeast, columns(b.name))
	for _, tail := range []string{percent + bytes + speed + left, percent + bytes + left, percent + bytes, percent} {
		room := limit - columns(tail) - 2 // for the name and a bar with its gap
		if room < least {
			continue
		}
		drawn := min(barMost, room-least-2)
		if drawn < barLeast {
			return b.draw(min(nameMost, room), 0, share, tail)
		}
		return b.draw(min(nameMost, room-drawn-2), drawn, share, tail)
	}
	return short(strings.TrimSpace(percent), max(limit, 1))
}

// draw puts a line together: so many columns of the name and of the bar, of which 0
// is none, and the rest.
func (b *bar) draw(name, drawn int, share float64, tail string) string {
	text := short(b.name, name) + "  "
	if drawn > 0 {
		full := min(int(share*float64(drawn)), drawn)
		text += strings.Repeat("█", full) + strings.Repeat("░", drawn-full) + "  "
	}
	return text + tail
}

// end takes the bar's line away.
func (b *bar) end() {
	if b.shown && b.a.errTTY {
		fmt.Fprint(b.a.err, "\r\x1b[K")
	}
}
