package content

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/askucher/compax-core/internal/testdata"
)

// pattern returns n repeatable bytes.
func pattern(n int, seed uint64) []byte {
	b := make([]byte, n)
	rng := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	_, _ = rng.Read(b)
	return b
}

func seal(t testing.TB, plain []byte, known bool) (External, []byte) {
	t.Helper()
	size := int64(-1)
	if known {
		size = int64(len(plain))
	}
	e, err := NewFileKey(size, bytes.NewReader(pattern(64, uint64(len(plain)))))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	e, err = e.Seal(&out, bytes.NewReader(plain), NewAESGCM)
	if err != nil {
		t.Fatal(err)
	}
	return e, out.Bytes()
}

func open(e External, sealed []byte) ([]byte, error) {
	var out bytes.Buffer
	err := e.Open(&out, bytes.NewReader(sealed), 1<<40, NewAESGCM)
	return out.Bytes(), err
}

var fileSizes = []int{0, 1, 15, ChunkSize - 1, ChunkSize, ChunkSize + 1, 2*ChunkSize - 1, 2 * ChunkSize, 2*ChunkSize + 1, 5*ChunkSize + 77}

func TestFileRoundTrip(t *testing.T) {
	for _, n := range append(fileSizes, MaxWhole, MaxWhole+1) {
		for _, known := range []bool{true, false} {
			plain := pattern(n, 7)
			e, sealed := seal(t, plain, known)
			want := uint16(StreamAESGCM128)
			if known && n <= MaxWhole {
				want = AESGCM128
			}
			if e.EncAlg != want || e.Size != uint64(n) {
				t.Errorf("%d bytes: algorithm %d, size %d", n, e.EncAlg, e.Size)
			}
			if size, err := e.SealedSize(uint64(n)); err != nil || size != uint64(len(sealed)) {
				t.Errorf("%d bytes: SealedSize %d, is %d", n, size, len(sealed))
			}
			got, err := open(e, sealed)
			if err != nil || !bytes.Equal(got, plain) {
				t.Errorf("%d bytes, known %v: %v", n, known, err)
			}
			// One byte at a time gives the same bytes.
			if n <= ChunkSize+1 {
				var out bytes.Buffer
				if _, err := e.Seal(&out, oneByte{bytes.NewReader(plain)}, NewAESGCM); err != nil || !bytes.Equal(out.Bytes(), sealed) {
					t.Errorf("%d bytes, read in small pieces: %v", n, err)
				}
			}
		}
	}
}

type oneByte struct{ r io.Reader }

func (o oneByte) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	return o.r.Read(b[:1])
}

// TestFileAttacks changes sealed files in every way that a server could. The
// hash is left out, so that the construction itself must notice.
func TestFileAttacks(t *testing.T) {
	plain := pattern(3*ChunkSize+100, 9)
	e, sealed := seal(t, plain, false)
	e.HashAlg, e.ContentHash, e.Size = 0, nil, 0
	chunk := func(i int) []byte { return sealed[i*sealedChunk : min(len(sealed), (i+1)*sealedChunk)] }
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	flipped := bytes.Clone(sealed)
	flipped[2*sealedChunk+5] ^= 1
	exact, exactSealed := seal(t, plain[:2*ChunkSize], false)
	exact.HashAlg, exact.ContentHash, exact.Size = 0, nil, 0
	// An empty last chunk after a full one, sealed with the right key: only who
	// has the key can make it, and it is still no second form of the same file.
	aead, err := exact.aead(NewAESGCM)
	if err != nil {
		t.Fatal(err)
	}
	padded := aead.Seal(nil, exact.chunkNonce(0, false), plain[:ChunkSize], nil)
	padded = aead.Seal(padded, exact.chunkNonce(1, true), nil, nil)

	for name, c := range map[string]struct {
		e      External
		sealed []byte
	}{
		"a flipped bit":             {e, flipped},
		"nothing":                   {e, nil},
		"half a tag":                {e, sealed[:8]},
		"cut at a chunk":            {e, sealed[:2*sealedChunk]},
		"cut in a chunk":            {e, sealed[:2*sealedChunk+500]},
		"cut by a byte":             {e, sealed[:len(sealed)-1]},
		"a byte more":               {e, join(sealed, []byte{0})},
		"chunks exchanged":          {e, join(chunk(1), chunk(0), chunk(2), chunk(3))},
		"a chunk twice":             {e, join(chunk(0), chunk(0), chunk(1), chunk(2), chunk(3))},
		"a chunk dropped":           {e, join(chunk(0), chunk(2), chunk(3))},
		"the last chunk twice":      {e, join(sealed, chunk(3))},
		"another file's chunk":      {e, join(chunk(0), exactSealed[sealedChunk:], chunk(2), chunk(3))},
		"exact, cut at a chunk":     {exact, exactSealed[:sealedChunk]},
		"an empty chunk at the end": {exact, padded},
	} {
		got, err := open(c.e, c.sealed)
		if !errors.Is(err, ErrFile) {
			t.Errorf("%s: %v", name, err)
		}
		if !bytes.HasPrefix(plain, got) {
			t.Errorf("%s: released bytes that are no beginning of the file", name)
		}
	}

	whole, wholeSealed := seal(t, plain[:1000], true)
	for _, bad := range [][]byte{nil, wholeSealed[:999], append(bytes.Clone(wholeSealed[:1015]), wholeSealed[1015]^1)} {
		if got, err := open(whole, bad); !errors.Is(err, ErrFile) || len(got) != 0 {
			t.Errorf("whole file of %d bytes: %d released, %v", len(bad), len(got), err)
		}
	}
}

