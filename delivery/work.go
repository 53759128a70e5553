package delivery

import (
	"crypto/sha256"
	"math/bits"

	"github.com/askucher/compax-core/identity"
)

// WorkBits is what an answer to a [Work] is worth: how many leading zero bits
// the SHA-256 of seed ‖ device id ‖ SHA-256 of the entry ‖ nonce has. So an
// answer is good for one entry of one device. The nonce has 1 to
// [MaxWorkNonce] bytes and goes as hex into [HeaderWork].
func WorkBits(seed []byte, device identity.DeviceID, entry [32]byte, nonce []byte) int {
	b := make([]byte, 0, 96+len(seed))
	b = append(append(append(append(b, seed...), device[:]...), entry[:]...), nonce...)
	n := 0
	for _, v := range sha256.Sum256(b) {
		n += bits.LeadingZeros8(v)
		if v != 0 {
			break
		}
	}
	return n
}

// MaxWorkNonce bounds a nonce in bytes.
const MaxWorkNonce = 32
