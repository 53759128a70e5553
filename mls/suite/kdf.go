package suite

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"

	"github.com/askucher/compax-core/mls/wire"
)

// labelPrefix begins every label of MLS 1.0.
const labelPrefix = "MLS 1.0 "

// HashSize returns Nh: the size in bytes of hashes, MACs and secrets.
func (s *Suite) HashSize() int { return s.kdf.Size() }

// Hash returns the hash of data.
func (s *Suite) Hash(data []byte) []byte {
	switch s.kdf {
	case KDFSHA256:
		sum := sha256.Sum256(data)
		return sum[:]
	case KDFSHA384:
		sum := sha512.Sum384(data)
		return sum[:]
	default:
		sum := sha512.Sum512(data)
		return sum[:]
	}
}

// MAC returns the suite's MAC, which is HMAC with its hash (§5.1), of data.
func (s *Suite) MAC(key, data []byte) []byte {
	return s.kdf.MAC(key, data)
}

// VerifyMAC reports in constant time whether tag is the MAC of data. A tag of
// any other length than [Suite.HashSize] is wrong.
func (s *Suite) VerifyMAC(key, data, tag []byte) bool {
	return Equal(s.MAC(key, data), tag)
}

// Equal reports in constant time whether a and b are the same bytes. Different
// lengths differ.
func Equal(a, b []byte) bool { return subtle.ConstantTimeCompare(a, b) == 1 }

// Extract is KDF.Extract (§8): HKDF-Extract.
func (s *Suite) Extract(salt, ikm []byte) []byte {
	return s.kdf.Extract(salt, ikm)
}

// MaxExpand returns the largest length that [Suite.ExpandWithLabel] can give,
// in bytes: 255 hashes.
func (s *Suite) MaxExpand() int { return 255 * s.HashSize() }

// ExpandWithLabel derives length bytes from secret (§8). It panics when length
// is negative or larger than [Suite.MaxExpand]; who takes a length from
// outside compares first.
func (s *Suite) ExpandWithLabel(secret []byte, label string, context []byte, length int) []byte {
	if length < 0 || length > s.MaxExpand() {
		panic("mls/suite: ExpandWithLabel: length out of range")
	}
	var buf [256]byte
	info := wire.AppendUint16(buf[:0], uint16(length))
	info = appendLabel(info, label)
	info = wire.AppendOpaque(info, context)
	if length == 0 {
		return nil
	}
	return s.kdf.Expand(secret, info, length)
}

// appendLabel appends "MLS 1.0 " and label as one opaque<V>.
func appendLabel(b []byte, label string) []byte {
	b = wire.AppendVarint(b, len(labelPrefix)+len(label))
	b = append(b, labelPrefix...)
	return append(b, label...)
}

// DeriveSecret is ExpandWithLabel(secret, label, "", Nh) (§8).
func (s *Suite) DeriveSecret(secret []byte, label string) []byte {
	return s.ExpandWithLabel(secret, label, nil, s.HashSize())
}

// DeriveTreeSecret is ExpandWithLabel(secret, label, generation, length) (§9).
func (s *Suite) DeriveTreeSecret(secret []byte, label string, generation uint32, length int) []byte {
	var context [4]byte
	return s.ExpandWithLabel(secret, label, wire.AppendUint32(context[:0], generation), length)
}

// RefHash is the hash by which a structure is referred to (§5.2). The label is
// taken whole, "MLS 1.0 " included.
func (s *Suite) RefHash(label string, value []byte) []byte {
	b := make([]byte, 0, len(label)+len(value)+8)
	return s.Hash(wire.AppendOpaque(wire.AppendOpaque(b, label), value))
}

// KeyPackageRef returns the reference of a KeyPackage (§5.2). The suite must be
// the one that the KeyPackage names.
func (s *Suite) KeyPackageRef(k *wire.KeyPackage) wire.KeyPackageRef {
	return s.RefHash("MLS 1.0 KeyPackage Reference", wire.Marshal(k))
}

// ProposalRef returns the reference of a proposal that was sent as c (§5.2).
func (s *Suite) ProposalRef(c *wire.AuthenticatedContent) wire.ProposalRef {
	return s.RefHash("MLS 1.0 Proposal Reference", wire.Marshal(c))
}
