package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Config says how a profile is opened.
type Config struct {
	// Dir is the profile's folder, which only its user may enter.
	Dir string
	// Own opens the store and what stands on it. An error that Busy knows means
	// that another process holds it.
	Own  func(context.Context) (Profile, io.Closer, error)
	Busy func(error) bool
	// Explain gives an error the form in which it is shown.
	Explain func(error) *Error
	// Patience is how long to wait for a process that holds the store and does not
	// answer, or says nothing in the middle of a call; 0 means 10 s. One that starts or
	// ends takes milliseconds, and one that works says so all the time.
	Patience time.Duration
}

// Open opens a profile, or finds the process that has it open (ErrBusy). What is
// returned moves between the two by itself.
func Open(ctx context.Context, c Config) (*Handle, error) {
	if c.Patience == 0 {
		c.Patience = 10 * time.Second
	}
	h := &Handle{config: c, turn: make(chan struct{}, 1)}
	own, conn, err := h.reach(ctx)
	if err != nil {
		return nil, err
	}
	if own == nil {
		_ = conn.Close() // it answers: enough
	}
	return h, nil
}

// Owns reports whether this process has the store open.
func (h *Handle) Owns() bool {
	h.turn <- struct{}{}
	defer func() { <-h.turn }()
	return h.own != nil
}

// Close ends this process's part. When it owns the store it first finishes what
// other processes have asked for, or leaves it to them.
func (h *Handle) Close() error {
	h.turn <- struct{}{}
	defer func() { <-h.turn }()
	if h.own == nil {
		return nil
	}
	err := h.own.close()
	if closer := h.own.closer; closer != nil {
		err = errors.Join(err, closer.Close())
	}
	h.own = nil
	return err
}

// reach gives the store of this process, or a connection to the one that has it.
func (h *Handle) reach(ctx context.Context) (*owner, net.Conn, error) {
	select {
	case h.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	defer func() { <-h.turn }()
	if h.own != nil {
		return h.own, nil, nil
	}
	path, err := socketPath(h.config.Dir)
	if err != nil {
		return nil, nil, err
	}
	deadline := time.Now().Add(h.config.Patience)
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		conn, dialErr := (&net.Dialer{}).DialContext(ctx, "unix", path)
		if dialErr == nil {
			return nil, conn, nil
		}
		p, closer, ownErr := h.config.Own(ctx)
		if ownErr == nil {
			h.own, err = own(path, p, closer, h.config.Explain)
			return h.own, nil, err
		}
		switch {
		case ctx.Err() != nil:
			return nil, nil, ctx.Err()
		case !h.config.Busy(ownErr):
			return nil, nil, ownErr
		case !gone(dialErr):
			return nil, nil, fmt.Errorf("%w: %w", ErrBusy, dialErr)
		case time.Now().After(deadline):
			return nil, nil, fmt.Errorf("%w (%w)", ErrBusy, ownErr)
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
}

// own serves a profile that this process has opened. It holds the store's lock,
// so a socket that is there was left behind.
func own(path string, p Profile, closer io.Closer, explain func(error) *Error) (*owner, error) {
	fail := func(err error) (*owner, error) {
		return nil, errors.Join(fmt.Errorf("the profile's socket: %w", err), closer.Close())
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail(err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return fail(err)
	}
	// The folder keeps others out in the moment before this.
	if err := os.Chmod(path, 0o600); err != nil {
		return fail(errors.Join(err, l.Close()))
	}
	o := serve(l, p, explain)
	o.closer = closer
	return o, nil
}

// gone reports whether nobody listens at a socket: no file, or a stale one.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EAGAIN)
}

// maxSocketPath is what every Unix has room for in a socket's address.
const maxSocketPath = 100

// socketPath is where the owner of a profile listens: in its folder, or, when
// that path is too long for a socket, in a folder of this user alone among the
// temporary files, under a name made of it.
func socketPath(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("the profile's folder: %w", err)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	path := filepath.Join(dir, "socket")
	if len(path) <= maxSocketPath {
		return path, nil
	}
	base := filepath.Join(os.TempDir(), fmt.Sprintf("compax-%d", os.Getuid()))
	if err := os.Mkdir(base, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("a folder for sockets: %w", err)
	}
	if err := ownFolder(base); err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(base, hex.EncodeToString(sum[:12])), nil
}
