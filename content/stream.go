package content

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
)

// Files are encrypted under a fresh key each, which travels in the message.
//
// Up to MaxWhole bytes it is AES-128-GCM over the whole file, the algorithm
// that section 4.5 makes mandatory. GCM shows plaintext only when all of it was
// checked, so a larger file is cut: StreamAESGCM128 is STREAM (Hoang,
// Reyhanitabar, Rogaway and Vizár, "Online Authenticated-Encryption and its
// Nonce-Reuse Misuse-Resistance", 2015) over AES-128-GCM. Chunk i of at most
// ChunkSize bytes is sealed with the nonce
//
//	prefix[7] ‖ u32 i ‖ last
//
// where last is 1 for the last chunk and 0 before it. Every chunk but the last
// is full; the last is not empty unless the file is. So chunks cannot be
// reordered, dropped, repeated or cut off at the end, each is released only
// after it was checked, memory is two chunks whatever the file's size, and a
// player may start in the middle. The key is random for each file, so nonces
// never meet. The hash of the ciphertext stands in the message: a second key
// that opens the same bytes to something else is of no use.

const (
	// ChunkSize is how much plaintext a chunk of StreamAESGCM128 holds, in
	// bytes.
	ChunkSize = 256 << 10
	// MaxWhole is up to which size a file is sealed as a whole, in bytes.
	MaxWhole = 8 << 20

	tagSize     = 16
	sealedChunk = ChunkSize + tagSize
)

// ErrFile says that an attachment's bytes are not what the message says: they
// were damaged, cut or exchanged. What was already written of it is a genuine
// beginning and must be discarded.
var ErrFile = errors.New("content: the file is not the one of the message")

// ErrAlgorithm says that an attachment is sealed in a way that is not known
// here.
var ErrAlgorithm = errors.New("content: unknown encryption of an attachment")

// NewAEAD makes AES-128-GCM of a key: NewAESGCM, or a faster one of the
// platform (WebCrypto in a browser).
type NewAEAD func(key []byte) (cipher.AEAD, error)

// NewAESGCM is the AES-128-GCM of the standard library.
func NewAESGCM(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("content: AES key: %w", err)
	}
	return cipher.NewGCM(block)
}

// NewFileKey returns an External with a fresh algorithm, key and nonce for a
// file of size bytes; below zero means that the size is not known. random must
// be a cryptographic source. Seal fills in size and hash; the caller adds URL,
// content type and name.
func NewFileKey(size int64, random io.Reader) (External, error) {
	e := External{EncAlg: StreamAESGCM128, Key: make(Secret, fileKeySize), Nonce: make([]byte, streamNonceSize)}
	if size >= 0 && size <= MaxWhole {
		e.EncAlg, e.Nonce = AESGCM128, make([]byte, wholeNonceSize)
	}
	for _, dst := range [][]byte{e.Key, e.Nonce} {
		if _, err := io.ReadFull(random, dst); err != nil {
			return External{}, fmt.Errorf("content: read randomness: %w", err)
		}
	}
	return e, nil
}

// SealedSize returns how many bytes a file of size bytes takes at its URL.
func (e External) SealedSize(size uint64) (uint64, error) {
	switch e.EncAlg {
	case AEADNone:
		return size, nil
	case AESGCM128:
		return size + tagSize, nil
	case StreamAESGCM128:
		chunks := max(1, size/ChunkSize+min(1, size%ChunkSize))
		return size + chunks*tagSize, nil
	}
	return 0, fmt.Errorf("%w: %d", ErrAlgorithm, e.EncAlg)
}

// Seal encrypts src to dst by the key of NewFileKey and returns e with the
// plaintext's size and the ciphertext's SHA-256. Memory is bounded by MaxWhole
// or by two chunks. A key must seal one file only; sealing the same file again
// gives the same bytes, so an interrupted upload goes on where it stopped.
func (e External) Seal(dst io.Writer, src io.Reader, newAEAD NewAEAD) (External, error) {
	aead, err := e.aead(newAEAD)
	if err != nil {
		return External{}, err
	}
	sum := sha256.New()
	out := io.MultiWriter(dst, sum)
	var size uint64
	switch e.EncAlg {
	case AESGCM128:
		plain, err := readAtMost(src, MaxWhole)
		if err != nil {
			return External{}, err
		}
		if _, err := out.Write(aead.Seal(nil, e.Nonce, plain, e.AAD)); err != nil {
			return External{}, fmt.Errorf("content: write sealed file: %w", err)
		}
		size = uint64(len(plain))
	default:
		size, err = e.eachChunk(src, ChunkSize, func(nonce, chunk, room []byte) error {
			_, err := out.Write(aead.Seal(room, nonce, chunk, e.AAD))
			return err
		})
		if err != nil {
			return External{}, fmt.Errorf("content: seal file: %w", err)
		}
	}
	e.Size, e.HashAlg, e.ContentHash = size, hashSHA256, sum.Sum(nil)
	return e, nil
}

