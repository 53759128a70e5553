package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/askucher/compax-core/sdk"
)

// leftFile lies in a profile's folder between two commands: the session of the first
// one, for the next. Whoever opens the profile removes it, and whoever closes it makes
// a new one, so that a profile that is in use has none to copy.
const leftFile = "session"

// errNoPlace: nothing tells this place from a copy of it, so nothing is left here.
var errNoPlace = errors.New("a session cannot be bound to this folder")

// maxLeft bounds what is read of it, in bytes.
const maxLeft = 4096

// takeLeft takes what the last process on a profile left. The caller holds the store's
// lock. When anything is not as it has to be, nothing was left: the next step is a
// login, and no word to anybody.
func takeLeft(dir string) sdk.Left {
	path := filepath.Join(dir, leftFile)
	info, err := os.Lstat(path)
	if err != nil {
		return sdk.Left{}
	}
	var left sdk.Left
	if info.Mode() == 0o600 { // a file, and nobody else's to read
		left, err = readLeft(dir, path)
	}
	if gone := os.Remove(path); err != nil || gone != nil { // what stays there could be used twice
		return sdk.Left{}
	}
	return left
}

func readLeft(dir, path string) (left sdk.Left, err error) {
	f, err := os.Open(path)
	if err != nil {
		return left, err
	}
	defer func() { _ = f.Close() }() // it was read: nothing to learn from closing
	if left.Place, err = leftAt(dir, f); err != nil {
		return left, err
	}
	left.Sealed, err = io.ReadAll(io.LimitReader(f, maxLeft))
	return left, err
}

// leave writes the engine's session down for the next process. The caller still holds
// the store's lock.
func leave(dir string, e *sdk.Engine) (err error) {
	path := filepath.Join(dir, leftFile)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	place, err := leftAt(dir, f)
	var sealed []byte
	if err == nil {
		sealed, err = e.LeaveSession(place)
	}
	if err == nil && sealed != nil {
		_, err = f.Write(sealed) // not written through: what a loss of power takes away, a login gives
	}
	if err = errors.Join(err, f.Close()); err != nil || sealed == nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// openProfile is an engine and what it leaves when it is closed.
type openProfile struct {
	*sdk.Engine
	dir string
}

// Close leaves the session to the next process, and closes the engine.
func (p openProfile) Close() error {
	_ = leave(p.dir, p.Engine) // who finds nothing logs in
	return p.Engine.Close()
}
