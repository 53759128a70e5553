//go:build unix

package main

import (
	"os"
	"syscall"
)

// placeOf is the end of a regular file; ok is false for anything else.
func placeOf(f *os.File) (p place, ok bool) {
	if f == nil {
		return p, false
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return p, false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return p, false
	}
	return place{device: uint64(s.Dev), file: s.Ino, offset: uint64(info.Size())}, true
}
