//go:build linux

package scripts

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// maxMemory is what a server and a client may take at most, whatever the size of
// the files that go through them, in bytes.
const maxMemory = 200 << 20

// peak watches how much memory a process has had at most: VmHWM of /proc, which
// only rises, read again and again until the process has ended.
type peak struct {
	name string
	end  chan struct{}
	done sync.WaitGroup

	mu    sync.Mutex // guards bytes
	bytes int64
}

// watchPeriod is how long the end of a process may be missed.
const watchPeriod = 10 * time.Millisecond

func watch(name string, pid int) *peak {
	p := &peak{name: name, end: make(chan struct{})}
	p.done.Go(func() {
		tick := time.NewTicker(watchPeriod)
		defer tick.Stop()
		for {
			if n, err := highWater(pid); err == nil { // it fails when the process has ended
				p.mu.Lock()
				p.bytes = max(p.bytes, n)
				p.mu.Unlock()
			}
			select {
			case <-p.end:
				return
			case <-tick.C:
			}
		}
	})
	return p
}

// wants ends the watching and holds the peak against maxMemory.
func (p *peak) wants(t *testing.T) {
	t.Helper()
	close(p.end)
	p.done.Wait()
	t.Logf("%s: at most %d MiB of memory", p.name, p.bytes>>20)
	if p.bytes == 0 {
		t.Errorf("the memory of %s was never read", p.name)
	}
	if p.bytes > maxMemory {
		t.Errorf("%s took %d MiB of memory, which may be %d", p.name, p.bytes>>20, maxMemory>>20)
	}
}

// highWater is VmHWM of a process, in bytes.
func highWater(pid int) (int64, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		value, found := strings.CutPrefix(lines.Text(), "VmHWM:")
		if !found {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		return kib << 10, err
	}
	return 0, fmt.Errorf("process %d says no VmHWM", pid)
}
