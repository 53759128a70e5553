package sdk

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// hybridName is how the suite whose code point is for private use is named by
// people.
const hybridName = "hybrid"

// Suites are the cipher suites that rooms can be made with (RFC 9420 §17.1 and a
// hybrid post-quantum one), the usual one first.
func Suites() []wire.CipherSuite { return slices.Clone(policy.Suites) }

// SuiteName is a suite's name in the registry.
func SuiteName(id wire.CipherSuite) string {
	s, err := suite.Lookup(id)
	if err != nil {
		return fmt.Sprintf("suite %#04x", uint16(id))
	}
	return s.String()
}

// ParseSuite reads how a person names a suite of [Suites]: its number, "hybrid", or
// its name in the registry. Empty text is the usual suite (ErrSuite).
func ParseSuite(text string) (wire.CipherSuite, error) {
	if text == "" {
		return policy.Suites[0], nil
	}
	for _, id := range policy.Suites {
		if text == strconv.Itoa(int(id)) || strings.EqualFold(text, SuiteName(id)) ||
			strings.EqualFold(text, hybridName) && id == suite.MLKEM768X25519AES256GCMSHA384Ed25519 {
			return id, nil
		}
	}
	return 0, fmt.Errorf("%w: %q is none of 1, 3 and hybrid", ErrSuite, text)
}
