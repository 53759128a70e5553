package sim

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Clock is the time of a world. It moves only when told.
type Clock struct {
	mu  sync.Mutex // guards now
	now time.Time
}

// NewClock starts at noon of some day.
func NewClock() *Clock { return &Clock{now: time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)} }

// Now is the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Add moves it.
func (c *Clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// bytes is a seeded source of random bytes for several users at once.
type bytes32 struct {
	mu     sync.Mutex // guards source
	source *rand.ChaCha8
}

func newBytes(seed uint64, label byte) *bytes32 {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	key[8] = label
	return &bytes32{source: rand.NewChaCha8(key)}
}

// Read implements io.Reader.
func (b *bytes32) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.source.Read(p)
}
