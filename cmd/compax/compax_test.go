package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/sdk"
	"github.com/askucher/compax-core/sdk/local"
)

func TestUsage(t *testing.T) {
	w := newWorld(t)
	tea := teaRoom.String()
	for _, args := range [][]string{
		{"frobnicate"},
		{"send"},
		{"send", tea},
		{"send", tea, "two", "words"},
		{"send", tea, " "},
		{"send", tea, "text", "--reply", "x"},
		{"send", tea, "--file", "/no/such/file"},
		{"send", tea, "--file", "/"},
		{"send", "not-a-chat", "text"},
		{"send", tea, "text", "--frobnicate"},
		{"edit", tea, "0", "text"},
		{"listen", "--since", "3"},
		{"listen", "--count", "-1"},
		{"listen", "--timeout", "soon"},
		{"history", tea, "--limit", "-1"},
		{"room", "new"},
		{"room", "new", "--title", "T", "--direct", "@bob"},
		{"room", "add", tea},
		{"room", "add", tea, "bob"},
		{"room", "add", tea, "@b"},
		{"devices", "revoke", "x"},
		{"get", tea, "3"},
		{"chats", "--profile", "../ada"},
		{"chats", "--profile", "absent"},
		{"account", "new", "--profile", "new", "--name", "N"},
		{"account", "new", "--profile", "new", "--name", "N", "--server", "localhost"},
		{"account", "new", "--profile", "new", "--server", "http://localhost"},
		{"account", "new", "--profile", "new", "--name", "N", "--server", "http://localhost", "--username", "No Name"},
		{"account", "restore", "--profile", "new", "--server", "http://localhost"},
		{"search", "x", "--limit", "0"},
	} {
		w.wants(exitUsage, args...)
		if w.out.Len() > 0 || w.err.Len() == 0 {
			t.Errorf("%q: said %q on standard output, %q on standard error", args, &w.out, &w.err)
		}
		w.wants(exitUsage, append(args, "--json")...)
		e := w.object()
		if e["error"] == "" || e["code"] == "" || e["exit"] != float64(exitUsage) {
			t.Errorf("%q: %v", args, e)
		}
		if w.err.Len() > 0 {
			t.Errorf("%q --json: said %q on standard error", args, &w.err)
		}
	}
	if len(w.fake.asked) > 0 {
		t.Errorf("wrong commands did something: %q", w.fake.asked)
	}
	if _, err := os.Stat(filepath.Join(w.home, "new")); err == nil {
		t.Error("a wrong command made a profile")
	}
}

// TestExitCodes: each error with its code, exit code and advice.
func TestExitCodes(t *testing.T) {
	for _, test := range []struct {
		err  error
		code string
		exit int
	}{
		{client.ErrOffline, "offline", 3},
		{fmt.Errorf("%w: %w", client.ErrOffline, syscall.ECONNREFUSED), "offline", 3},
		{client.ErrGarbage, "garbage", 3},
		{context.DeadlineExceeded, "offline", 3},
		{local.ErrBusy, "locked", 3},
		{fmt.Errorf("write: %w", syscall.ENOSPC), "disk_full", 3},
		{delivery.Refuse(delivery.CodeFull, "full"), "full", 3},
		{delivery.Refuse(delivery.CodeSlowDown, "slow"), "slow_down", 3},
		{delivery.Refuse(delivery.CodeRefused, "no"), "refused", 4},
		{delivery.Refuse(delivery.CodeRevoked, "no"), "revoked", 4},
		{delivery.Refuse(delivery.CodeLogIn, "no"), "log_in", 4},
		{client.ErrCopied, "copied", 4},
		{sdk.ErrNoRoom, "no_chat", 4},
		{sdk.ErrNoMessage, "no_message", 4},
		{sdk.ErrAuthor, "not_author", 4},
		{sdk.ErrRevoked, "revoked", 4},
		{sdk.ErrAccount, "exists", 2},
		{sdk.ErrNoAccount, "no_account", 2},
		{sdk.ErrSeal, "seal", 4},
		{&os.PathError{Op: "open", Path: "/x", Err: syscall.EACCES}, "file", 2},
		{errors.New("odd"), "failed", 1},
		{&local.Error{Code: "c", Exit: 4, Detail: "d"}, "c", 4},
	} {
		w := newWorld(t)
		w.fake.fail = fmt.Errorf("sdk: while trying: %w", test.err)
		w.wants(test.exit, "send", teaRoom.String(), "text", "--json")
		if e := w.object(); e["code"] != test.code || e["error"] == "" {
			t.Errorf("%v: %v", test.err, e)
		}
		w.wants(test.exit, "send", teaRoom.String(), "text")
		if w.out.Len() > 0 || !strings.HasPrefix(w.err.String(), "compax: ") {
			t.Errorf("%v: said %q on standard output, %q on standard error", test.err, &w.out, &w.err)
		}
	}
}

