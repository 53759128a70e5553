package storetest

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/askucher/compax-core/delivery"
)

// crashEnv makes the test program the process that is killed; its value is
// where the store is.
const crashEnv = "COMPAX_CRASH_AT"

const crashRooms, crashWriters = 8, 16

// CrashMain is called first by TestMain of a package that runs Crash. In the
// process that is to be killed it appends until it is and does not return.
func CrashMain(open func(ctx context.Context, place string) (delivery.Store, error)) {
	place := os.Getenv(crashEnv)
	if place == "" {
		return
	}
	if err := appendForever(open, place); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// appendForever appends and says on its output what was acknowledged: room,
// seq and the number in the entry.
func appendForever(open func(ctx context.Context, place string) (delivery.Store, error), place string) error {
	ctx := context.Background()
	s, err := open(ctx, place)
	if err != nil {
		return err
	}
	var base [8]byte
	if _, err := io.ReadFull(os.Stdin, base[:]); err != nil {
		return err
	}
	var mu sync.Mutex // guards standard output
	errs := make(chan error, crashWriters)
	for w := range crashWriters {
		go func() {
			for i := 0; ; i++ {
				n := int(binary.BigEndian.Uint64(base[:])) + i*crashWriters + w
				room := n % crashRooms
				var acc delivery.Accepted
				err := s.WithRoom(ctx, roomID(room), func(tx delivery.RoomTx) (err error) {
					acc, err = tx.Append(crashEntry(n, tx.Room().Epoch))
					if err == nil && n%97 == 0 { // now and then a commit
						e := tx.Room().Epoch + 1
						err = tx.Advance(delivery.Advance{Epoch: e, Delta: delta(e), GroupInfo: info(e)})
					}
					return err
				})
				if err != nil {
					errs <- err
					return
				}
				mu.Lock()
				_, err = fmt.Fprintf(os.Stdout, "%d %d %d\n", room, acc.Seq, n)
				mu.Unlock()
				if err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	return <-errs
}

// crashEntry holds its number and is 300 bytes, so that pages and their
// overflow take part.
func crashEntry(n int, epoch uint64) delivery.NewEntry {
	body := binary.BigEndian.AppendUint64(nil, uint64(n))
	body = append(body, bytes.Repeat([]byte{byte(n)}, 292)...)
	return delivery.NewEntry{Device: deviceID(10), Hash: sha256.Sum256(body), Epoch: epoch, Kind: delivery.KindApplication, AcceptedMS: now, Bytes: body}
}

// Crash kills a process that appends, again and again, and looks each time
// whether all that it acknowledged is there, in one order and without a gap.
func Crash(t *testing.T, place string, open func(ctx context.Context, place string) (delivery.Store, error)) {
	const rounds = 12
	check := func(fn func(s delivery.Store)) {
		t.Helper()
		s, err := open(t.Context(), place)
		if err != nil {
			t.Fatalf("open after a crash: %v", err)
		}
		fn(s)
		if err := s.Close(); err != nil {
			t.Fatalf("close: %v", err)
		}
	}
	check(func(s delivery.Store) {
		for n := range crashRooms {
			if err := s.CreateRoom(t.Context(), newRoom(n, 10)); err != nil {
				t.Fatal(err)
			}
		}
	})
	acknowledged := map[string]int{} // "room seq" to the entry's number
	for round := range rounds {
		for _, line := range killed(t, place, round) {
			var room, seq, n int
			if _, err := fmt.Sscanf(line, "%d %d %d", &room, &seq, &n); err != nil {
				t.Fatalf("round %d: %q: %v", round, line, err)
			}
			at := fmt.Sprint(room, " ", seq)
			if old, twice := acknowledged[at]; twice {
				t.Fatalf("round %d: %s was given to %d and to %d", round, at, old, n)
			}
			acknowledged[at] = n
		}
		check(func(s delivery.Store) { allThere(t, s, acknowledged) })
	}
	t.Logf("%d entries were acknowledged in %d rounds", len(acknowledged), rounds)
}

// killed starts the process, waits for some acknowledgements, kills it, and
// returns the whole lines that it wrote.
func killed(t *testing.T, place string, round int) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), crashEnv+"="+place)
	cmd.Stdin = bytes.NewReader(binary.BigEndian.AppendUint64(nil, uint64(round)<<40))
	var problems bytes.Buffer
	cmd.Stderr = &problems
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	r := bufio.NewReader(out)
	for enough := 50 + 150*round; ; {
		line, err := r.ReadString('\n')
		if err != nil {
			break // a torn last line was not read by anybody
		}
		lines = append(lines, strings.TrimSpace(line))
		if len(lines) == enough {
			if err := cmd.Process.Kill(); err != nil { // SIGKILL: nothing is flushed or closed
				t.Error(err)
			}
		}
	}
	_ = cmd.Wait() // killed
	if problems.Len() > 0 {
		t.Fatalf("round %d: %s", round, problems.String())
	}
	return lines
}

func allThere(t *testing.T, s delivery.Store, acknowledged map[string]int) {
	t.Helper()
	there := 0
	for room := range crashRooms {
		head, err := s.Room(t.Context(), roomID(room))
		if err != nil {
			t.Fatal(err)
		}
		last := uint64(0)
		for settled := false; !settled; {
			page, err := s.Log(t.Context(), roomID(room), delivery.LogRange{After: last})
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				// A database server may still be at the commit of a client that was killed.
				was := head.NextSeq
				if head, err = s.Room(t.Context(), roomID(room)); err != nil {
					t.Fatal(err)
				}
				settled = head.NextSeq == was
			}
			for _, e := range page {
				if last++; e.Seq != last {
					t.Fatalf("room %d: %d follows %d", room, e.Seq, last-1)
				}
				n := int(binary.BigEndian.Uint64(e.Bytes))
				if want := crashEntry(n, 0).Bytes; !bytes.Equal(e.Bytes, want) {
					t.Fatalf("room %d seq %d is torn", room, e.Seq)
				}
				if was, told := acknowledged[strconv.Itoa(room)+" "+strconv.FormatUint(e.Seq, 10)]; told {
					there++
					if was != n {
						t.Fatalf("room %d seq %d was acknowledged for %d and holds %d", room, e.Seq, was, n)
					}
				}
			}
		}
		if head.NextSeq != last+1 {
			t.Fatalf("room %d goes on at %d after %d", room, head.NextSeq, last)
		}
		if _, err := s.State(t.Context(), roomID(room), head.Epoch); err != nil {
			t.Fatalf("room %d: state of epoch %d: %v", room, head.Epoch, err)
		}
	}
	if there != len(acknowledged) {
		t.Fatalf("%d of %d acknowledged entries are there", there, len(acknowledged))
	}
}
