//go:build unix

package local

import (
	"fmt"
	"os"
	"syscall"
)

// ownFolder refuses a folder that is not this user's alone: whoever made it
// could listen in our place.
func ownFolder(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("a folder for sockets: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(stat.Uid) != os.Getuid() || info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is not a folder of this user alone: take it away", path)
	}
	return nil
}