func TestEveryErrorOfTheEngineIsExplained(t *testing.T) {
	for _, f := range engineFaults {
		e := explain(fmt.Errorf("somewhere: %w", f.is))
		if e.Code != f.code || e.Exit != f.exit || e.Detail == "" {
			t.Errorf("%v: %+v", f.is, e)
		}
	}
}

// TestCopiedProfileIsExplained: who is cut off by a copy of the profile hears what to do,
// and that a message is kept.
func TestCopiedProfileIsExplained(t *testing.T) {
	w := newWorld(t)
	w.fake.fail = fmt.Errorf("%w: %w", sdk.ErrKept, client.ErrCopied)
	w.wants(4, "send", teaRoom.String(), "x", "--json")
	if e := w.object(); e["code"] != "copied" || e["kept"] != true {
		t.Errorf("said %v", e)
	}
	w.wants(4, "send", teaRoom.String(), "x")
	for _, part := range []string{"another copy of this profile", "one place", "compax devices ticket", "compax account link"} {
		if !strings.Contains(w.err.String(), part) {
			t.Errorf("%q is not in %q", part, &w.err)
		}
	}
}

func TestSend(t *testing.T) {
	w := newWorld(t)
	w.in = "first\nsecond\n"
	w.wants(0, "send", "tea", "-", "--reply", "#4")
	if want := []string{`send "first\nsecond" file "." reply 4`}; !reflect.DeepEqual(w.fake.asked, want) {
		t.Fatalf("asked %q, want %q", w.fake.asked, want)
	}
	if w.out.String() != "#7\n" {
		t.Errorf("said %q", &w.out)
	}
	w.wants(0, "send", teaRoom.String(), "x", "--json")
	want := map[string]any{"chat": teaRoom.String(), "seq": float64(7), "epoch": float64(2), "id": "ab", "kept": false}
	if got := w.object(); !reflect.DeepEqual(got, want) {
		t.Errorf("said %v, want %v", got, want)
	}
	w.fake.fail = client.ErrOffline
	w.wants(3, "send", teaRoom.String(), "x")
	if strings.Contains(w.err.String(), "is kept") {
		t.Errorf("said %q of a message that is not kept", &w.err)
	}
	w.fake.fail = fmt.Errorf("%w: %w", sdk.ErrKept, client.ErrOffline)
	w.wants(3, "send", teaRoom.String(), "x")
	if !strings.Contains(w.err.String(), "the message is kept") {
		t.Errorf("said %q", &w.err)
	}
	w.wants(3, "send", teaRoom.String(), "x", "--json")
	if e := w.object(); e["kept"] != true {
		t.Errorf("an error of a message that is kept: %v", e)
	}
	w.fake.fail = client.ErrOffline
	w.wants(3, "send", teaRoom.String(), "x", "--json")
	if e := w.object(); e["kept"] != false {
		t.Errorf("an error of a message that is not kept: %v", e)
	}
}

