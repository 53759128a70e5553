// Package blobtest is the contract of [delivery.BlobStore]: each sentence of
// the port is a test here, and every blob store runs all of them. It is for
// tests only. Begin reading at [Run].
package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/askucher/compax-core/delivery"
)

func id(n byte) delivery.BlobID { return delivery.BlobID{0xab, n, 3, 4, 5} }

// random makes bytes, the same for each seed.
func random(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, seed))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

type kit struct {
	testing.TB
	delivery.BlobStore
}

func (k kit) append(id delivery.BlobID, offset int64, b []byte) {
	k.Helper()
	n, err := k.Append(k.Context(), id, offset, bytes.NewReader(b))
	if err != nil || n != int64(len(b)) {
		k.Fatalf("append of %d bytes at %d took %d: %v", len(b), offset, n, err)
	}
}

func (k kit) read(id delivery.BlobID, offset, length int64) []byte {
	k.Helper()
	r, err := k.Open(k.Context(), id, offset, length)
	if err != nil {
		k.Fatalf("open: %v", err)
	}
	b, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		k.Fatalf("read: %v", err)
	}
	return b
}

func (k kit) size(id delivery.BlobID, want int64) {
	k.Helper()
	if n, err := k.Size(k.Context(), id); err != nil || n != want {
		k.Fatalf("size is %d, %v; want %d", n, err, want)
	}
}

func (k kit) is(err, want error) {
	k.Helper()
	if !errors.Is(err, want) {
		k.Fatalf("error is %v, want %v", err, want)
	}
}

// Run runs the contract. place makes an empty place and returns how to open it:
// called again it opens the same place, also while the first is open.
func Run(t *testing.T, place func(t testing.TB) func() (delivery.BlobStore, error)) {
	for _, c := range contract {
		t.Run(c.name, func(t *testing.T) {
			open := place(t)
			s, err := open()
			if err != nil {
				t.Fatalf("open: %v", err)
			}
			c.test(kit{t, s}, func() kit {
				s, err := open()
				if err != nil {
					t.Fatalf("open again: %v", err)
				}
				return kit{t, s}
			})
		})
	}
}

