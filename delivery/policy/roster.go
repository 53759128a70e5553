package policy

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/mls/wire"
)

// Member is one leaf of a room, with what its credential attests.
type Member struct {
	Leaf     uint32
	Identity identity.PublicKey
	Device   identity.DeviceID
	Key      identity.DevicePublicKey // the leaf's signature key

	credential *identity.UnverifiedCredential
}

// Credential verifies the leaf's credential and gives it. In a Roster of
// [NewRoster] or [CheckCommit] it was verified before.
func (m Member) Credential() (identity.Credential, error) { return m.credential.Verify() }

// SameAttestation reports whether both leaves hold the very same attestation, bytes
// and signatures.
func (m Member) SameAttestation(o Member) bool {
	return m.credential != nil && o.credential != nil && string(m.credential.Bytes()) == string(o.credential.Bytes())
}

// Roster is who is in the tree of one epoch. It is immutable.
type Roster struct {
	byLeaf   map[uint32]Member
	byDevice map[identity.DeviceID]uint32
	leaves   map[identity.PublicKey]int // how many leaves each identity has
}

// Leaf is a leaf with its index in the tree.
type Leaf struct {
	Index uint32
	Node  *wire.LeafNode
}

// NewRoster reads the leaves of a whole tree and verifies every credential
// (ErrCredential, ErrRole, ErrCapabilities, ErrLeafSize, ErrRoster).
func NewRoster(leaves iter.Seq2[uint32, *wire.LeafNode]) (*Roster, error) {
	return readRoster(leaves, true)
}

// TrustedRoster reads the leaves of a tree whose credentials were verified when
// they came in, such as one's own stored state, without verifying them again.
func TrustedRoster(leaves iter.Seq2[uint32, *wire.LeafNode]) (*Roster, error) {
	return readRoster(leaves, false)
}

func readRoster(leaves iter.Seq2[uint32, *wire.LeafNode], verify bool) (*Roster, error) {
	r := &Roster{byLeaf: map[uint32]Member{}, byDevice: map[identity.DeviceID]uint32{}, leaves: map[identity.PublicKey]int{}}
	var index []uint32
	var unverified []identity.UnverifiedCredential
	for i, leaf := range leaves {
		u, err := parseCredential(&leaf.Credential, leaf.SignatureKey)
		if err != nil {
			return nil, err
		}
		if err := checkContent(leaf); err != nil {
			return nil, err
		}
		index, unverified = append(index, i), append(unverified, u)
	}
	if verify {
		if _, err := identity.VerifyCredentials(unverified); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCredential, err)
		}
	}
	for i := range unverified {
		if err := r.put(index[i], &unverified[i]); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func member(leaf uint32, c *identity.UnverifiedCredential) Member {
	a := &c.Attestation
	return Member{Leaf: leaf, Identity: a.Identity, Device: a.DeviceID, Key: a.DevicePubkey, credential: c}
}

func (r *Roster) put(leaf uint32, c *identity.UnverifiedCredential) error {
	m := member(leaf, c)
	if _, taken := r.byLeaf[leaf]; taken {
		return fmt.Errorf("%w: leaf %d is taken", ErrRoster, leaf)
	}
	if _, twice := r.byDevice[m.Device]; twice {
		return fmt.Errorf("%w: a device has two leaves", ErrRoster)
	}
	r.byLeaf[leaf], r.byDevice[m.Device] = m, leaf
	r.leaves[m.Identity]++
	return nil
}

func (r *Roster) drop(leaf uint32) {
	m, ok := r.byLeaf[leaf]
	if !ok {
		return
	}
	delete(r.byLeaf, leaf)
	delete(r.byDevice, m.Device)
	if r.leaves[m.Identity]--; r.leaves[m.Identity] == 0 {
		delete(r.leaves, m.Identity)
	}
}

func (r *Roster) clone() *Roster {
	return &Roster{maps.Clone(r.byLeaf), maps.Clone(r.byDevice), maps.Clone(r.leaves)}
}

// Len is the number of leaves.
func (r *Roster) Len() int { return len(r.byLeaf) }

// At is the member at a leaf.
func (r *Roster) At(leaf uint32) (Member, bool) {
	m, ok := r.byLeaf[leaf]
	return m, ok
}

// Device is the member with a device id.
func (r *Roster) Device(d identity.DeviceID) (Member, bool) {
	leaf, ok := r.byDevice[d]
	if !ok {
		return Member{}, false
	}
	return r.byLeaf[leaf], true
}

// Has reports whether any device of an identity is in the tree, and how many.
func (r *Roster) Has(id identity.PublicKey) int { return r.leaves[id] }

// Identities are all identities in the tree, in the order of their bytes.
func (r *Roster) Identities() []identity.PublicKey {
	return slices.SortedFunc(maps.Keys(r.leaves), identity.PublicKey.Compare)
}

// Members are all leaves, by index.
func (r *Roster) Members() []Member {
	return slices.SortedFunc(maps.Values(r.byLeaf), func(a, b Member) int { return int(int64(a.Leaf) - int64(b.Leaf)) })
}

// CheckRoster checks a room's tree against its dictionary: every identity in
// the tree is a participant that is not banned, no device in it is revoked, and
// the bounds of the base policy hold (ErrRoster, ErrRevoked).
func CheckRoster(room *Room, r *Roster) error {
	for id := range r.leaves {
		if room.Participants.Role(id) < RoleMember {
			return fmt.Errorf("%w: an identity in the tree is not listed, or banned", ErrRoster)
		}
	}
	for _, x := range room.Revocations {
		f := x.Fields()
		if leaf, in := r.byDevice[f.DeviceID]; in && r.byLeaf[leaf].Identity == f.Identity {
			return fmt.Errorf("%w: it is at leaf %d", ErrRevoked, leaf)
		}
	}
	return checkBounds(room, r)
}

func checkBounds(room *Room, r *Roster) error {
	if limit := room.Base.MaxClients; limit != 0 && uint64(r.Len()) > uint64(limit) {
		return fmt.Errorf("%w: %d leaves, at most %d", ErrRoster, r.Len(), limit)
	}
	users := 0
	for _, p := range room.Participants {
		if p.Role >= RoleMember {
			users++
		}
	}
	if limit := room.Base.MaxUsers; limit != 0 && uint64(users) > uint64(limit) {
		return fmt.Errorf("%w: %d participants, at most %d", ErrRoster, users, limit)
	}
	return nil
}