func TestTextsThatAreTooLongOrNone(t *testing.T) {
	w := newWorld(t)
	w.in = strings.Repeat("x", 65537)
	w.wants(2, "send", "Tea", "-")
	w.in = strings.Repeat("x", 65536) + "\n"
	w.wants(0, "send", "Tea", "-")
	w.in = "\xff\xfe"
	w.wants(2, "send", "Tea", "-")
}

func TestListenCountsMessagesOfPeople(t *testing.T) {
	w := newWorld(t)
	w.fake.rows = []local.Row{
		{Seq: 1, Kind: "join", Time: fakeNoon}, {Seq: 2, Kind: "text", Text: "a", Time: fakeNoon}, {Seq: 3, Kind: "title", Time: fakeNoon},
		{Seq: 4, Kind: "gap", Cause: "lost", Time: fakeNoon}, {Seq: 5, Kind: "reaction", Text: "👍", Time: fakeNoon}, {Seq: 6, Kind: "text", Time: fakeNoon},
	}
	w.wants(0, "listen", "--count", "2", "--json")
	if w.fake.asked[0] != "stopped at 5" {
		t.Errorf("%q", w.fake.asked)
	}
	for _, w.fake.slow = range []bool{false, true} {
		w.wants(3, "listen", "--count", "9", "--timeout", "10ms")
		w.wants(0, "listen", "--timeout", "10ms")
	}
}

func TestReadingWorksOffline(t *testing.T) {
	w := newWorld(t)
	w.fake.failSync = client.ErrOffline
	w.fake.rows = []local.Row{{Chat: teaRoom, Seq: 1, Kind: "text", Text: "hello", Time: fakeNoon, From: someone, Name: "Bob"}}
	w.wants(0, "history", "Tea")
	if !strings.Contains(w.out.String(), "hello") || !strings.Contains(w.err.String(), "cannot be reached") {
		t.Errorf("said %q, %q", &w.out, &w.err)
	}
	w.fake.failSync = sdk.ErrRevoked // what it has can still be read
	w.wants(0, "history", "Tea")
	if !strings.Contains(w.out.String(), "hello") || !strings.Contains(w.err.String(), "revoked") {
		t.Errorf("said %q, %q", &w.out, &w.err)
	}
	w.fake.failSync = delivery.Refuse(delivery.CodeRefused, "no")
	w.wants(4, "history", "Tea")
}

// TestHistorySaysWhatIsMissing: who was in a chat before this device is told what
// of it is here, what is not, and why.
func TestHistorySaysWhatIsMissing(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		past local.Past
		want []string
	}{
		{local.Past{}, nil},
		{local.Past{Before: 9, Read: []sdk.Span{{From: 1, To: 8}}}, []string{"came into the chat at 9", "1 to 8 came from the account's archive"}},
		{local.Past{Before: 9, Going: true}, []string{"came into the chat at 9", "run compax history again"}},
		{local.Past{Before: 9, Missing: []sdk.Span{{From: 1, To: 7}, {From: 8, To: 8}}, Days: 30}, []string{"1 to 7, 8 cannot be shown here: no device", "compax account archive"}},
		{local.Past{Withheld: []sdk.Span{{From: 3, To: 4}}, Days: 30}, []string{"3 to 4 cannot be shown here", "30 days", "the service does not show it", "compax account archive"}},
	} {
		w.fake.past = c.past
		w.wants(0, "history", "Tea")
		if got := w.err.String(); len(c.want) == 0 && got != "Nothing was said yet. Begin: compax send CHAT TEXT\n" {
			t.Errorf("%+v: says %q", c.past, got)
		}
		for _, want := range c.want {
			if !strings.Contains(w.err.String(), want) {
				t.Errorf("%+v: says %q, not %q", c.past, &w.err, want)
			}
		}
	}
}

