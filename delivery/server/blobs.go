package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/askucher/compax-core/delivery"
)

// A blob is ciphertext that entries refer to. It is uploaded in pieces, each
// resumable, and read by who uploaded it and by the members of a room in which
// a kept entry refers to it.

// maxPiece bounds what one PATCH makes durable at once; a longer body is taken
// piece by piece, so that a broken connection loses at most one.
const maxPiece = 8 << 20

func (s *Server) beginBlob(c *call) error {
	var req delivery.BlobRequest
	if err := c.readJSON(&req); err != nil {
		return err
	}
	if req.Size <= 0 {
		return bad("a blob has at least one byte")
	}
	if req.Size > s.MaxBlob {
		return delivery.Refuse(delivery.CodeTooLarge, fmt.Sprintf("a blob has at most %d bytes here", s.MaxBlob))
	}
	if err := s.mayUpload(c, req.Size); err != nil {
		return err
	}
	if err := s.spend(c, "blob", c.device().String(), 1); err != nil {
		return err
	}
	if free, err := s.Blobs.Free(c); err == nil && free < req.Size {
		return delivery.ErrFull
	}
	m := delivery.BlobMeta{Owner: c.device(), Size: req.Size, CreatedMS: s.nowMS()}
	if _, err := io.ReadFull(s.Random, m.ID[:]); err != nil {
		return err
	}
	switch err := s.store.CreateBlob(c, m, s.MaxLooseBlobs); {
	case errors.Is(err, delivery.ErrLimit):
		return delivery.Refuse(delivery.CodeTooLarge, fmt.Sprintf("uploads that no entry refers to are at most %d bytes a device: send or wait", s.MaxLooseBlobs))
	case err != nil:
		return err
	}
	return c.json(delivery.BlobView{ID: m.ID, Size: m.Size})
}

// ownBlob finds a blob that the caller uploads.
func (s *Server) ownBlob(c *call) (delivery.BlobMeta, error) {
	id, err := delivery.ParseBlobID(c.r.PathValue("blob"))
	if err != nil {
		return delivery.BlobMeta{}, bad("the path names no blob")
	}
	m, err := s.store.Blob(c, id)
	if err != nil {
		return m, err
	}
	if m.Owner != c.device() {
		return m, delivery.ErrNotFound
	}
	return m, s.catchUp(c, &m)
}

