// Package hpke448 makes the cipher suites 4 and 6 of RFC 9420 usable by
// members: it adds X448 to package hpke, and Ed448 by importing suite448.
// Import it for its effect:
//
//	import _ "github.com/askucher/compax-core/mls/hpke/hpke448"
package hpke448

import (
	"github.com/cloudflare/circl/dh/x448"

	"github.com/askucher/compax-core/mls/hpke"
	_ "github.com/askucher/compax-core/mls/suite/suite448" // Ed448
)

func init() { hpke.RegisterX448(group{}) }

// group is X448 (RFC 7748 §5).
type group struct{}

func (group) SecretSize() int { return x448.Size }

func (group) Public(secret []byte) ([]byte, error) {
	if len(secret) != x448.Size {
		return nil, hpke.ErrKey
	}
	var public x448.Key
	x448.KeyGen(&public, (*x448.Key)(secret))
	return public[:], nil
}

func (group) DH(secret, public []byte) ([]byte, error) {
	if len(secret) != x448.Size || len(public) != x448.Size {
		return nil, hpke.ErrKey
	}
	var shared x448.Key
	if !x448.Shared(&shared, (*x448.Key)(secret), (*x448.Key)(public)) {
		return nil, hpke.ErrKey
	}
	return shared[:], nil
}

func (group) Derive(expand func(label string, info []byte, length int) []byte) ([]byte, error) {
	secret := expand("sk", nil, x448.Size)
	secret[0] &= 252 // RFC 7748 §5
	secret[55] |= 128
	return secret, nil
}