func TestChatsAreFoundByIDTitleAndName(t *testing.T) {
	other := teaRoom
	other[15] = 2
	w := newWorld(t)
	w.fake.chats = []local.Chat{{Chat: teaRoom, Title: "Tea"}, {Chat: other, Title: "Bob", With: "bob"}, {Chat: delivery.RoomID{2}, Title: "bob"}}
	for name, code := range map[string]int{"tea": 0, "@BOB": 0, "Bob": 2, teaRoom.String(): 0, teaRoom.String()[:12]: 2, "0000": 2, other.String()[:35]: 2} {
		w.wants(code, "send", name, "x")
	}
}

// TestAttackTitleLikeAUsername: a group, and somebody without a username, are called as
// somebody else's username is written. What is said to that one does not go there.
func TestAttackTitleLikeAUsername(t *testing.T) {
	w := newWorld(t)
	w.fake.chats = []local.Chat{{Chat: teaRoom, Kind: "group", Title: "@bob"}}
	w.wants(exitUsage, "send", "@bob", "x")
	w.fake.chats[0].Kind = "direct"
	w.wants(exitUsage, "send", "@bob", "x")
}

// TestWhatCannotBeSentIsRefusedAtOnce: a folder, a pipe that nobody writes into, a
// reaction or a title that drives a terminal, a place that does not exist.
func TestWhatCannotBeSentIsRefusedAtOnce(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		says string
		args []string
	}{
		{"is a folder", []string{"send", "Tea", "--file", dir}},
		{"is no file", []string{"send", "Tea", "--file", pipe}},
		{"no such file", []string{"send", "Tea", "--file", filepath.Join(dir, "none")}},
		{"there is no folder", []string{"get", "Tea", "5", "-o", filepath.Join(dir, "none", "x")}},
		{"not a directory", []string{"get", "Tea", "5", "-o", filepath.Join(pipe, "x")}},
		{"a reaction is an emoji", []string{"react", "Tea", "5", " "}},
		{"a reaction is an emoji", []string{"react", "Tea", "5", "\x1b[31m"}},
		{"a reaction is an emoji", []string{"react", "Tea", "5", strings.Repeat("a", 65)}},
		{"not to be seen", []string{"room", "new", "--title", "\x1b]0;x\x07"}},
		{"not to be seen", []string{"room", "rename", "Tea", "two\nlines"}},
		{"nothing to look for", []string{"search", " "}},
		{"no UTF-8", []string{"search", "\xff"}},
		{"begin one: compax room new --direct @dora", []string{"send", "@dora", "hello"}},
		{`--limit: "99999999999999999999" is not a number`, []string{"history", "Tea", "--limit", "99999999999999999999"}},
		{`--timeout: "soon" is not a time such as 90s`, []string{"listen", "--timeout", "soon"}},
		{`--events: "perhaps" is not true or false`, []string{"listen", "--events=perhaps"}},
	} {
		w.wants(2, c.args...)
		if !strings.Contains(w.err.String(), c.says) || strings.Contains(w.err.String(), "strconv") || strings.Contains(w.err.String(), "\x1b") {
			t.Errorf("%q: says %q, not %q", c.args, &w.err, c.says)
		}
	}
	if len(w.fake.asked) > 0 {
		t.Errorf("asked %q", w.fake.asked)
	}
}

// TestAChatThatMovedOnKeepsItsTitle: it names the chat in which something can be said,
// and the old one when there is no other.
func TestAChatThatMovedOnKeepsItsTitle(t *testing.T) {
	w := newWorld(t)
	old := local.Chat{Chat: delivery.RoomID{1, 15: 9}, Title: "Tea", Status: string(sdk.StatusSucceeded)}
	w.fake.chats = append(w.fake.chats, old)
	w.wants(0, "send", "Tea", "hello", "--json")
	if w.object()["chat"] != teaRoom.String() {
		t.Errorf("said in %s", &w.out)
	}
	w.fake.chats = append(w.fake.chats, local.Chat{Chat: delivery.RoomID{1, 15: 10}, Title: "Tea", Status: string(sdk.StatusOpen)})
	w.wants(2, "send", "Tea", "hello")
	w.fake.chats = []local.Chat{old}
	w.wants(0, "history", "Tea")
}