// catchUp moves the index to what the medium holds: after a crash between the
// two the medium is ahead.
func (s *Server) catchUp(ctx context.Context, m *delivery.BlobMeta) error {
	if m.Complete() {
		return nil
	}
	size, err := s.Blobs.Size(ctx, m.ID)
	if errors.Is(err, delivery.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if size = min(size, m.Size); size <= m.Received {
		return nil
	}
	err = s.store.AdvanceBlob(ctx, m.ID, m.Received, size)
	if errors.Is(err, delivery.ErrChanged) {
		fresh, err := s.store.Blob(ctx, m.ID)
		*m = fresh
		return err
	}
	if err == nil {
		m.Received = size
	}
	return err
}

func (s *Server) blobState(c *call) error {
	m, err := s.ownBlob(c)
	if err != nil {
		return err
	}
	return c.json(delivery.BlobView{ID: m.ID, Size: m.Size, Received: m.Received})
}

// uploadBlob takes bytes from Upload-Offset on, which must be how much there is.
func (s *Server) uploadBlob(c *call) error {
	m, err := s.ownBlob(c)
	if err != nil {
		return err
	}
	offset, err := strconv.ParseInt(c.r.Header.Get(delivery.HeaderOffset), 10, 64)
	if err != nil || offset < 0 {
		return bad("the " + delivery.HeaderOffset + " header is not a number")
	}
	if offset != m.Received {
		return &delivery.Error{Code: delivery.CodeConflict, Detail: "the upload stands at another offset: read its state and go on from there", Seq: uint64(m.Received)}
	}
	body := io.Reader(c.r.Body)
	if c.body != nil { // read already, for its signature
		body = bytes.NewReader(c.body)
	}
	for m.Received < m.Size {
		// What has begun goes on, unless it is the last that fits.
		if s.Level(c) == Critical {
			return s.mayUpload(c, m.Size)
		}
		piece := &counted{r: io.LimitReader(body, min(maxPiece, m.Size-m.Received)), call: c, each: s.Patience.Piece}
		piece.extend()
		took, err := s.Blobs.Append(c, m.ID, m.Received, piece)
		if took > 0 {
			// What the medium took counts, whatever happens to the request now.
			if err := s.store.AdvanceBlob(context.WithoutCancel(c), m.ID, m.Received, m.Received+took); err != nil {
				return err
			}
			m.Received += took
			s.metrics.blobIn.Add(float64(took))
			s.pressure.moved.Add(took)
		}
		if err != nil {
			if piece.err != nil {
				return readFault(piece.err)
			}
			return err
		}
		if took == 0 {
			break
		}
	}
	switch n, err := io.CopyN(io.Discard, body, 1); {
	case n > 0:
		return delivery.Refuse(delivery.CodeTooLarge, "the body goes past the blob's declared size")
	case err == io.EOF:
		c.bodyUntil(time.Time{})
	}
	// Else what is left of the body has the time that stands: net/http reads it before
	// it answers, and waits for as long as it takes.
	return c.json(delivery.BlobView{ID: m.ID, Size: m.Size, Received: m.Received})
}

// counted gives the body of an upload its time: as long again for each 64 KiB that
// came. It remembers whether it was the sender's side that failed.
type counted struct {
	r    io.Reader
	call *call
	each time.Duration
	came int // since the time was given last
	err  error
}

func (r *counted) extend() {
	r.came = 0
	r.call.bodyUntil(time.Now().Add(r.each))
}

func (r *counted) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if r.came += n; r.came >= takePiece {
		r.extend()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// mayRefer checks that the sender of an entry may read the blobs that it refers
// to: the entry gives them to its room, so knowing an id must not be enough.
func (s *Server) mayRefer(ctx context.Context, in *incoming) error {
	for _, id := range in.request.Blobs {
		may, err := s.store.MayReadBlob(ctx, id, in.device.ID)
		if err != nil {
			return err
		}
		if !may {
			return delivery.Refuse(delivery.CodeRefused, noBlob)
		}
	}
	return nil
}

// noBlob is one text for a blob that does not exist and for one that the asker
// may not read.
const noBlob = "a blob that the entry refers to does not exist, is not complete, or is not for this device"

// readBlob answers with bytes of a complete blob, by Range.
func (s *Server) readBlob(c *call) error {
	id, err := delivery.ParseBlobID(c.r.PathValue("blob"))
	if err != nil {
		return bad("the path names no blob")
	}
	may, err := s.store.MayReadBlob(c, id, c.device())
	if err != nil {
		return err
	}
	if !may {
		return delivery.ErrNotFound
	}
	m, err := s.store.Blob(c, id)
	if err != nil {
		return err
	}
	if !m.Complete() {
		return delivery.Refuse(delivery.CodeConflict, "the upload is not complete")
	}
	// Before the answer begins: a restored service may know a blob that its medium lacks.
	switch size, err := s.Blobs.Size(c, id); {
	case err != nil:
		return err
	case size < m.Size:
		return delivery.ErrNotFound
	}
	h := c.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Cache-Control", "private, immutable, max-age=31536000")
	h.Set("ETag", `"`+id.String()+`"`)
	r := &blobReader{ctx: c, s: s, id: id, size: m.Size}
	defer r.close()
	http.ServeContent(c.w, c.r, "", time.Time{}, r)
	if r.err != nil {
		s.failed("reading a blob", r.err)
	}
	return nil
}

// blobReader reads a blob from wherever it was sought to.
type blobReader struct {
	ctx    context.Context
	s      *Server
	id     delivery.BlobID
	size   int64
	offset int64
	open   io.ReadCloser
	err    error
}

func (r *blobReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.offset
	case io.SeekEnd:
		offset += r.size
	}
	if offset < 0 {
		return 0, errors.New("server: seek before the start of a blob")
	}
	if offset != r.offset {
		r.close()
	}
	r.offset = offset
	return offset, nil
}

func (r *blobReader) Read(p []byte) (int, error) {
	if r.offset >= r.size {
		return 0, io.EOF
	}
	if r.open == nil {
		if r.open, r.err = r.s.Blobs.Open(r.ctx, r.id, r.offset, r.size-r.offset); r.err != nil {
			return 0, r.err
		}
	}
	n, err := r.open.Read(p)
	r.offset += int64(n)
	r.s.metrics.blobOut.Add(float64(n))
	r.s.pressure.moved.Add(int64(n))
	return n, err
}

func (r *blobReader) close() {
	if r.open != nil {
		_ = r.open.Close() // it was only read
		r.open = nil
	}
}
