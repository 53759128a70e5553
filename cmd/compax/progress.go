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
	counted bool
	amount  func(n int64) string // how much n is
	plain   bool                 // amounts are no bytes: their speed says nothing
	// how long it may last before it is shown
	patience time.Duration
}

const (
	barPatience = 400 * time.Millisecond // transfers shorter than this need no bar
	barPeriod   = 100 * time.Millisecond // between two drawings on a terminal
	barMost     = 24                     // columns of a bar
	barLeast    = 5                      // of one that says anything
	nameMost    = 30                     // columns of a name
	nameLeast   = 10                     // of one that is told from others
)

func (a *app) bar(name string) *bar {
	return &bar{a: a, name: line(name), began: a.now(), patience: barPatience, amount: func(n int64) string { return humanize.IBytes(uint64(n)) }}
}

// live reports whether one line of standard error can be drawn again and again.
func (a *app) live() bool { return a.errTTY && !a.dumb }

// draw puts a text into the line of standard error that changes.
func (a *app) draw(text string) {
	a.screen.Lock()
	defer a.screen.Unlock()
	fmt.Fprint(a.err, lineStart+text)
	a.drawn = true
}

// wipe takes that line away.
func (a *app) wipe() {
	a.screen.Lock()
	defer a.screen.Unlock()
	a.wiped()
}

// wiped is wipe with screen held.
func (a *app) wiped() {
	if a.drawn {
		fmt.Fprint(a.err, lineStart)
		a.drawn = false
	}
}

const lineStart = "\r\x1b[K" // and nothing behind it

// show is told how far the transfer is.
func (b *bar) show(p local.Progress) error {
	if !b.a.live() && !b.a.progress || p.Total <= 0 {
		return nil
	}
	now := b.a.now()
	if !b.counted {
		b.counted, b.first, b.began = true, p.Done, now
	}
	period := barPeriod
	if !b.a.live() {
		period = time.Second
	}
	patient := now.Sub(b.began) < b.patience && !b.a.progress
	if patient || p.Done < p.Total && now.Sub(b.drawn) < period {
		return nil
	}
	b.drawn = now
	text := b.text(p, now.Sub(b.began))
	if b.a.live() {
		b.a.draw(text)
	} else {
		b.a.say("%s", text)
	}
	return nil
}

// text is the line: name, bar, share, bytes, speed and what is left. On a terminal
// it takes one column less than there are: of a line that wraps only the end could
// be drawn over. What does not fit goes in this order: the bar, the end of the name,
// the speed, the time that is left, the amounts; the share stays.
func (b *bar) text(p local.Progress, took time.Duration) string {
	share := min(float64(p.Done)/float64(p.Total), 1)
	percent := fmt.Sprintf("%3.0f%%", share*100)
	amount := fmt.Sprintf("  %s of %s", b.amount(p.Done), b.amount(p.Total))
	speed, left := "", ""
	if moved := p.Done - b.first; moved > 0 && took > barPatience {
		rate := float64(moved) / took.Seconds()
		if !b.plain {
			speed = fmt.Sprintf("  %s/s", b.amount(int64(rate)))
		}
		if p.Done < p.Total {
			left = "  " + (time.Duration(float64(p.Total-p.Done) / rate * float64(time.Second))).Round(time.Second).String() + " left"
		}
	}
	if !b.a.live() {
		return b.draw(nameMost, barMost, share, percent+amount+speed+left)
	}
	limit := b.a.errColumns() - 1
	least := min(nameLeast, columns(b.name))
	for _, tail := range []string{percent + amount + speed + left, percent + amount + left, percent + amount, percent} {
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
func (b *bar) end() { b.a.wipe() }
