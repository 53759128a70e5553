package mls

import (
	"fmt"
	"io"
	"slices"

	"github.com/askucher/compax-core/mls/hpke"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// joiner is a client that a commit adds: its leaf and its KeyPackage.
type joiner struct {
	leaf       tree.LeafIndex
	keyPackage *wire.KeyPackage
}

// welcomeKeys derives the key and nonce of the encrypted GroupInfo (RFC 9420
// Section 12.4.3.1).
func welcomeKeys(cs *suite.Suite, member Secret) (key, nonce Secret) {
	secret := welcomeSecret(cs, member)
	defer secret.Wipe()
	return cs.ExpandWithLabel(secret, "key", nil, cs.KeySize()), cs.ExpandWithLabel(secret, "nonce", nil, cs.NonceSize())
}

// beginWelcome begins the encryptions to the init keys of whom a commit adds.
func beginWelcome(cs *suite.Suite, random io.Reader, packages []*wire.KeyPackage) (*hpke.Sealing, error) {
	keys := make([]wire.HPKEPublicKey, len(packages))
	for i, k := range packages {
		keys[i] = k.InitKey
	}
	sealing, err := hpke.Begin(cs, random, keys)
	if err != nil {
		return nil, fmt.Errorf("mls: encrypting group secrets: %w", err)
	}
	return sealing, nil
}

// newWelcome encrypts the GroupInfo of a new epoch and, to each joiner, the
// secrets that open it. sealing is beginWelcome's for them; path is nil when the
// commit has none.
func newWelcome(cs *suite.Suite, sealing *hpke.Sealing, joiners []joiner, committer tree.LeafIndex, path *newPath, joinerSecret, member Secret, psks []wire.PreSharedKeyID, info *wire.GroupInfo) (*wire.Welcome, error) {
	key, nonce := welcomeKeys(cs, member)
	defer wipeAll([]Secret{key, nonce})
	sealed, err := cs.Seal(key, nonce, nil, wire.Marshal(info))
	if err != nil {
		return nil, fmt.Errorf("mls: encrypting the group info: %w", err)
	}
	plaintexts := make([][]byte, len(joiners))
	refs := make([]wire.KeyPackageRef, len(joiners))
	for i, j := range joiners {
		secrets := wire.GroupSecrets{JoinerSecret: joinerSecret, PSKs: psks}
		if path != nil {
			at := slices.Index(path.nodes, tree.CommonAncestor(committer, j.leaf))
			// mutants: equivalent: the path has every ancestor with a member on both sides
			if at < 0 {
				return nil, fmt.Errorf("mls: leaf %d shares no node of the path", j.leaf)
			}
			secrets.PathSecret = &wire.PathSecret{PathSecret: path.secrets.secrets[at]}
		}
		plaintexts[i] = wire.Marshal(&secrets)
		refs[i] = cs.KeyPackageRef(j.keyPackage)
	}
	ciphertexts, err := sealing.Encrypt("Welcome", sealed, plaintexts)
	for _, p := range plaintexts {
		clear(p)
	}
	if err != nil {
		return nil, fmt.Errorf("mls: encrypting group secrets: %w", err)
	}
	w := &wire.Welcome{CipherSuite: cs.ID(), EncryptedGroupInfo: sealed, Secrets: make([]wire.EncryptedGroupSecrets, len(joiners))}
	for i := range joiners {
		w.Secrets[i] = wire.EncryptedGroupSecrets{NewMember: refs[i], EncryptedGroupSecrets: ciphertexts[i]}
	}
	return w, nil
}

// openGroupSecrets decrypts what a Welcome has for one KeyPackage.
func openGroupSecrets(cs *suite.Suite, w *wire.Welcome, bundle *KeyPackageBundle) (*wire.GroupSecrets, error) {
	// mutants: equivalent: only the error differs, a key of another suite opens nothing
	if bundle.KeyPackage.CipherSuite != w.CipherSuite {
		return nil, fmt.Errorf("%w: the welcome is of suite %#04x, the key package of %#04x", ErrNotForUs, uint16(w.CipherSuite), uint16(bundle.KeyPackage.CipherSuite))
	}
	ref := cs.KeyPackageRef(&bundle.KeyPackage)
	i := slices.IndexFunc(w.Secrets, func(s wire.EncryptedGroupSecrets) bool { return string(s.NewMember) == string(ref) })
	if i < 0 {
		return nil, ErrNotForUs
	}
	// A pair that does not fit opens nothing: its public half is part of what the
	// key of the ciphertext is derived from.
	key, err := hpke.NewKeyPair(cs, bundle.InitPrivate, bundle.KeyPackage.InitKey)
	if err != nil {
		return nil, fmt.Errorf("%w: init key: %w", ErrParams, err)
	}
	defer key.Wipe()
	plaintext, err := key.DecryptWithLabel("Welcome", w.EncryptedGroupInfo, &w.Secrets[i].EncryptedGroupSecrets)
	if err != nil {
		return nil, fmt.Errorf("%w: group secrets", ErrDecrypt)
	}
	defer clear(plaintext)
	secrets := new(wire.GroupSecrets)
	if err := wire.Unmarshal(plaintext, secrets); err != nil {
		wipeGroupSecrets(secrets)
		return nil, fmt.Errorf("%w: group secrets: %w", ErrMalformed, err)
	}
	return secrets, nil
}

func wipeGroupSecrets(s *wire.GroupSecrets) {
	clear(s.JoinerSecret)
	if s.PathSecret != nil {
		clear(s.PathSecret.PathSecret)
	}
}

// openGroupInfo decrypts the GroupInfo of a Welcome. Its signature is still to
// be verified, with the tree.
func openGroupInfo(cs *suite.Suite, w *wire.Welcome, member Secret) (*wire.GroupInfo, error) {
	key, nonce := welcomeKeys(cs, member)
	defer wipeAll([]Secret{key, nonce})
	plaintext, err := cs.Open(key, nonce, nil, w.EncryptedGroupInfo)
	if err != nil {
		return nil, fmt.Errorf("%w: group info of a welcome", ErrDecrypt)
	}
	info := new(wire.GroupInfo)
	if err := wire.Unmarshal(plaintext, info); err != nil {
		return nil, fmt.Errorf("%w: group info of a welcome: %w", ErrMalformed, err)
	}
	return info, nil
}
