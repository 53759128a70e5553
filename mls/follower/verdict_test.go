package follower

import (
	"errors"
	"math"
	"testing"

	"github.com/askucher/compax-core/mls/wire"
)

// A commit names at most as many pre-shared keys as their 16-bit count can say:
// members cannot compute more, so that who follows the group must not go on with it.
func TestRefuseMorePSKsThanCount(t *testing.T) {
	w := grown(t, 2)
	list := func(n int) []wire.ProposalOrRef {
		out := make([]wire.ProposalOrRef, n)
		for i := range out {
			out[i] = values(w.psk())[0]
		}
		return out
	}
	if _, err := w.g.Draft(member(0), list(math.MaxUint16), w.options); err != nil {
		t.Errorf("65,535 pre-shared keys: %v", err)
	}
	if _, err := w.g.Draft(member(0), list(math.MaxUint16+1), w.options); !errors.Is(err, ErrProposalList) {
		t.Errorf("65,536 pre-shared keys: %v", err)
	}
}

// The kem_output of an external commit is a public key, and what members find wrong
// with it without any secret everybody finds.
func TestRefuseExternalInitOfLowOrder(t *testing.T) {
	w := grown(t, 2)
	init := w.externalInit()
	for name, output := range map[string][]byte{
		"zero":             make([]byte, 32),
		"one":              append([]byte{1}, make([]byte, 31)...),
		"the prime itself": append([]byte{0xed}, append(fill(0xff, 30), 0x7f)...),
	} {
		init.ExternalInit.KEMOutput = output
		if _, err := w.g.Draft(wire.Sender{SenderType: wire.SenderTypeNewMemberCommit}, values(init), w.options); !errors.Is(err, ErrProposal) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func fill(b byte, n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = b
	}
	return out
}