func TestFileHashSizeLimit(t *testing.T) {
	plain := pattern(ChunkSize+5, 3)
	e, sealed := seal(t, plain, false)
	wrong := e
	wrong.ContentHash = bytes.Repeat([]byte{1}, 32)
	if _, err := open(wrong, sealed); !errors.Is(err, ErrFile) {
		t.Errorf("another hash: %v", err)
	}
	wrong = e
	wrong.Size++
	if _, err := open(wrong, sealed); !errors.Is(err, ErrFile) {
		t.Errorf("another size: %v", err)
	}
	if err := e.Open(io.Discard, bytes.NewReader(sealed), uint64(len(plain))-1, NewAESGCM); !errors.Is(err, ErrLimit) {
		t.Errorf("above the limit, told: %v", err)
	}
	lying := e
	lying.Size = 0
	if err := lying.Open(io.Discard, bytes.NewReader(sealed), uint64(len(plain))-1, NewAESGCM); !errors.Is(err, ErrLimit) {
		t.Errorf("above the limit, not told: %v", err)
	}
	if err := lying.Open(io.Discard, bytes.NewReader(sealed), uint64(len(plain)), NewAESGCM); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	for name, change := range map[string]func(*External){
		"unknown algorithm": func(e *External) { e.EncAlg = 2 },
		"unknown hash":      func(e *External) { e.HashAlg = 7 },
		"long key":          func(e *External) { e.Key = make([]byte, 32) },
		"no nonce":          func(e *External) { e.Nonce = nil },
	} {
		bad := e
		change(&bad)
		if _, err := open(bad, sealed); !errors.Is(err, ErrAlgorithm) {
			t.Errorf("%s: %v", name, err)
		}
	}
	public := External{Size: 3, HashAlg: 1, ContentHash: func() []byte { h := sha256.Sum256([]byte("abc")); return h[:] }()}
	if got, err := open(public, []byte("abc")); err != nil || string(got) != "abc" {
		t.Errorf("not encrypted: %v", err)
	}
	if _, err := open(public, []byte("abd")); !errors.Is(err, ErrFile) {
		t.Errorf("not encrypted, exchanged: %v", err)
	}
}