// Open decrypts what lies at the URL from src to dst and checks every chunk
// before it is written, then the size and the hash of the message. limit bounds
// the plaintext, and with it the memory of a file that is sealed as a whole; a
// streamed file takes two chunks. ErrFile, ErrLimit, ErrAlgorithm, or an error
// of src and dst.
func (e External) Open(dst io.Writer, src io.Reader, limit uint64, newAEAD NewAEAD) error {
	if e.Size > limit {
		return fmt.Errorf("%w: file of %d bytes, at most %d allowed", ErrLimit, e.Size, limit)
	}
	sum, err := e.hash()
	if err != nil {
		return err
	}
	if sum != nil {
		src = io.TeeReader(src, sum)
	}
	out := &boundedWriter{w: dst, left: limit}
	switch e.EncAlg {
	case AEADNone:
		_, err = io.Copy(out, src)
	case AESGCM128:
		err = e.openWhole(out, src, limit, newAEAD)
	default:
		err = e.openStream(out, src, newAEAD)
	}
	if err != nil {
		return err
	}
	if size := limit - out.left; e.Size != 0 && size != e.Size {
		return fmt.Errorf("%w: %d bytes instead of %d", ErrFile, size, e.Size)
	}
	if sum != nil && !bytes.Equal(sum.Sum(nil), e.ContentHash) {
		return fmt.Errorf("%w: its hash differs", ErrFile)
	}
	return nil
}

// hash returns the hash to compute, nil when the message names none.
func (e External) hash() (hash.Hash, error) {
	switch e.HashAlg {
	case hashNone:
		return nil, nil
	case hashSHA256:
		return sha256.New(), nil
	}
	return nil, fmt.Errorf("%w: hash %d", ErrAlgorithm, e.HashAlg)
}

func (e External) openWhole(dst io.Writer, src io.Reader, limit uint64, newAEAD NewAEAD) error {
	aead, err := e.aead(newAEAD)
	if err != nil {
		return err
	}
	want := limit
	if e.Size != 0 {
		want = e.Size
	}
	sealed, err := readAtMost(src, min(want, math.MaxInt64-tagSize-1)+tagSize)
	if err != nil {
		return err
	}
	plain, err := aead.Open(sealed[:0], e.Nonce, sealed, e.AAD)
	if err != nil {
		return fmt.Errorf("%w: it does not open", ErrFile)
	}
	if _, err := dst.Write(plain); err != nil {
		return fmt.Errorf("content: write file: %w", err)
	}
	return nil
}

func (e External) openStream(dst io.Writer, src io.Reader, newAEAD NewAEAD) error {
	aead, err := e.aead(newAEAD)
	if err != nil {
		return err
	}
	first := true
	_, err = e.eachChunk(src, sealedChunk, func(nonce, chunk, _ []byte) error {
		plain, err := aead.Open(chunk[:0], nonce, chunk, e.AAD)
		if err != nil {
			return fmt.Errorf("%w: a chunk does not open", ErrFile)
		}
		if len(plain) == 0 && !first {
			return fmt.Errorf("%w: an empty chunk at the end", ErrFile)
		}
		first = false
		if _, err := dst.Write(plain); err != nil {
			return fmt.Errorf("content: write file: %w", err)
		}
		return nil
	})
	return err
}

// eachChunk reads src in chunks of size bytes, the last one shorter, and hands
// each with its nonce to do. room is empty scratch space for a sealed chunk.
func (e External) eachChunk(src io.Reader, size int, do func(nonce, chunk, room []byte) error) (uint64, error) {
	buffer := make([]byte, size+1) // one byte ahead shows whether a chunk is the last
	room := make([]byte, 0, sealedChunk)
	have := 0
	var total uint64
	for i := uint64(0); i <= math.MaxUint32; i++ {
		n, err := io.ReadFull(src, buffer[have:])
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return total, fmt.Errorf("content: read file: %w", err)
		}
		have += n
		chunk := buffer[:min(have, size)]
		ahead := buffer[size]
		if err := do(e.chunkNonce(uint32(i), last), chunk, room); err != nil {
			return total, err
		}
		total += uint64(len(chunk))
		if last {
			return total, nil
		}
		buffer[0], have = ahead, 1
	}
	return total, fmt.Errorf("%w: a file of more than 2^32 chunks", ErrLimit)
}

func (e External) chunkNonce(i uint32, last bool) []byte {
	nonce := append(make([]byte, 0, wholeNonceSize), e.Nonce...)
	nonce = binary.BigEndian.AppendUint32(nonce, i)
	if last {
		return append(nonce, 1)
	}
	return append(nonce, 0)
}

// aead checks the algorithm and the sizes of key and nonce.
func (e External) aead(newAEAD NewAEAD) (cipher.AEAD, error) {
	nonce := map[uint16]int{AESGCM128: wholeNonceSize, StreamAESGCM128: streamNonceSize}[e.EncAlg]
	if nonce == 0 {
		return nil, fmt.Errorf("%w: %d", ErrAlgorithm, e.EncAlg)
	}
	if len(e.Key) != fileKeySize || len(e.Nonce) != nonce {
		return nil, fmt.Errorf("%w: key of %d bytes and nonce of %d", ErrAlgorithm, len(e.Key), len(e.Nonce))
	}
	return newAEAD(e.Key)
}

// readAtMost reads all of src, and fails when it is longer than limit.
func readAtMost(src io.Reader, limit uint64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(src, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("content: read file: %w", err)
	}
	if uint64(len(b)) > limit {
		return nil, fmt.Errorf("%w: a file of more than %d bytes", ErrLimit, limit)
	}
	return b, nil
}

// boundedWriter fails at the byte that exceeds its bound.
type boundedWriter struct {
	w    io.Writer
	left uint64
}

func (w *boundedWriter) Write(b []byte) (int, error) {
	if uint64(len(b)) > w.left {
		return 0, fmt.Errorf("%w: the file is longer than allowed", ErrLimit)
	}
	n, err := w.w.Write(b)
	w.left -= uint64(n)
	return n, err
}