var contract = []struct {
	name string
	test func(k kit, again func() kit)
}{
	{"bytes come back, whole and in parts", func(k kit, _ func() kit) {
		b := random(1, 1<<20+17)
		k.append(id(1), 0, b)
		k.size(id(1), int64(len(b)))
		for _, r := range [][2]int64{{0, int64(len(b))}, {0, 0}, {0, 1}, {1 << 20, 17}, {255, 70_000}, {int64(len(b)) - 1, 1}} {
			if got := k.read(id(1), r[0], r[1]); !bytes.Equal(got, b[r[0]:r[0]+r[1]]) {
				k.Fatalf("%d bytes from %d are others", r[1], r[0])
			}
		}
	}},
	{"a part past the end is shorter", func(k kit, _ func() kit) {
		k.append(id(1), 0, []byte("0123456789"))
		for _, c := range []struct {
			offset, length int64
			want           string
		}{{8, 10, "89"}, {10, 1, ""}, {99, 1, ""}, {0, 1 << 62, "0123456789"}} {
			if got := string(k.read(id(1), c.offset, c.length)); got != c.want {
				k.Fatalf("%d from %d is %q, want %q", c.length, c.offset, got, c.want)
			}
		}
		for _, c := range [][2]int64{{-1, 1}, {0, -1}} {
			if _, err := k.Open(k.Context(), id(1), c[0], c[1]); err == nil {
				k.Fatalf("opened %v", c)
			}
		}
	}},
	{"an upload goes on at its length and nowhere else", func(k kit, _ func() kit) {
		k.append(id(1), 0, []byte("abc"))
		for _, offset := range []int64{0, 2, 4, -1, 1 << 40} {
			n, err := k.Append(k.Context(), id(1), offset, strings.NewReader("xyz"))
			k.is(err, delivery.ErrChanged)
			if n != 0 {
				k.Fatalf("took %d", n)
			}
		}
		_, err := k.Append(k.Context(), id(2), 1, strings.NewReader("xyz"))
		k.is(err, delivery.ErrChanged)
		k.append(id(1), 3, []byte("def"))
		k.append(id(1), 6, nil)
		if got := string(k.read(id(1), 0, 6)); got != "abcdef" {
			k.Fatalf("it is %q", got)
		}
	}},
	{"what an interrupted sender gave stays and counts", func(k kit, again func() kit) {
		b := random(2, 700_000)
		broken := errors.New("the sender went away")
		n, err := k.Append(k.Context(), id(1), 0, io.MultiReader(bytes.NewReader(b[:600_000]), iotest.ErrReader(broken)))
		k.is(err, broken)
		if n != 600_000 {
			k.Fatalf("took %d", n)
		}
		k.size(id(1), n)
		k = again()
		k.size(id(1), n)
		k.append(id(1), n, b[n:])
		if !bytes.Equal(k.read(id(1), 0, int64(len(b))), b) {
			k.Fatal("the bytes are others")
		}
	}},
	{"an ended context stops it, and what was taken counts", func(k kit, _ func() kit) {
		ctx, cancel := context.WithCancel(k.Context())
		defer cancel()
		first := true
		r := readFunc(func(p []byte) (int, error) {
			if !first {
				cancel()
			}
			first = false
			return copy(p, "0123456789"), nil
		})
		n, err := k.Append(ctx, id(1), 0, r)
		k.is(err, context.Canceled)
		k.size(id(1), n)
		if n == 0 || string(k.read(id(1), 0, 10)) != "0123456789" {
			k.Fatalf("took %d", n)
		}
		_, err = k.Append(ctx, id(2), 0, strings.NewReader("x"))
		k.is(err, context.Canceled)
	}},
	{"an unknown blob is not found", func(k kit, _ func() kit) {
		_, err := k.Open(k.Context(), id(9), 0, 1)
		k.is(err, delivery.ErrNotFound)
		_, err = k.Size(k.Context(), id(9))
		k.is(err, delivery.ErrNotFound)
	}},
	{"a deleted blob is gone, and again is no error", func(k kit, _ func() kit) {
		k.append(id(1), 0, []byte("abc"))
		k.append(id(2), 0, []byte("other"))
		for range 2 {
			if err := k.Delete(k.Context(), id(1)); err != nil {
				k.Fatalf("delete: %v", err)
			}
		}
		_, err := k.Size(k.Context(), id(1))
		k.is(err, delivery.ErrNotFound)
		k.size(id(2), 5)
	}},
	{"a reader reads on when the blob is deleted or grows", func(k kit, _ func() kit) {
		b := random(3, 1<<20)
		k.append(id(1), 0, b)
		r, err := k.Open(k.Context(), id(1), 0, int64(len(b)))
		if err != nil {
			k.Fatal(err)
		}
		k.append(id(1), int64(len(b)), []byte("more"))
		if err := k.Delete(k.Context(), id(1)); err != nil {
			k.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, b) {
			k.Fatalf("%d bytes came, %v", len(got), err)
		}
	}},
	{"bytes under way are not counted before they are durable", func(k kit, _ func() kit) {
		k.append(id(1), 0, []byte("abc"))
		reached, release := make(chan struct{}), make(chan struct{})
		step := 0
		r := readFunc(func(p []byte) (int, error) {
			switch step++; step {
			case 1:
				return copy(p, "def"), nil
			case 2:
				close(reached)
				<-release
			}
			return 0, io.EOF
		})
		done := make(chan error, 1)
		go func() {
			_, err := k.Append(k.Context(), id(1), 3, r)
			done <- err
		}()
		<-reached
		k.size(id(1), 3)
		if got := string(k.read(id(1), 0, 100)); got != "abc" {
			k.Errorf("read %q", got)
		}
		_, err := k.Append(k.Context(), id(1), 3, strings.NewReader("second"))
		close(release)
		k.is(err, delivery.ErrChanged)
		if err := <-done; err != nil {
			k.Fatal(err)
		}
		k.size(id(1), 6)
	}},
	{"of many appending at one offset one does", func(k kit, _ func() kit) {
		var wg sync.WaitGroup
		errs := make([]error, 16)
		for i := range errs {
			wg.Go(func() {
				_, errs[i] = k.Append(k.Context(), id(1), 0, bytes.NewReader(bytes.Repeat([]byte{byte(i)}, 100_000)))
			})
		}
		wg.Wait()
		winner := -1
		for i, err := range errs {
			if err == nil {
				if winner >= 0 {
					k.Fatalf("%d and %d won", winner, i)
				}
				winner = i
			} else {
				k.is(err, delivery.ErrChanged)
			}
		}
		if got := k.read(id(1), 0, 200_000); !bytes.Equal(got, bytes.Repeat([]byte{byte(winner)}, 100_000)) {
			k.Fatal("the bytes are not the winner's")
		}
	}},
	{"many blobs at once", func(k kit, again func() kit) {
		var wg sync.WaitGroup
		for i := range byte(32) {
			wg.Go(func() {
				b := random(uint64(i), 50_000)
				for at := 0; at < len(b); at += 10_000 {
					if _, err := k.Append(k.Context(), id(i), int64(at), bytes.NewReader(b[at:at+10_000])); err != nil {
						k.Errorf("blob %d at %d: %v", i, at, err)
					}
				}
			})
		}
		wg.Wait()
		k = again()
		for i := range byte(32) {
			if !bytes.Equal(k.read(id(i), 0, 50_000), random(uint64(i), 50_000)) {
				k.Fatalf("blob %d is another", i)
			}
		}
	}},
	{"places have names: the same again, others elsewhere", func(k kit, again func() kit) {
		if k.Location() == "" || again().Location() != k.Location() {
			k.Fatalf("locations are %q and %q", k.Location(), again().Location())
		}
	}},
	{"free space is known", func(k kit, _ func() kit) {
		if n, err := k.Free(k.Context()); err != nil || n <= 0 {
			k.Fatalf("free is %d, %v", n, err)
		}
	}},
	{"a blob in a hundred pieces", func(k kit, _ func() kit) {
		var want []byte
		for i := range 100 {
			b := fmt.Appendf(nil, "piece %d;", i)
			k.append(id(1), int64(len(want)), b)
			want = append(want, b...)
		}
		if !bytes.Equal(k.read(id(1), 0, int64(len(want))), want) {
			k.Fatal("the bytes are others")
		}
	}},
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }
