package policy

import (
	"fmt"

	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/wire"
)

// ExtensionTypeInviter is the extension of a GroupInfo in which the committer shows
// its credential to whom it adds: inside the Welcome they learn who invites before
// they ask the service for anything, the tree included. It is of RFC 9420's private
// range (§17.3).
const ExtensionTypeInviter wire.ExtensionType = 0xf0c1

// Inviter is the extension with the committer's credential.
func Inviter(c wire.Credential) wire.Extensions {
	return wire.Extensions{{ExtensionType: ExtensionTypeInviter, ExtensionData: c.Identity}}
}

// InviterOf reads and verifies it (ErrCredential, ErrRole). signed checks that the
// GroupInfo which carries it is signed by the owner of a signature key; leaf is the
// one that the GroupInfo names as its signer. Whether the leaf is that device's only
// the tree tells.
func InviterOf(x wire.Extensions, leaf uint32, signed func(key []byte) error) (Member, error) {
	raw, found := x.Find(ExtensionTypeInviter)
	if !found {
		return Member{}, fmt.Errorf("%w: the invitation does not say who made it", ErrCredential)
	}
	u, err := identity.ParseCredential(raw)
	if err != nil {
		return Member{}, fmt.Errorf("%w: %w", ErrCredential, err)
	}
	c := wire.BasicCredential(raw)
	v, err := CheckCredential(&c, u.Attestation.DevicePubkey[:])
	if err != nil {
		return Member{}, err
	}
	if err := signed(u.Attestation.DevicePubkey[:]); err != nil {
		return Member{}, fmt.Errorf("%w: %w", ErrCredential, err)
	}
	checked := v.Unverified()
	return member(leaf, &checked), nil
}
