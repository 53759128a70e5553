package local

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
	_ "image/gif"  // sizes of pictures
	_ "image/jpeg" // "
	_ "image/png"  // "
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/askucher/compax-core/content"
	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/sdk"
)

func sentAs(s sdk.Sent, err error) (Sent, error) {
	return Sent{Chat: s.Chat, Seq: s.Seq, Epoch: s.Epoch, ID: s.ID.String()}, err
}

func (e engine) Send(ctx context.Context, r SendRequest, f func(Progress) error) (Sent, error) {
	d := sdk.Draft{Text: r.Text, Key: r.Key}
	if r.Reply != 0 {
		l, err := e.Message(ctx, r.Chat, r.Reply)
		if err != nil {
			return Sent{}, err
		}
		d.ReplyTo = l.ID
	}
	if r.File != "" {
		file, err := describe(r.Chat, r.File)
		if err != nil {
			return Sent{}, err
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		file.Progress = func(done, total int64) {
			if err := f(Progress{done, total}); err != nil {
				cancel(err)
			}
		}
		d.File = &file
		return sentAs(e.Engine.Send(ctx, r.Chat, d))
	}
	return sentAs(e.Engine.Send(ctx, r.Chat, d))
}

// sniffed is how much of a file tells its type.
const sniffed = 512

// describe looks at a file: its name, type and size, and of a picture how large
// it is. Its key stands for this file, in this state, on the way to this chat.
func describe(chat delivery.RoomID, path string) (sdk.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return sdk.File{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return sdk.File{}, err
	}
	if !info.Mode().IsRegular() {
		return sdk.File{}, &fs.PathError{Op: "send", Path: path, Err: errors.New("is no file")}
	}
	state := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d\x00%d", chat, path, info.Size(), info.ModTime().UnixNano()))
	out := sdk.File{
		Name: filepath.Base(path), Type: mime.TypeByExtension(filepath.Ext(path)), Size: info.Size(), Key: hex.EncodeToString(state[:16]),
		Open: func() (io.ReadCloser, error) { return os.Open(path) },
	}
	head := bufio.NewReaderSize(f, 1<<16)
	if out.Type == "" {
		begin, err := head.Peek(sniffed)
		if err != nil && !errors.Is(err, io.EOF) {
			return out, err
		}
		out.Type = http.DetectContentType(begin)
	}
	if strings.HasPrefix(out.Type, "image/") {
		if picture, _, err := image.DecodeConfig(head); err == nil { // else it goes as a file
			out.Info = content.FileInfo{Kind: "photo", Width: uint32(picture.Width), Height: uint32(picture.Height)}
		}
	}
	return out, nil
}

func (e engine) Edit(ctx context.Context, r EditRequest) (Sent, error) {
	return sentAs(e.Once(r.Key).Edit(ctx, r.Chat, r.Seq, r.Text))
}

func (e engine) Delete(ctx context.Context, r DeleteRequest) (Sent, error) {
	return sentAs(e.Once(r.Key).Delete(ctx, r.Chat, r.Seq))
}

func (e engine) React(ctx context.Context, r ReactRequest) (Sent, error) {
	if r.Remove {
		r.Emoji = ""
	}
	return sentAs(e.Once(r.Key).React(ctx, r.Chat, r.Seq, r.Emoji))
}

// Get downloads ciphertext into a hidden file beside the path, going on with what
// an interrupted one left, and puts the plain file into place when all of it has
// opened.
func (e engine) Get(ctx context.Context, r GetRequest, f func(Progress) error) (File, error) {
	a, err := e.Attachment(ctx, r.Chat, r.Seq)
	if err != nil {
		return File{}, err
	}
	blob := sha256.Sum256([]byte(a.URL))
	part := filepath.Join(filepath.Dir(r.Path), fmt.Sprintf(".%s.%x.part", filepath.Base(r.Path), blob[:6]))
	if err := e.download(ctx, a, part, f); err != nil {
		return File{}, err
	}
	if err := open(a, part, r.Path); err != nil {
		if errors.Is(err, content.ErrFile) { // what is there is of no use
			err = errors.Join(err, os.Remove(part))
		}
		return File{}, err
	}
	return File{Name: a.Filename, Type: a.ContentType, Size: a.Size, Path: r.Path}, os.Remove(part)
}

func (e engine) download(ctx context.Context, a content.Attachment, part string, f func(Progress) error) (err error) {
	file, err := os.OpenFile(part, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	total, err := a.SealedSize(a.Size)
	if err != nil {
		return err
	}
	have, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if have > int64(total) { // not ours
		if err := file.Truncate(0); err != nil {
			return err
		}
		if have, err = file.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	return e.Download(ctx, a, have, file, func(done, total int64) {
		if err := f(Progress{done, total}); err != nil {
			cancel(err)
		}
	})
}

// open decrypts part to a file beside path and renames it when it is whole and its
// bytes are durable. Its name need not be: what a crash takes can be got again.
func open(a content.Attachment, part, path string) (err error) {
	src, err := os.Open(part)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = dst.Close() // closed already when renaming failed
			err = errors.Join(err, os.Remove(dst.Name()))
		}
	}()
	out := bufio.NewWriterSize(dst, 1<<18)
	if err := a.Open(out, src, a.Size, content.NewAESGCM); err != nil {
		return err
	}
	if err := errors.Join(out.Flush(), dst.Sync()); err != nil {
		return err
	}
	if err := dst.Close(); err != nil {
		return err
	}
	return os.Rename(dst.Name(), path)
}
