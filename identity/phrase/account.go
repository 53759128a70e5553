package phrase

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/askucher/compax-core/identity"
)

const (
	// Purpose is the first element of every path of an account: m/9420', after
	// the number of the RFC that the rooms speak.
	Purpose = 9420
	// MaxBotIndex is the highest index of a bot: 31 bits.
	MaxBotIndex = 1<<31 - 1
	// AccountSize is the size of a stored account node in bytes.
	AccountSize = nodeSize

	archiveInfo = "compax-archive-v1"

	branchIdentity = 0
	branchBots     = 1
)

// Account is the node m/9420' of a phrase: what a first device keeps, sealed,
// and what signs for the account. It is secret. The zero value is no account.
type Account struct {
	n hidden[node]
}

// Account derives m/9420' from the phrase with an empty passphrase
// (ErrWiped).
func (p Phrase) Account() (Account, error) {
	seed, err := p.Seed("")
	if err != nil {
		return Account{}, err
	}
	defer clear(seed)
	master := newMaster(ed25519Curve, seed)
	defer master.wipe()
	return Account{hide(master.child(Purpose))}, nil
}

// ParseAccount reads the AccountSize bytes that Bytes returned, from where they
// were sealed. The bytes are copied.
func ParseAccount(b []byte) (Account, error) {
	if len(b) != AccountSize {
		return Account{}, fmt.Errorf("phrase: account node of %d bytes, not %d", len(b), AccountSize)
	}
	return Account{hide((*node)(append([]byte(nil), b...)))}, nil
}

// Bytes returns private key ‖ chain code of m/9420', AccountSize bytes, to seal
// them at rest; nil after Wipe. The caller wipes them.
func (a Account) Bytes() []byte {
	n := a.n.get()
	if n == nil {
		return nil
	}
	return append([]byte(nil), n[:]...)
}

// Identity returns the identity's key, m/9420'/0'/0' (ErrWiped).
func (a Account) Identity() (Key, error) { return a.key(branchIdentity, 0) }

// Bot returns the identity key of bot i, m/9420'/1'/i'. The index is drawn at
// random, at most MaxBotIndex, and kept in the owner's self room (ErrWiped).
func (a Account) Bot(i uint32) (Key, error) {
	if i > MaxBotIndex {
		return Key{}, fmt.Errorf("phrase: bot index %d is above %d", i, MaxBotIndex)
	}
	return a.key(branchBots, i)
}

func (a Account) key(branch, i uint32) (Key, error) {
	n := a.n.get()
	if n == nil {
		return Key{}, ErrWiped
	}
	b := n.child(branch)
	defer b.wipe()
	leaf := b.child(i)
	defer leaf.wipe()
	return KeyFromSeed(leaf.private())
}

// ArchiveKey returns the 32 bytes under which the account seals its state and its
// history in a generation, from 1. Generation 1 is Secret("compax-archive-v1"), a
// later one has its number behind the info string, u64 big-endian. Each is derived
// from the node alone: who holds a generation's key learns no other's. The caller
// wipes them (ErrWiped).
func (a Account) ArchiveKey(generation uint64) ([]byte, error) {
	switch generation {
	case 0:
		return nil, errors.New("phrase: generations of the archive key count from 1")
	case 1:
		return a.Secret(archiveInfo)
	}
	return a.Secret(archiveInfo + string(binary.BigEndian.AppendUint64(nil, generation)))
}

// Secret returns 32 bytes of HKDF-SHA256 of the account node (private key ‖
// chain code) without salt and with the info string. One info string is one
// purpose. The caller wipes them (ErrWiped).
func (a Account) Secret(info string) ([]byte, error) {
	n := a.n.get()
	if n == nil {
		return nil, ErrWiped
	}
	s, err := hkdf.Key(sha256.New, n[:], nil, info, 32)
	if err != nil {
		return nil, fmt.Errorf("phrase: derive %s: %w", info, err)
	}
	return s, nil
}

// Wipe overwrites the node in this and every copy of the value.
func (a Account) Wipe() { a.n.wipe() }

// PublicKey returns the identity of the account (ErrWiped).
func (a Account) PublicKey() (identity.PublicKey, error) {
	k, err := a.Identity()
	if err != nil {
		return identity.PublicKey{}, err
	}
	defer k.Wipe()
	return identity.PublicKey(k.PublicBytes()), nil
}