func TestStreamReader(t *testing.T) {
	plain := pattern(3*ChunkSize+100, 5)
	e, sealed := seal(t, plain, false)
	r, err := e.NewStreamReader(bytes.NewReader(sealed), NewAESGCM)
	if err != nil {
		t.Fatal(err)
	}
	if r.Size() != int64(len(plain)) {
		t.Errorf("size %d", r.Size())
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		off, n := rng.IntN(len(plain)), rng.IntN(2*ChunkSize)
		got := make([]byte, n)
		k, err := r.ReadAt(got, int64(off))
		want := plain[off:min(len(plain), off+n)]
		if !bytes.Equal(got[:k], want) || (err == io.EOF) != (off+n > len(plain)) || err != nil && err != io.EOF {
			t.Fatalf("read %d at %d: %d, %v", n, off, k, err)
		}
	}
	if k, err := r.ReadAt(make([]byte, 1), int64(len(plain))); k != 0 || err != io.EOF {
		t.Errorf("read at the end: %d, %v", k, err)
	}
	if _, err := r.ReadAt(make([]byte, 1), -1); err == nil {
		t.Error("read before the beginning")
	}
	bad := bytes.Clone(sealed)
	bad[sealedChunk] ^= 1
	r, _ = e.NewStreamReader(bytes.NewReader(bad), NewAESGCM)
	if _, err := r.ReadAt(make([]byte, 10), ChunkSize); !errors.Is(err, ErrFile) {
		t.Errorf("a changed chunk: %v", err)
	}
	if _, err := r.ReadAt(make([]byte, 10), 0); err != nil {
		t.Errorf("the chunk before it: %v", err)
	}
	longer := e
	longer.Size++
	r, _ = longer.NewStreamReader(bytes.NewReader(sealed), NewAESGCM)
	if _, err := r.ReadAt(make([]byte, 10), 3*ChunkSize); err == nil {
		t.Error("a file that is shorter than it says")
	}
	whole, wholeSealed := seal(t, plain[:10], true)
	if _, err := whole.NewStreamReader(bytes.NewReader(wholeSealed), NewAESGCM); !errors.Is(err, ErrAlgorithm) {
		t.Errorf("a whole file: %v", err)
	}
}

// TestFileMemory seals and opens a large file from a source that is nowhere in
// memory: all that is ever allocated is a few chunks.
func TestFileMemory(t *testing.T) {
	const size = 96 << 20
	e, err := NewFileKey(size, bytes.NewReader(pattern(64, 1)))
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	in, out := io.Pipe()
	done := make(chan error, 1)
	var sealed External
	go func() {
		var err error
		sealed, err = e.Seal(out, io.LimitReader(zeros{}, size), NewAESGCM)
		out.CloseWithError(err)
		done <- err
	}()
	opening := e
	counted := &count{}
	if err := opening.Open(counted, in, size, NewAESGCM); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if counted.n != size || sealed.Size != size {
		t.Errorf("%d and %d bytes", counted.n, sealed.Size)
	}
	if total := after.TotalAlloc - before.TotalAlloc; total > 12*ChunkSize {
		t.Errorf("%d bytes of file allocate %d", size, total)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

type count struct{ n int }

func (c *count) Write(b []byte) (int, error) { c.n += len(b); return len(b), nil }

// TestStreamIndependent opens a streamed file with Node's crypto alone, by the
// description of the construction.
func TestStreamIndependent(t *testing.T) {
	node := testdata.Program(t, "node", "install Node.js 18 or newer")
	plain := pattern(2*ChunkSize+1234, 11)
	e, sealed := seal(t, plain, false)
	cmd := exec.Command(node, filepath.Join("testdata", "openstream.mjs"), hex.EncodeToString(e.Key), hex.EncodeToString(e.Nonce))
	cmd.Stdin = bytes.NewReader(sealed)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := fmt.Sprintf("%d %x %x", len(plain), sha256.Sum256(plain), e.ContentHash)
	if got := strings.TrimSpace(string(out)); got != want {
		t.Errorf("independent %s\nhere        %s", got, want)
	}
}

func BenchmarkFile(b *testing.B) {
	plain := pattern(16<<20, 1)
	e, err := NewFileKey(-1, bytes.NewReader(pattern(64, 1)))
	if err != nil {
		b.Fatal(err)
	}
	var sealed bytes.Buffer
	b.Run("seal", func(b *testing.B) {
		b.SetBytes(int64(len(plain)))
		for b.Loop() {
			sealed.Reset()
			if _, err := e.Seal(&sealed, bytes.NewReader(plain), NewAESGCM); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("open", func(b *testing.B) {
		b.SetBytes(int64(len(plain)))
		for b.Loop() {
			if err := e.Open(io.Discard, bytes.NewReader(sealed.Bytes()), 1<<40, NewAESGCM); err != nil {
				b.Fatal(err)
			}
		}
	})
}
