package mls

import (
	"fmt"

	"github.com/askucher/compax-core/mls/hpke"
	"github.com/askucher/compax-core/mls/suite"
)

// epochSecrets are the secrets of one epoch that outlive its derivation (RFC
// 9420 Section 8, Table 4). The encryption_secret is not among them: it is the
// root of the secret tree.
type epochSecrets struct {
	senderData    Secret // sender_data_secret
	exporter      Secret // exporter_secret
	external      Secret // external_secret
	confirmation  Secret // confirmation_key
	membership    Secret // membership_key
	resumption    Secret // resumption_psk
	authenticator Secret // epoch_authenticator
	init          Secret // init_secret of the next derivation
}

// joinerSecret computes joiner_secret from the init_secret of the epoch before
// and the commit_secret (RFC 9420 Figure 22). groupContext is the encoded
// GroupContext of the new epoch.
func joinerSecret(cs *suite.Suite, initSecret, commitSecret Secret, groupContext []byte) Secret {
	extracted := Secret(cs.Extract(initSecret, commitSecret))
	defer extracted.Wipe()
	return cs.ExpandWithLabel(extracted, "joiner", groupContext, cs.HashSize())
}

// memberSecret extracts joiner_secret and psk_secret into the value from which
// welcome_secret and epoch_secret are derived.
func memberSecret(cs *suite.Suite, joiner, psk Secret) Secret {
	return cs.Extract(joiner, psk)
}

// welcomeSecret computes welcome_secret from the memberSecret.
func welcomeSecret(cs *suite.Suite, member Secret) Secret {
	return cs.DeriveSecret(member, "welcome")
}

// epochKeys is all that comes out of the key schedule at the start of an epoch.
type epochKeys struct {
	epochSecrets
	encryption        Secret // encryption_secret
	applicationExport Secret // application_export_secret (draft-ietf-mls-extensions 4.4)
}

// deriveEpoch computes the secrets of an epoch from its memberSecret.
func deriveEpoch(cs *suite.Suite, member Secret, groupContext []byte) epochKeys {
	epoch := Secret(cs.ExpandWithLabel(member, "epoch", groupContext, cs.HashSize()))
	defer epoch.Wipe()
	return deriveFromEpochSecret(cs, epoch)
}

// deriveFromEpochSecret computes the secrets of Table 4 from an epoch_secret:
// the creator of a group starts from a random one (RFC 9420 Section 11).
func deriveFromEpochSecret(cs *suite.Suite, epoch Secret) epochKeys {
	return epochKeys{
		epochSecrets: epochSecrets{
			senderData:    cs.DeriveSecret(epoch, "sender data"),
			exporter:      cs.DeriveSecret(epoch, "exporter"),
			external:      cs.DeriveSecret(epoch, "external"),
			confirmation:  cs.DeriveSecret(epoch, "confirm"),
			membership:    cs.DeriveSecret(epoch, "membership"),
			resumption:    cs.DeriveSecret(epoch, "resumption"),
			authenticator: cs.DeriveSecret(epoch, "authentication"),
			init:          cs.DeriveSecret(epoch, "init"),
		},
		encryption:        cs.DeriveSecret(epoch, "encryption"),
		applicationExport: cs.DeriveSecret(epoch, "application_export"),
	}
}

// all lists the secrets, in the order in which they are stored.
func (s *epochSecrets) all() []*Secret {
	return []*Secret{
		&s.senderData, &s.exporter, &s.external, &s.confirmation,
		&s.membership, &s.resumption, &s.authenticator, &s.init,
	}
}

// exportSecret is MLS-Exporter (RFC 9420 Section 8.5).
func exportSecret(cs *suite.Suite, exporter Secret, label string, context []byte, length int) Secret {
	secret := Secret(cs.DeriveSecret(exporter, label))
	defer secret.Wipe()
	return cs.ExpandWithLabel(secret, "exported", cs.Hash(context), length)
}

// zeroSecret is the all-zero vector of KDF.Nh bytes.
func zeroSecret(cs *suite.Suite) Secret { return make(Secret, cs.HashSize()) }

// externalKey derives the key pair to which external commits encrypt their init
// secret (RFC 9420 Section 8).
func externalKey(cs *suite.Suite, external Secret) (*hpke.PrivateKey, error) {
	key, err := hpke.DeriveKeyPair(cs, external)
	if err != nil {
		return nil, fmt.Errorf("mls: deriving the external key pair: %w", err)
	}
	return key, nil
}
