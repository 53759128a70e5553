package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

func free(dir string) (int64, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var n uint64
	if err := windows.GetDiskFreeSpaceEx(name, &n, nil, nil); err != nil {
		return 0, err
	}
	return int64(n), nil
}

func noSpace(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}

// syncDir does nothing: NTFS journals names, and a directory cannot be flushed.
func syncDir(*os.File) error { return nil }
