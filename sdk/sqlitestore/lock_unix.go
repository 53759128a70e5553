//go:build unix

package sqlitestore

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

type fileLock struct{ f *os.File }

func lockFile(path string) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the profile: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrLocked
		}
		return nil, errors.Join(fmt.Errorf("lock the profile: %w", err), f.Close())
	}
	return &fileLock{f}, nil
}

func (l *fileLock) release() error { return l.f.Close() }
