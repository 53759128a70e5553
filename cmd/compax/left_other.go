//go:build !linux

package main

import (
	"fmt"
	"os"
)

// leftAt names no place here: every process logs in.
func leftAt(string, *os.File) ([]byte, error) {
	return nil, fmt.Errorf("%w: not known how on this system", errNoPlace)
}
