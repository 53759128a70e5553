package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/client"
)

// File is a file to be sent. Memory does not grow with its size.
type File struct {
	Name string
	Type string // media type
	Size int64  // bytes
	// Open gives the file from its beginning; it may be called several times.
	Open func() (io.ReadCloser, error)
	// Key names the file and its state, so that an interrupted upload goes on where
	// it stopped; empty = it begins anew.
	Key      string
	Info     content.FileInfo
	Progress func(done, total int64) // bytes of ciphertext; nil = nobody looks
}

// upload is an upload that has begun.
type upload struct {
	Blob     delivery.BlobID  `json:"blob"`
	External content.External `json:"external"`
	Key      []byte           `json:"key"`
}

// upload encrypts a file while it uploads, and goes on after an interruption.
func (e *Engine) upload(ctx context.Context, f *File) (content.Attachment, delivery.BlobID, error) {
	u, err := e.beginUpload(ctx, f)
	if err != nil {
		return content.Attachment{}, u.Blob, err
	}
	size, err := u.External.SealedSize(uint64(f.Size))
	if err != nil {
		return content.Attachment{}, u.Blob, err
	}
	var sealed content.External
	for try := range maxTries {
		state, err := e.client.BlobState(ctx, u.Blob)
		if err != nil {
			return content.Attachment{}, u.Blob, e.fail(ctx, err)
		}
		sealed, err = e.stream(ctx, f, u, state.Received, int64(size))
		if err == nil {
			break
		}
		if !isNet(err) && delivery.CodeOf(err) != delivery.CodeConflict || ctx.Err() != nil || try == maxTries-1 {
			return content.Attachment{}, u.Blob, err
		}
		if err := e.pause(ctx, try, err); err != nil {
			return content.Attachment{}, u.Blob, err
		}
	}
	if f.Key != "" {
		if err := e.Store.Update(ctx, func(tx Tx) error { return tx.Delete(TableUpload, f.Key) }); err != nil {
			return content.Attachment{}, u.Blob, err
		}
	}
	sealed.URL = "mimi://" + e.account.Domain + "/b/" + u.Blob.String()
	sealed.ContentType, sealed.Filename = f.Type, f.Name
	return content.Attachment{External: sealed, Disposition: content.DispositionAttachment, Info: f.Info}, u.Blob, nil
}

func (e *Engine) beginUpload(ctx context.Context, f *File) (upload, error) {
	var u upload
	if f.Key != "" {
		found := false
		err := e.Store.View(ctx, func(tx Tx) (err error) {
			found, err = get(tx, TableUpload, f.Key, &u)
			return err
		})
		if err != nil {
			return u, err
		}
		if found {
			u.External.Key = u.Key
			_, err := e.client.BlobState(ctx, u.Blob)
			if err == nil {
				return u, nil
			}
			if delivery.CodeOf(err) != delivery.CodeNotFound {
				return u, e.fail(ctx, err)
			}
		}
	}
	x, err := content.NewFileKey(f.Size, e.Random)
	if err != nil {
		return u, err
	}
	size, err := x.SealedSize(uint64(f.Size))
	if err != nil {
		return u, err
	}
	v, err := e.client.BeginBlob(ctx, int64(size))
	if err != nil {
		return u, e.fail(ctx, err)
	}
	u = upload{Blob: v.ID, External: x, Key: x.Key}
	if f.Key == "" {
		return u, nil
	}
	return u, e.Store.Update(ctx, func(tx Tx) error { return put(tx, TableUpload, f.Key, u) })
}

