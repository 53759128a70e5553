package mls

import (
	"fmt"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// Invitation is what a Welcome says by itself, before the tree is known: what the
// group is and which leaf's owner made it. Nothing of it is verified until
// [Invitation.SignedBy] is, and whether that key is the leaf's only the tree tells.
type Invitation struct {
	// Context is the GroupContext of the epoch that the Welcome leads to.
	Context wire.GroupContext
	// Extensions are those of the GroupInfo.
	Extensions wire.Extensions
	// Signer is the leaf that signed the GroupInfo: the committer's.
	Signer uint32

	cs   *suite.Suite
	info *wire.GroupInfo
}

// SignedBy checks that the GroupInfo is signed by the owner of a key, in the form of a
// leaf's signature key. The error wraps ErrGroupInfo.
func (i *Invitation) SignedBy(key []byte) error {
	if !i.cs.VerifyWithLabel(key, "GroupInfoTBS", wire.Marshal((*wire.GroupInfoTBS)(i.info)), i.info.Signature) {
		return fmt.Errorf("%w: it is not signed by this key", ErrGroupInfo)
	}
	return nil
}

// Peek opens a Welcome as far as that goes without the tree (RFC 9420 Section
// 12.4.3.1, up to the GroupInfo), and uses nothing up. Errors: ErrMalformed,
// ErrWireFormat, ErrNotForUs, ErrDecrypt, ErrMissingPSK.
func (c *Config) Peek(p JoinParams) (*Invitation, error) {
	w, err := c.openWelcome(p)
	if err != nil {
		return nil, err
	}
	defer w.wipe()
	return &Invitation{Context: w.info.GroupContext, Extensions: w.info.Extensions, Signer: w.info.Signer, cs: w.cs, info: w.info}, nil
}

// openedWelcome is a Welcome opened up to its GroupInfo, which is not verified.
type openedWelcome struct {
	cs      *suite.Suite
	bundle  *KeyPackageBundle
	secrets *wire.GroupSecrets
	from    *wire.PreSharedKeyID // the group that this one follows, if any
	member  Secret
	info    *wire.GroupInfo
}

func (w *openedWelcome) wipe() {
	wipeGroupSecrets(w.secrets)
	w.member.Wipe()
}

// openWelcome opens the group secrets and by them the GroupInfo.
func (c *Config) openWelcome(p JoinParams) (*openedWelcome, error) {
	var m wire.MLSMessage
	if err := wire.Unmarshal(p.Welcome, &m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if m.WireFormat != wire.WireFormatWelcome {
		return nil, fmt.Errorf("%w: not a welcome", ErrWireFormat)
	}
	cs, err := suite.Lookup(m.Welcome.CipherSuite)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotForUs, err)
	}
	w := &openedWelcome{cs: cs}
	if w.bundle, w.secrets, err = findBundle(cs, m.Welcome, p.Bundles); err != nil {
		return nil, err
	}
	if err := w.open(c, m.Welcome, p.From); err != nil {
		w.wipe()
		return nil, err
	}
	return w, nil
}

func (w *openedWelcome) open(c *Config, m *wire.Welcome, before *Group) error {
	psks, from, err := c.welcomePSKs(w.cs, w.secrets.PSKs, before)
	if err != nil {
		return err
	}
	defer wipePSKs(psks)
	psk, err := pskSecret(w.cs, psks)
	if err != nil {
		return err
	}
	defer psk.Wipe()
	w.from, w.member = from, memberSecret(w.cs, w.secrets.JoinerSecret, psk)
	w.info, err = openGroupInfo(w.cs, m, w.member)
	return err
}
