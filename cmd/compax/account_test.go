package main

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/askucher/compax-core/delivery/client"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/sdk"
	"github.com/askucher/compax-core/sdk/local"
)

func TestNewAccountShowsThePhraseOnce(t *testing.T) {
	w := newWorld(t)
	words := strings.Repeat("abandon ", 23) + "art"
	w.wants(0, "account", "new", "--profile", "new", "--server", "http://localhost", "--name", "Ada")
	if w.out.String() != words+"\n" || strings.Contains(w.err.String(), "abandon") {
		t.Errorf("said %q, %q", &w.out, &w.err)
	}
	w.wants(0, "account", "new", "--profile", "two", "--server", "http://localhost", "--name", "Ada", "--json")
	if o := w.object(); o["phrase"] != words || o["identity"] != someone.String() {
		t.Errorf("said %v", o)
	}
	w.tty = true
	w.env["NO_COLOR"] = "1"
	w.wants(0, "account", "new", "--profile", "three", "--server", "http://localhost", "--name", "Ada")
	if !strings.Contains(w.out.String(), "12  abandon    24  art\n") {
		t.Errorf("said %q", &w.out)
	}
}

func TestAFailedAccountLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.fake.fail = client.ErrOffline
	w.wants(3, "account", "new", "--profile", "new", "--server", "http://localhost", "--name", "Ada")
	if strings.Contains(w.out.String()+w.err.String(), "abandon") {
		t.Errorf("showed a phrase that is no account: %q", &w.out)
	}
	if _, err := os.Stat(filepath.Join(w.home, "new")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is there: %v", err)
	}
}

func TestWrongPhrases(t *testing.T) {
	w := newWorld(t)
	right := strings.Repeat("abandon ", 23) + "art"
	for in, says := range map[string]string{
		"abandon ability able":                   "24",
		strings.Replace(right, "art", "artt", 1): "word 24: did you mean art",
		strings.Repeat("abandon ", 24):           "checksum",
		"":                                       "standard input",
		strings.Repeat("x", maxPhrase*2):         "too long",
		strings.Replace(right, "abandon", "abandom", 1): "word 1: did you mean abandon",
	} {
		w.in = in
		w.wants(2, "account", "restore", "--profile", "new", "--server", "http://localhost")
		if !strings.Contains(w.err.String(), says) || w.out.Len() > 0 {
			t.Errorf("%.40q: said %q", in, &w.err)
		}
	}
	w.in = right
	w.wants(0, "account", "restore", "--profile", "new", "--server", "http://localhost")
}

func TestRevokeAsksForThePhraseOnlyWhenItIsNeeded(t *testing.T) {
	w := newWorld(t)
	device := strings.Repeat("ab", 16)
	w.wants(2, "devices", "revoke", device) // it is nobody's
	w.wants(0, "devices", "revoke", device, "--force")
	w.fake.asked = nil
	id, err := identity.ParseDeviceID(device)
	if err != nil {
		t.Fatal(err)
	}
	w.fake.devices = []local.Device{{Device: id}}
	w.wants(0, "devices", "revoke", device)
	w.fake.fail, w.in = sdk.ErrNoKey, strings.Repeat("abandon ", 23)+"art"
	w.wants(0, "devices", "revoke", device)
	w.in = ""
	w.wants(2, "devices", "revoke", device)
	want := []string{"revoke with phrase false", "revoke with phrase false", "revoke with phrase true", "revoke with phrase false"}
	if !reflect.DeepEqual(w.fake.asked, want) {
		t.Errorf("asked %q, want %q", w.fake.asked, want)
	}
}

func TestAnAccountIsEdited(t *testing.T) {
	w := newWorld(t)
	w.wants(2, "account", "edit")
	for flag, bad := range map[string][]string{
		"--name":     {"", " ", "two\nlines", "\x1b[31mred", "\u202eback", "\xff", strings.Repeat("a", 129)},
		"--about":    {"\x07", strings.Repeat("a", 513), "\xff"},
		"--username": {"a", "with space", "ünïcode", strings.Repeat("a", 33)},
	} {
		for _, text := range bad {
			w.wants(2, "account", "edit", flag, text)
			if flag != "--about" {
				w.wants(2, "account", "new", "-p", "new", "--server", "http://localhost", "--name", "Ada", flag, text)
			}
		}
	}
	w.wants(0, "account", "edit", "--name", " Ada L. ")
	if got := w.out.String(); !strings.Contains(got, "name      Ada L.\nabout     Tea\n") || strings.Contains(got, "username") {
		t.Errorf("said %q", got)
	}
	w.wants(0, "account", "edit", "--username", "@Ada_L", "--about", "", "--json")
	if w.object()["name"] != "Ada L." {
		t.Errorf("said %q", &w.out)
	}
	w.fake.fail, w.in = sdk.ErrNoKey, strings.Repeat("abandon ", 23)+"art"
	w.wants(0, "account", "edit", "--about", "Tea")
	w.in = ""
	w.wants(2, "account", "edit", "--about", "Tea")
	want := []string{
		`edit "Ada L." - - phrase false`, `edit - "" "ada_l" phrase false`,
		`edit - "Tea" - phrase false`, `edit - "Tea" - phrase true`, `edit - "Tea" - phrase false`,
	}
	if !reflect.DeepEqual(w.fake.asked, want) {
		t.Errorf("asked %q, want %q", w.fake.asked, want)
	}
}

func TestProfileIsChosen(t *testing.T) {
	w := newWorld(t)
	w.wants(0, "chats") // the only one
	w.makeProfile("bob")
	w.wants(2, "chats")
	if !strings.Contains(w.err.String(), "ada, bob") {
		t.Errorf("said %q", &w.err)
	}
	w.env[envProfile] = "bob"
	w.wants(0, "chats")
	w.wants(0, "chats", "-p", "ada")
}