// TestAnAccountIsEdited: what is given changes and the rest stays; what cannot be shown
// to others is refused here; the phrase is asked for when it is needed.
// TestEmptyStatesTeach: who has nothing yet is told how to begin, and a script is not.
func TestEmptyStatesTeach(t *testing.T) {
	w := newWorld(t)
	w.fake.devices = []local.Device{{This: true, Seen: &fakeNoon}}
	for _, c := range []struct{ args, says string }{
		{"history Tea", "compax send CHAT TEXT"},
		{"history Tea --since 7", "after #7"},
		{"devices", "compax devices ticket"},
	} {
		w.wants(0, strings.Fields(c.args)...)
		if !strings.Contains(w.err.String(), c.says) {
			t.Errorf("%s says %q", c.args, &w.err)
		}
		w.wants(0, append(strings.Fields(c.args), "--json")...)
		if w.err.Len() > 0 {
			t.Errorf("%s --json says %q", c.args, &w.err)
		}
	}
	w.fake.chats = nil
	w.wants(0, "chats")
	if !strings.Contains(w.err.String(), "compax room new") {
		t.Errorf("chats says %q", &w.err)
	}
	w.home = t.TempDir()
	w.wants(0, "account", "list")
	if !strings.Contains(w.err.String(), "compax account new") {
		t.Errorf("account list says %q", &w.err)
	}
}

// TestStatesHaveWords: where a person stands with a chat or a device is said in their
// words, and scripts get the names.
func TestStatesHaveWords(t *testing.T) {
	w := newWorld(t)
	for status, says := range map[sdk.Status]string{
		sdk.StatusOut: "no longer in it", sdk.StatusLeft: "left", sdk.StatusSucceeded: "goes on in a new room", sdk.StatusStuck: "cannot be followed",
	} {
		w.fake.chats = []local.Chat{{Chat: teaRoom, Title: "Tea", Status: string(status)}}
		w.wants(0, "chats")
		if !strings.Contains(w.out.String(), "Tea  "+says) {
			t.Errorf("%s: %q", status, &w.out)
		}
		w.wants(0, "chats", "--json")
		if w.object()["status"] != string(status) {
			t.Errorf("%s: %q", status, &w.out)
		}
	}
	earlier := fakeNoon.Add(-time.Hour)
	w.fake.devices = []local.Device{{This: true, Seen: &fakeNoon}, {Seen: &earlier}, {Revoked: true}}
	w.wants(0, "devices")
	for _, says := range []string{"  this device     last here 12:00\n", "  another device  last here 11:00\n", "  revoked\n"} {
		if !strings.Contains(w.out.String(), says) {
			t.Errorf("devices says %q", &w.out)
		}
	}
}

// TestIdleDevicesAndSuitesAreShown: who has not been there for 90 days, and by which
// cipher suite a chat is.
func TestIdleDevicesAndSuitesAreShown(t *testing.T) {
	w := newWorld(t)
	const usual, other = "MLS_128_DHKEMX25519_AES128GCM_SHA256_Ed25519", "MLS_128_DHKEMX25519_CHACHA20POLY1305_SHA256_Ed25519"
	chat := w.fake.chats[0].Chat.String()
	devices := []identity.DeviceID{{1}, {2}}
	w.fake.members = []local.Member{{Name: "Ada", Devices: devices, Idle: devices[1:], Suite: other}}
	w.wants(0, "members", chat)
	if !strings.Contains(w.out.String(), "2 devices (1 idle for 90 days)") || !strings.Contains(w.err.String(), other) {
		t.Errorf("members: %q and %q", &w.out, &w.err)
	}
	w.wants(0, "members", chat, "--json")
	if o := w.object(); o["suite"] != other || len(o["idle"].([]any)) != 1 {
		t.Errorf("%v", o)
	}
	w.fake.devices = []local.Device{{Device: devices[1], Idle: true}}
	w.wants(0, "devices")
	if !strings.Contains(w.out.String(), "idle for 90 days") {
		t.Errorf("devices: %q", &w.out)
	}
	w.fake.chats[0].Suite = other
	w.wants(0, "chats")
	if !strings.Contains(w.out.String(), other) {
		t.Errorf("chats: %q", &w.out)
	}
	w.fake.chats[0].Suite = usual
	w.wants(0, "chats")
	if strings.Contains(w.out.String(), usual) {
		t.Errorf("the usual suite fills the table: %q", &w.out)
	}
}

