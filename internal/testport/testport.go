// Package testport chooses addresses for servers that a test stops and starts
// again at the same place. A port that the kernel chose (port 0) is free for
// everybody while its server is down, and the kernel soon gives it to another
// test: ports from here lie below those that it gives away.
//
// Only tests and test-support packages may import this package. It never keeps a
// port open. Start reading at Address.
package testport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports that no system gives away by itself: Linux begins at 32768, the others
// at 49152; below 10000 live the services that people know.
const (
	lowest  = 10_000
	highest = 32_767
)

var (
	mu    sync.Mutex // guards given
	given = map[int]bool{}
)

// Address returns host and port of a loopback address on which nothing listens,
// and which no later call in this process returns.
func Address() (string, error) {
	mu.Lock()
	defer mu.Unlock()
	for range 1000 {
		port := lowest + rand.IntN(highest-lowest+1)
		if given[port] {
			continue
		}
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue // somebody is there
		}
		if err := l.Close(); err != nil {
			return "", fmt.Errorf("testport: %w", err)
		}
		given[port] = true
		return address, nil
	}
	return "", fmt.Errorf("testport: no port between %d and %d is free", lowest, highest)
}
