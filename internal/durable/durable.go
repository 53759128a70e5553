// Package durable writes small files that must be whole or not there, whatever
// ends the machine: keys and tokens, of which half a file is a loss and not a
// delay.
//
// It never shows a file under its name before all of it is on the medium, and
// never writes through a link that stands at the name. Begin at [Create].
package durable

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Create puts data into place at path, readable by this user alone: written to a
// hidden file beside it, written through, renamed, and the folder's names written
// through. After an error the name is as it was before, except when the last of
// these failed: then the file is there and may not outlive a loss of power.
//
// What stands at path is replaced. A caller that must not replace anything looks
// first, with a lock that keeps others out.
func Create(path string, data []byte) error { return create(onDisk, path, data) }

// steps are what a file goes through; tests let each of them fail.
type steps struct {
	write  func(f *os.File, data []byte) error
	sync   func(f *os.File) error
	rename func(from, to string) error
	folder func(dir string) error
}

var onDisk = steps{
	write:  func(f *os.File, data []byte) error { _, err := f.Write(data); return err },
	sync:   (*os.File).Sync,
	rename: os.Rename,
	folder: syncFolder,
}

func create(s steps, path string, data []byte) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	err = s.write(f, data)
	if err == nil {
		err = s.sync(f)
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = s.rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := s.folder(dir); err != nil {
		return fmt.Errorf("write the names in %s through to the medium: %w", dir, err)
	}
	return nil
}
