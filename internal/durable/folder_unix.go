//go:build unix

package durable

import (
	"errors"
	"os"
)

// syncFolder writes a folder's names through to the medium.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
