package sqlitestore

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

type fileLock struct{ f *os.File }

func lockFile(path string) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the profile: %w", err)
	}
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped))
	if err != nil {
		if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
			err = ErrLocked
		}
		return nil, errors.Join(fmt.Errorf("lock the profile: %w", err), f.Close())
	}
	return &fileLock{f}, nil
}

func (l *fileLock) release() error { return l.f.Close() }