// stream seals the file from its beginning and uploads what lies after offset.
func (e *Engine) stream(ctx context.Context, f *File, u upload, offset, size int64) (sealed content.External, err error) {
	src, err := f.Open()
	if err != nil {
		return sealed, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	r, w := io.Pipe()
	result := make(chan error, 1)
	go func() { // ends when everything is read or r is closed
		var err error
		sealed, err = u.External.Seal(&skipWriter{w: w, skip: offset}, io.LimitReader(src, f.Size+1), content.NewAESGCM)
		result <- err
		_ = w.CloseWithError(err) // never fails
	}()
	if size > offset {
		err = e.client.UploadBlob(ctx, u.Blob, offset, &progress{r: r, done: offset, total: size, report: f.Progress}, size-offset)
	} else {
		_, err = io.Copy(io.Discard, r)
	}
	_ = r.CloseWithError(io.ErrClosedPipe) // never fails
	sealErr := <-result
	if err != nil {
		return sealed, err
	}
	if sealErr == nil && int64(sealed.Size) != f.Size {
		sealErr = fmt.Errorf("%w: its size changed while it was sent", content.ErrFile)
	}
	return sealed, sealErr
}

// skipWriter drops what the service has already.
type skipWriter struct {
	w    io.Writer
	skip int64
}

func (s *skipWriter) Write(p []byte) (int, error) {
	n := int(min(int64(len(p)), s.skip))
	s.skip -= int64(n)
	if n == len(p) {
		return n, nil
	}
	m, err := s.w.Write(p[n:])
	return n + m, err
}

// progress reports what is read.
type progress struct {
	r           io.Reader
	done, total int64
	report      func(done, total int64)
}

func (p *progress) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.done += int64(n)
	if p.report != nil && n > 0 {
		p.report(p.done, p.total)
	}
	return n, err
}

// Attachment gives the first file of a message (ErrNoRoom, ErrNoMessage,
// ErrNotMessage, ErrNoFile).
func (e *Engine) Attachment(ctx context.Context, id delivery.RoomID, seq uint64) (content.Attachment, error) {
	l, err := e.Message(ctx, id, seq)
	if err != nil {
		return content.Attachment{}, err
	}
	if l.Content == nil {
		return content.Attachment{}, ErrNoFile
	}
	m, err := content.Decode(l.Content)
	if err != nil {
		return content.Attachment{}, err
	}
	for _, i := range m.Items() {
		if a, ok := i.(content.Attachment); ok {
			return a, nil
		}
	}
	return content.Attachment{}, ErrNoFile
}

// Download copies the ciphertext of an attachment from an offset on to w, and
// goes on by itself after a broken connection. External.Open decrypts it.
func (e *Engine) Download(ctx context.Context, a content.Attachment, offset int64, w io.Writer, report func(done, total int64)) error {
	id, err := delivery.ParseBlobID(a.URL[strings.LastIndexByte(a.URL, '/')+1:])
	if err != nil {
		return err
	}
	total, err := a.SealedSize(a.Size)
	if err != nil {
		return err
	}
	for try := 0; offset < int64(total); try++ {
		n, err := e.downloadFrom(ctx, id, offset, int64(total), w, report)
		offset += n
		if n > 0 {
			try = 0
		}
		if err == nil && offset < int64(total) {
			err = fmt.Errorf("%w: the file is shorter than it should be", client.ErrOffline)
		}
		if err != nil && (!isNet(err) || ctx.Err() != nil || try >= 5) {
			return e.fail(ctx, err)
		}
		if err != nil {
			if err := e.pause(ctx, try, err); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *Engine) downloadFrom(ctx context.Context, id delivery.BlobID, offset, total int64, w io.Writer, report func(done, total int64)) (int64, error) {
	body, err := e.client.DownloadBlob(ctx, id, offset)
	if err != nil {
		return 0, err
	}
	defer func() { _ = body.Close() }() // read whole or given up
	src := &progress{r: io.LimitReader(body, total-offset), done: offset, total: total, report: report}
	out := &writer{w: w}
	n, err := io.CopyBuffer(out, src, make([]byte, 128<<10))
	if err != nil && out.err == nil {
		err = fmt.Errorf("%w: %w", client.ErrOffline, err)
	}
	return n, err
}

// writer remembers that writing failed, which no retry mends.
type writer struct {
	w   io.Writer
	err error
}

func (w *writer) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	if err != nil {
		w.err = err
	}
	return n, err
}
