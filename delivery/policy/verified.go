package policy

import (
	"crypto/sha256"
	"sync"

	"github.com/askucher/compax-core/identity"
)

// rememberedRevocations is how many revocations each half of the cache holds:
// some 200 bytes each, 6 MiB in all when both halves are full.
const rememberedRevocations = 1 << 14

// verified remembers the revocations whose signature was verified. A room's
// dictionary holds up to [maxRevocations] of them and is parsed anew with every
// commit that touches it; each is verified once.
var verified revocationCache

// revocationCache holds what was verified, by the hash of its bytes, signature
// included. When the younger half is full it becomes the older one, which is
// forgotten as a whole: memory is bounded, and what is in use stays.
type revocationCache struct {
	mu           sync.Mutex // guards both
	young, older map[[32]byte]identity.Revocation
}

func (c *revocationCache) find(key [32]byte) (identity.Revocation, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, found := c.young[key]; found {
		return r, true
	}
	r, found := c.older[key]
	if found {
		c.put(key, r)
	}
	return r, found
}

// put remembers one. c.mu is held.
func (c *revocationCache) put(key [32]byte, r identity.Revocation) {
	if c.young == nil || len(c.young) >= rememberedRevocations {
		c.young, c.older = map[[32]byte]identity.Revocation{}, c.young
	}
	c.young[key] = r
}

// verify parses a revocation and verifies its signature, unless it did before. A
// refusal is not remembered.
func (c *revocationCache) verify(raw []byte) (identity.Revocation, error) {
	key := sha256.Sum256(raw)
	if r, found := c.find(key); found {
		return r, nil
	}
	u, err := identity.ParseRevocation(raw)
	if err != nil {
		return identity.Revocation{}, err
	}
	r, err := u.Verify()
	if err != nil {
		return identity.Revocation{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(key, r)
	return r, nil
}
