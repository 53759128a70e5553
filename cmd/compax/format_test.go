package main

import (
	"bytes"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/sdk/local"
)

func TestTextsOfOthersCannotDriveTheTerminal(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\nnext":      "plain\ttext\nnext",
		"\x1b[31mred\x07\r":      "␛[31mred␇␍",
		"\x9b31m":                "\ufffd31m",
		"\u009b31m\x7f":          "\ufffd31m␡",
		"abc\u202edef\u2066":     "abcdef",
		"שלום 🫖 お茶":              "שלום 🫖 お茶",
		"line\u2028separator":    "line\ufffdseparator",
		"family 👨\u200d👩\u200d👧": "family 👨\u200d👩\u200d👧",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
	if got := line("two\n lines \x1b"); got != "two lines ␛" {
		t.Errorf("line: %q", got)
	}
}

func TestColumns(t *testing.T) {
	for text, want := range map[string]int{
		"abc": 3, "お茶": 4, "🫖": 2, "e\u0301": 1, "": 0, "\u1112\u1161\u11ab": 2,
		"👨\u200d👩\u200d👧": 2, "👍🏽": 2, "👩🏽\u200d🚀": 2, "🏳\ufe0f\u200d🌈": 2, "❤\ufe0f": 2, "❤": 1, "❤\ufe0f\u200d🔥": 2,
		"🇩🇪": 2, "🇩🇪🇫🇷": 4, "🇩": 1, "🏴\U000e0067\U000e0062\U000e007f": 2,
		"ن\u200dن": 2, "a\u200db": 2, "\u200d": 0,
	} {
		if got := columns(text); got != want {
			t.Errorf("columns(%q) = %d, want %d", text, got, want)
		}
	}
	if got := short("お茶の時間", 6); got != "お茶…" || columns(got) > 6 {
		t.Errorf("short: %q", got)
	}
	for in, want := range map[string]string{ // never through what is one
		"👨\u200d👩\u200d👧👨\u200d👩\u200d👧👨\u200d👩\u200d👧": "👨\u200d👩\u200d👧👨\u200d👩\u200d👧…",
		"🇩🇪🇫🇷🇮🇹":        "🇩🇪🇫🇷…",
		"abcde\u0301fg": "abcd…",
	} {
		if got := short(in, 5); got != want {
			t.Errorf("short(%q) = %q, want %q", in, got, want)
		}
	}
}

// FuzzShort: whatever the text, it fits, and stays UTF-8 when it was.
func FuzzShort(f *testing.F) {
	f.Add("👩🏽\u200d🚀 🇩🇪 e\u0301", 3)
	f.Fuzz(func(t *testing.T, text string, limit int) {
		if limit < 1 || limit > 1000 {
			return
		}
		got := short(text, limit)
		if columns(got) > limit || utf8.ValidString(text) && !utf8.ValidString(got) {
			t.Errorf("short(%q, %d) = %q", text, limit, got)
		}
	})
}

