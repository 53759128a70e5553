//go:build linux

package scripts

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/askucher/compax-core/sdk/sqlitestore"
)

// tiny mounts a file system of so many KiB.
func tiny(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		t.Skipf("NOT TESTED: a full disk needs a file system of its own, and mounting one failed (%v): run this as root", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fill takes all the room there is.
func fill(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, size := range []int{1 << 16, 1 << 12, 1} {
		for {
			if _, err := f.Write(make([]byte, size)); errors.Is(err, syscall.ENOSPC) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// give gives back so many of the bytes that fill took.
func give(t *testing.T, dir string, bytes int64) {
	t.Helper()
	filler := filepath.Join(dir, "filler")
	info, err := os.Stat(filler)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filler, info.Size()-bytes); err != nil {
		t.Fatal(err)
	}
}

// command runs compax with the profiles of home and gives its exit code and output.
func command(t *testing.T, home string, args ...string) (code int, out string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(binary, "compax"), args...)
	cmd.Env = append(os.Environ(), "COMPAX_HOME="+home, "HOME="+home)
	b, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(b)
}

func wantsExit(t *testing.T, want int, says, home string, args ...string) string {
	t.Helper()
	code, out := command(t, home, args...)
	if code != want || !strings.Contains(out, says) {
		t.Fatalf("compax %s: exit code %d, want %d and %q\n%s", strings.Join(args, " "), code, want, says, out)
	}
	return out
}

// TestServiceOnAFullDisk: a service that finds no room for its data does not start,
// says why and what to do, with the exit code of what may work later; with room it
// starts.
func TestServiceOnAFullDisk(t *testing.T) {
	dir := tiny(t, "16k")
	fill(t, dir)
	up := []string{"up", "--dir", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--metrics-listen", "off"}
	wantsExit(t, 3, "the disk is full", t.TempDir(), up...)
	wantsExit(t, 3, `"code":"disk_full"`, t.TempDir(), append(up, "--json")...)
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT, "size=64m"); err != nil {
		t.Fatal(err)
	}
	s, err := startServer(filepath.Join(dir, "data"), "127.0.0.1:0", os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	s.kill()
}

// TestServiceWhoseDiskFills: what a service answers while its disk is full is that
// it is; it keeps nothing half, the sender's device keeps what it wrote, and with
// room again all of it goes out. What was acknowledged is there, also after
// a kill -9 on the full disk.
func TestServiceWhoseDiskFills(t *testing.T) {
	dir, home := tiny(t, "24m"), t.TempDir()
	data := filepath.Join(dir, "data")
	s, err := startServer(data, "127.0.0.1:0", os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { s.kill() }()
	url := "http://" + s.addr
	for _, name := range []string{"ada", "bob"} {
		wantsExit(t, 0, "", home, "account", "new", "--profile", name, "--server", url, "--name", name, "--username", name)
	}
	chat := strings.TrimSpace(wantsExit(t, 0, "-", home, "room", "new", "--profile", "ada", "--title", "Tea"))
	wantsExit(t, 0, "", home, "room", "add", "--profile", "ada", chat, "@bob")
	wantsExit(t, 0, "", home, "room", "accept", "--profile", "bob", chat)

	fill(t, dir)
	give(t, dir, 1<<20)
	var sent []string
	refused := ""
	for n := 0; refused == ""; n++ {
		text := fmt.Sprintf("number %d %s", n, strings.Repeat("x", 40_000))
		code, out := command(t, home, "send", "--profile", "ada", "Tea", text, "--json")
		switch {
		case code == 0:
			sent = append(sent, text)
		case code == 3 && strings.Contains(out, `"code":"full"`) && strings.Contains(out, `"kept":true`):
			refused = text
		default:
			t.Fatalf("exit code %d\n%s", code, out)
		}
		if n > 1000 {
			t.Fatal("the disk does not fill")
		}
	}
	wantsExit(t, 3, "the service's disk is full", home, "send", "--profile", "ada", "Tea", strings.Repeat("y", 40_000))
	wantsExit(t, 3, "full", home, "send", "--profile", "ada", "Tea", "--file", filepath.Join(binary, "compax"))
	everything := func(also ...string) {
		t.Helper()
		_, out := command(t, home, "history", "--profile", "bob", chat, "--json")
		for _, text := range append(also, sent...) {
			if strings.Count(out, text) != 1 {
				t.Fatalf("%.20s… is there %d times", text, strings.Count(out, text))
			}
		}
	}
	if len(sent) < 3 {
		t.Fatalf("%d messages were acknowledged before the disk was full: too few to lose one", len(sent))
	}
	wantsExit(t, 0, fmt.Sprintf("number %d ", len(sent)-1), home, "history", "--profile", "bob", chat) // reading needs no room
	s.kill()
	if err := os.Remove(filepath.Join(dir, "filler")); err != nil {
		t.Fatal(err)
	}
	if s, err = startServer(data, s.addr, os.Environ()); err != nil {
		t.Fatal(err)
	}
	wantsExit(t, 0, "", home, "send", "--profile", "ada", "Tea", "room again")
	everything(refused, strings.Repeat("y", 40_000), "room again")
}

// TestProfileOnAFullDisk: a profile without room keeps nothing half: the command
// says so, and when there is room all goes on.
func TestProfileOnAFullDisk(t *testing.T) {
	home := tiny(t, "8m")
	s, err := startServer(filepath.Join(t.TempDir(), "home"), "127.0.0.1:0", os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	defer s.kill()
	wantsExit(t, 0, "", home, "account", "new", "--profile", "ada", "--server", "http://"+s.addr, "--name", "Ada")
	wantsExit(t, 0, "", home, "room", "new", "--profile", "ada", "--title", "Tea")
	wantsExit(t, 0, "", home, "send", "--profile", "ada", "Tea", "before")
	fill(t, home)
	wantsExit(t, 3, `"code":"disk_full"`, home, "send", "--profile", "ada", "Tea", strings.Repeat("no room ", 4000), "--json")
	wantsExit(t, 3, `"code":"disk_full"`, home, "account", "new", "--profile", "bob", "--server", "http://"+s.addr, "--name", "Bob", "--json")
	if err := os.Remove(filepath.Join(home, "filler")); err != nil {
		t.Fatal(err)
	}
	wantsExit(t, 0, "", home, "send", "--profile", "ada", "Tea", "after")
	out := wantsExit(t, 0, "before", home, "history", "--profile", "ada", "Tea")
	if strings.Contains(out, "cannot be read") || strings.Contains(out, "missing") || !strings.Contains(out, "after") {
		t.Errorf("the history is\n%s", out)
	}
}

// TestLockedProfile: a process that holds a profile's store and does not answer is
// named, with what to do; nothing is lost.
func TestLockedProfile(t *testing.T) {
	home := t.TempDir()
	s, err := startServer(filepath.Join(t.TempDir(), "home"), "127.0.0.1:0", os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	defer s.kill()
	wantsExit(t, 0, "", home, "account", "new", "--profile", "ada", "--server", "http://"+s.addr, "--name", "Ada")
	wantsExit(t, 0, "", home, "room", "new", "--profile", "ada", "--title", "Tea")
	held, err := sqlitestore.Open(t.Context(), filepath.Join(home, "ada", "profile.db"))
	if err != nil {
		t.Fatal(err)
	}
	wantsExit(t, 3, "another process holds this profile", home, "send", "--profile", "ada", "Tea", "locked")
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	wantsExit(t, 0, "", home, "send", "--profile", "ada", "Tea", "unlocked")
}
