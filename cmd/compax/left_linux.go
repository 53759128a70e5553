package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// leftAt names the place of a file in a profile's folder: this machine, since it was
// started, the folder's path and inode, and the file's inode and the time at which it
// was made. A copy of the folder has another inode and another path, one of the whole
// machine was started at another time, and a file that was put back over this one was
// made at another.
func leftAt(dir string, f *os.File) ([]byte, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, err
	}
	path, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	var folder, file unix.Statx_t
	const mask = unix.STATX_INO | unix.STATX_BTIME
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO, &folder); err != nil {
		return nil, err
	}
	if err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, mask, &file); err != nil {
		return nil, err
	}
	if file.Mask&mask != mask {
		return nil, fmt.Errorf("%w: the file system does not say when a file was made", errNoPlace)
	}
	var place []byte
	for _, text := range []string{host(), string(boot), path} {
		place = binary.BigEndian.AppendUint32(place, uint32(len(text))) //nolint:gosec // short
		place = append(place, text...)
	}
	for _, n := range []uint64{
		device(folder), folder.Ino, device(file), file.Ino,
		uint64(file.Btime.Sec), uint64(file.Btime.Nsec), //nolint:gosec // the bits are what counts
	} {
		place = binary.BigEndian.AppendUint64(place, n)
	}
	return place, nil
}

func device(s unix.Statx_t) uint64 { return uint64(s.Dev_major)<<32 | uint64(s.Dev_minor) }