func TestTable(t *testing.T) {
	var tab table
	tab.add("Tea", "", "お茶")
	tab.add("Breakfast", "", "x")
	var b bytes.Buffer
	if err := tab.write(&b, func(_ int, cell string) string { return cell }); err != nil {
		t.Fatal(err)
	}
	if want := "Tea        お茶\nBreakfast  x\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

func TestTimesAreShorterTheNearer(t *testing.T) {
	a := &app{now: func() time.Time { return fakeNoon }}
	for want, at := range map[string]time.Time{
		"11:30":            fakeNoon.Add(-30 * time.Minute),
		"1 Dec 12:00":      fakeNoon.AddDate(0, 0, -1),
		"2025-12-02 12:00": fakeNoon.AddDate(-1, 0, 0),
		"":                 {},
	} {
		if got := a.when(at); got != want {
			t.Errorf("when(%v) = %q, want %q", at, got, want)
		}
	}
}

func TestColoursOnlyOnTerminals(t *testing.T) {
	w := newWorld(t)
	w.fake.rows = []local.Row{{Chat: teaRoom, Seq: 3, Kind: "text", Text: "hi", Time: fakeNoon, From: someone, Name: "Bob"}}
	w.wants(0, "history", "Tea")
	if want := "    #3  12:00  Bob             hi\n"; w.out.String() != want {
		t.Errorf("said %q, want %q", &w.out, want)
	}
	w.env["NO_COLOR"] = "1"
	a := &app{env: func(name string) string { return w.env[name] }}
	if got := a.paint(true, bold, "x"); got != "x" {
		t.Errorf("NO_COLOR: %q", got)
	}
	delete(w.env, "NO_COLOR")
	if got := a.paint(true, bold, "x"); got != "\x1b[1mx\x1b[0m" {
		t.Errorf("on a terminal: %q", got)
	}
}

func TestRows(t *testing.T) {
	a := &app{env: func(string) string { return "" }, now: func() time.Time { return fakeNoon }}
	for want, r := range map[string]local.Row{
		"↪ #4 Yes (edited) · 👍 2":             {Kind: "text", Text: "Yes", ReplyTo: 4, Edited: true, Reactions: []local.Reaction{{Emoji: "👍", From: make([]identity.PublicKey, 2)}}},
		"[photo.jpg, 1.0 KiB] Look":           {Kind: "file", Text: "Look", File: &local.File{Name: "photo.jpg", Size: 1024}},
		"[cannot be read: before you joined]": {Kind: "undecryptable", Cause: "before you joined"},
		"[missing: 5 to 9]":                   {Kind: "gap", Cause: "5 to 9"},
		"took back #3":                        {Kind: "delete", Target: 3},
		"👍 to #3":                             {Kind: "reaction", Text: "👍", Target: 3},
		`called the chat "Tea time"`:          {Kind: "title", Text: "Tea\ntime"},
		"[new-kind] x":                        {Kind: "new-kind", Text: "x"},
	} {
		if got := a.body(r); got != want {
			t.Errorf("%+v: %q, want %q", r, got, want)
		}
	}
}

func TestProgressOnATerminalOrWhenForced(t *testing.T) {
	clock := fakeNoon
	for _, test := range []struct {
		name             string
		tty, force, says bool
	}{{"neither", false, false, false}, {"terminal", true, false, true}, {"forced", false, true, true}} {
		var b bytes.Buffer
		a := &app{err: &b, errTTY: test.tty, progress: test.force, now: func() time.Time { return clock }}
		bar := a.bar("film.bin")
		for done := int64(0); done <= 4<<20; done += 1 << 20 {
			if err := bar.show(local.Progress{Done: done, Total: 4 << 20}); err != nil {
				t.Fatal(err)
			}
			clock = clock.Add(time.Second)
		}
		bar.end()
		if says := strings.Contains(b.String(), "film.bin") && strings.Contains(b.String(), "100%") && strings.Contains(b.String(), "1.0 MiB/s"); says != test.says {
			t.Errorf("%s: said %q", test.name, b.String())
		}
	}
}

// TestProgressFitsATerminal: no drawing is as wide as the terminal, however long the
// name and the numbers are and although the window is dragged; the share can always be
// read, and where there is room the name, the bar, the bytes and the time that is left.
func TestProgressFitsATerminal(t *testing.T) {
	for _, name := range []string{"a.bin", strings.Repeat("holiday お茶 ", 9) + ".mkv"} {
		for _, width := range []int{200, 80, 40, 20, 10, 3} {
			clock, now := fakeNoon, 500
			var b bytes.Buffer
			a := &app{err: &b, errTTY: true, width: 80, errWidth: func() int { return now }, now: func() time.Time { return clock }}
			bar := a.bar(name)
			const total = 1023<<30 + 900<<20
			for done := int64(0); done < total; done += total / 7 {
				if err := bar.show(local.Progress{Done: done, Total: total}); err != nil {
					t.Fatal(err)
				}
				now = width
				clock = clock.Add(7919 * time.Second)
			}
			drawings := strings.Split(b.String(), "\r\x1b[K")[1:]
			if len(drawings) < 5 {
				t.Fatalf("%d drawings: %q", len(drawings), b.String())
			}
			for _, text := range drawings {
				if n := columns(text); n >= width {
					t.Errorf("%d columns of %d: %q", n, width, text)
				}
				wanted := map[int][]string{200: {name[:5], "░", "%", " GiB of 1024 GiB", "/s", "left"}, 80: {name[:5], "░", "%", " GiB of 1024 GiB", "/s", "left"},
					40: {name[:5], "%", " GiB of 1024 GiB"}, 20: {name[:5], "%"}, 10: {"%"}}[width]
				for _, part := range wanted {
					if !strings.Contains(text, part) {
						t.Errorf("%d columns without %q: %q", width, part, text)
					}
				}
			}
		}
	}
}

// TestWarningsAreSentences: what goes wrong beside what was asked is told as errors
// are, not in the words of a library.
func TestWarningsAreSentences(t *testing.T) {
	var said bytes.Buffer
	a := &app{err: &said}
	a.warn("no connection, trying again: %v", fmt.Errorf("%w: %w", client.ErrOffline, syscall.ECONNREFUSED))
	if want := "compax: no connection, trying again: nothing listens at the service's address\n"; said.String() != want {
		t.Errorf("said %q, want %q", &said, want)
	}
}

// TestTablesFitATerminal: on a terminal of 80 columns no row of chats, members or
// devices is wider, and ids are shortened to what names them; elsewhere and in JSON
// they are whole.
func TestTablesFitATerminal(t *testing.T) {
	w := newWorld(t)
	other := teaRoom
	other[4] = 0x11
	from := someone
	w.fake.chats = []local.Chat{
		{Chat: teaRoom, Title: strings.Repeat("a long title ", 9), Status: "open", Time: &fakeNoon, Last: strings.Repeat("and a long text ", 20)},
		{Chat: other, Title: "Bob", Request: true, Status: "request", From: &from, Safety: strings.TrimSpace(strings.Repeat("12345 ", 12)), Time: &fakeNoon},
		{Chat: delivery.RoomID{2}, Title: "Asked", Status: "open", Asks: []local.Ask{{Identity: someone, Name: "Carl", Username: "carl", Note: "May I?"}}},
	}
	w.fake.members = []local.Member{{Identity: someone, Name: strings.Repeat("Long Name ", 5), Username: strings.Repeat("u", 32), Devices: make([]identity.DeviceID, 2), Verified: true}}
	w.fake.devices = []local.Device{{Device: identity.DeviceID{1}, This: true, Seen: &fakeNoon}}
	for _, command := range [][]string{{"chats"}, {"members", teaRoom.String()}, {"devices"}} {
		w.tty, w.env["NO_COLOR"] = true, "1"
		w.wants(0, command...)
		for text := range strings.Lines(w.out.String()) {
			if n := columns(strings.TrimSuffix(text, "\n")); n > 80 {
				t.Errorf("%s: %d columns: %q", command[0], n, text)
			}
		}
		if command[0] == "chats" {
			for _, part := range []string{teaRoom.String()[:shortChat] + "  ", "from " + someone.String(), "12345 12345", "Carl asks to be added: May I?", "@carl"} {
				if !strings.Contains(w.out.String(), part) {
					t.Errorf("chats do not say %q:\n%s", part, &w.out)
				}
			}
			if strings.Contains(w.out.String(), teaRoom.String()) {
				t.Errorf("a whole id:\n%s", &w.out)
			}
		}
		if command[0] == "members" && !strings.Contains(w.out.String(), someone.String()) {
			t.Errorf("members without identities:\n%s", &w.out)
		}
		w.tty = false
		w.wants(0, command...)
		if command[0] == "chats" && !strings.Contains(w.out.String(), teaRoom.String()) {
			t.Errorf("not a whole id:\n%s", &w.out)
		}
	}
}

// TestAnnouncementsThatChangeNothing are for scripts: a person does not see them.
func TestAnnouncementsThatChangeNothing(t *testing.T) {
	w := newWorld(t)
	w.fake.rows = []local.Row{{Chat: teaRoom, Seq: 1, Kind: "control"}, {Chat: teaRoom, Seq: 2, Kind: "text", Text: "hello"}}
	w.run("history", "-p", "ada", "Tea", "--events")
	if got := w.out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "hello") {
		t.Errorf("%s", got)
	}
	w.run("history", "-p", "ada", "Tea", "--events", "--json")
	if got := w.out.String(); strings.Count(got, "\n") != 2 {
		t.Errorf("%s", got)
	}
}
