package content

import (
	"crypto/cipher"
	"fmt"
	"io"
)

// StreamReader reads any place of a file that is sealed by StreamAESGCM128,
// for a player that jumps: it fetches and opens only the chunks it needs. It is
// for one goroutine. It checks chunks, not the hash of the whole.
type StreamReader struct {
	e      External
	aead   cipher.AEAD
	src    io.ReaderAt
	size   uint64
	chunks uint64
	at     int64  // index of the chunk in plain, -1 = none
	plain  []byte //
	sealed []byte // scratch
}

// NewStreamReader opens a streamed file of which src holds the ciphertext. The
// message must say its size (ErrAlgorithm, ErrFile).
func (e External) NewStreamReader(src io.ReaderAt, newAEAD NewAEAD) (*StreamReader, error) {
	if e.EncAlg != StreamAESGCM128 {
		return nil, fmt.Errorf("%w: %d is not read in places", ErrAlgorithm, e.EncAlg)
	}
	if e.Size == 0 || e.Size > 1<<50 {
		return nil, fmt.Errorf("%w: a file of %d bytes is not read in places", ErrFile, e.Size)
	}
	aead, err := e.aead(newAEAD)
	if err != nil {
		return nil, err
	}
	return &StreamReader{e: e, aead: aead, src: src, size: e.Size, chunks: (e.Size + ChunkSize - 1) / ChunkSize,
		at: -1, sealed: make([]byte, sealedChunk)}, nil
}

// Size returns the size of the file in bytes.
func (r *StreamReader) Size() int64 { return int64(r.size) }

// ReadAt reads as io.ReaderAt says (ErrFile, or an error of the source).
func (r *StreamReader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("content: read at %d", off)
	}
	n := 0
	for n < len(p) {
		if uint64(off) >= r.size {
			return n, io.EOF
		}
		if err := r.load(off / ChunkSize); err != nil {
			return n, err
		}
		k := copy(p[n:], r.plain[off%ChunkSize:])
		n += k
		off += int64(k)
	}
	return n, nil
}

// load fetches, checks and opens chunk i.
func (r *StreamReader) load(i int64) error {
	if r.at == i {
		return nil
	}
	last := uint64(i) == r.chunks-1
	length := sealedChunk
	if last {
		length = int(r.size-uint64(i)*ChunkSize) + tagSize
	}
	sealed := r.sealed[:length]
	if n, err := r.src.ReadAt(sealed, i*sealedChunk); n < length {
		return fmt.Errorf("content: read chunk %d: %w", i, err)
	}
	r.at = -1
	plain, err := r.aead.Open(sealed[:0], r.e.chunkNonce(uint32(i), last), sealed, r.e.AAD)
	if err != nil {
		return fmt.Errorf("%w: chunk %d does not open", ErrFile, i)
	}
	r.plain, r.at = plain, i
	return nil
}
