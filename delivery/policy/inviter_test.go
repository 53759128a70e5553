package policy

import (
	"errors"
	"testing"

	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/wire"
)

// TestInviterIsProven: who invites is who signed the GroupInfo, by an attested device
// of role 0; an invitation that shows somebody else's credential, or none, is nobody's.
func TestInviterIsProven(t *testing.T) {
	ada := newPerson(1)
	d := ada.device(t, 11)
	key := d.leaf().SignatureKey
	signedBy := func(want []byte) func([]byte) error {
		return func(key []byte) error {
			if string(key) != string(want) {
				return errors.New("another key")
			}
			return nil
		}
	}
	m, err := InviterOf(Inviter(wire.BasicCredential(d.cred.Bytes())), 3, signedBy(key))
	if err != nil || m.Identity != ada.id || m.Leaf != 3 || m.Device != d.cred.DeviceID() {
		t.Errorf("%+v, %v", m, err)
	}
	forged := append([]byte(nil), d.cred.Bytes()...)
	forged[len(forged)-1] ^= 1
	signer := ada.device(t, 12, func(x *identity.Attestation) { x.Role = identity.RoleBotSigner })
	for name, c := range map[string]struct {
		x    wire.Extensions
		key  []byte
		want error
	}{
		"none":              {nil, key, ErrCredential},
		"cut":               {Inviter(wire.BasicCredential(d.cred.Bytes()[:60])), key, ErrCredential},
		"forged":            {Inviter(wire.BasicCredential(forged)), key, ErrCredential},
		"somebody else's":   {Inviter(wire.BasicCredential(d.cred.Bytes())), newPerson(2).device(t, 21).leaf().SignatureKey, ErrCredential},
		"a request signers": {Inviter(wire.BasicCredential(signer.cred.Bytes())), signer.leaf().SignatureKey, ErrRole},
	} {
		if _, err := InviterOf(c.x, 0, signedBy(c.key)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