func TestNoCommandTakesAPhraseOrIsUndocumented(t *testing.T) {
	a := &app{env: func(string) string { return "" }}
	for _, c := range all(a.root()) {
		if c.Short == "" {
			t.Errorf("%s says nothing about itself", c.CommandPath())
		}
		for _, name := range []string{"phrase", "mnemonic", "words"} {
			if c.Flags().Lookup(name) != nil {
				t.Errorf("%s takes --%s on the command line", c.CommandPath(), name)
			}
		}
	}
}

func TestManual(t *testing.T) {
	w := newWorld(t)
	dir := t.TempDir()
	w.wants(0, "man", dir)
	for _, page := range []string{"compax.1", "compax-send.1", "compax-room-add.1"} {
		text, err := os.ReadFile(filepath.Join(dir, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{".TH COMPAX", ".SH NAME", ".SH SYNOPSIS", `\-\-profile`} {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s has no %s", page, part)
			}
		}
	}
}

func TestCompletion(t *testing.T) {
	w := newWorld(t)
	w.wants(0, "__complete", "send", "")
	if !strings.Contains(w.out.String(), teaRoom.String()+"\tTea\n") {
		t.Errorf("chats: %q", &w.out)
	}
	for _, chat := range []string{teaRoom.String() + "\tTea\n", "Tea\tchat\n"} {
		w.wants(0, "__complete", "room", "add", "")
		if !strings.Contains(w.out.String(), chat) {
			t.Errorf("chats to add to: %q", &w.out)
		}
	}
	for _, words := range [][]string{{"room", "add", teaRoom.String(), ""}, {"room", "new", "--direct", ""}, {"verify", ""}} {
		w.wants(0, append([]string{"__complete"}, words...)...)
		if !strings.HasPrefix(w.out.String(), "@bob\tBob\n") {
			t.Errorf("people for %q: %q", words, &w.out)
		}
	}
	w.wants(0, "__complete", "send", teaRoom.String(), "")
	if out := w.out.String(); strings.Contains(out, "Tea") {
		t.Errorf("a text: %q", out)
	}
	w.wants(0, "__complete", "chats", "--profile", "")
	if !strings.HasPrefix(w.out.String(), "ada\n") {
		t.Errorf("profiles: %q", &w.out)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		w.wants(0, "completion", shell)
	}
}

// TestSpentBudgetSaysWhenToTryAgain: who did too much in a short time hears when to try
// again, a script as a number, and that what was to be said is kept.
func TestSpentBudgetSaysWhenToTryAgain(t *testing.T) {
	w := newWorld(t)
	w.fake.fail = fmt.Errorf("%w: %w", sdk.ErrKept, &delivery.Error{Code: delivery.CodeSlowDown, Detail: "this budget is spent: login", RetryAfter: 24300 * time.Millisecond})
	w.wants(3, "send", teaRoom.String(), "x", "--json")
	if e := w.object(); e["code"] != "slow_down" || e["retry_after_ms"] != 24300.0 || e["kept"] != true {
		t.Errorf("said %v", e)
	}
	w.wants(3, "send", teaRoom.String(), "x")
	for _, part := range []string{"too much in a short time", "this budget is spent: login", "try again in 24s; the message is kept"} {
		if !strings.Contains(w.err.String(), part) {
			t.Errorf("%q is not in %q", part, &w.err)
		}
	}
}
