package phrase

import (
	"crypto/hmac"
	"crypto/sha512"
	"encoding/binary"
)

const (
	nodeSize     = 64
	ed25519Curve = "ed25519 seed"
	hardened     = 1 << 31
)

// node is a SLIP-0010 extended private key: private key ‖ chain code. Ed25519
// has hardened children only, so every index here is without the mark.
type node [nodeSize]byte

// newMaster returns the node m of a seed.
func newMaster(curve string, seed []byte) *node {
	mac := hmac.New(sha512.New, []byte(curve))
	mac.Write(seed)
	n := new(node)
	mac.Sum(n[:0])
	return n
}

// child returns the hardened child i' (i below 2^31).
func (n *node) child(i uint32) *node {
	mac := hmac.New(sha512.New, n[32:])
	var index [4]byte
	binary.BigEndian.PutUint32(index[:], i|hardened)
	mac.Write([]byte{0})
	mac.Write(n[:32])
	mac.Write(index[:])
	c := new(node)
	mac.Sum(c[:0])
	return c
}

func (n *node) private() []byte { return n[:32] }

func (n *node) wipe() { clear(n[:]) }
