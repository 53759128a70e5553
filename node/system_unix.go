//go:build unix

package node

import (
	"errors"
	"os"
)

// syncDir writes a directory's names through to the medium.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
