package tree

import (
	"slices"

	"github.com/askucher/compax-core/mls/wire"
)

// summary is what the members below a node support, all of them, and which
// credential types they use. Lists are sorted. Nodes share equal summaries, so a
// tree of clients of one make holds a few.
type summary struct {
	extensions  []wire.ExtensionType
	proposals   []wire.ProposalType
	credentials []wire.CredentialType
	inUse       []wire.CredentialType
}

// summarise is the summary of one leaf, nil when it is blank.
func summarise(leaf *wire.LeafNode) *summary {
	if leaf == nil {
		return nil
	}
	c := &leaf.Capabilities
	return &summary{
		extensions:  sorted(c.Extensions),
		proposals:   sorted(c.Proposals),
		credentials: sorted(c.Credentials),
		inUse:       []wire.CredentialType{leaf.Credential.CredentialType},
	}
}

// combine is the summary of the members of two subtrees.
func combine(a, b *summary) *summary {
	switch {
	case a == nil || a == b:
		return b
	case b == nil:
		return a
	}
	s := &summary{
		extensions:  intersect(a.extensions, b.extensions),
		proposals:   intersect(a.proposals, b.proposals),
		credentials: intersect(a.credentials, b.credentials),
		inUse:       unite(a.inUse, b.inUse),
	}
	if s.equal(a) {
		return a
	}
	return s
}

func (s *summary) equal(o *summary) bool {
	return slices.Equal(s.extensions, o.extensions) && slices.Equal(s.proposals, o.proposals) &&
		slices.Equal(s.credentials, o.credentials) && slices.Equal(s.inUse, o.inUse)
}

func sorted[T ~uint16](list []T) []T {
	if slices.IsSorted(list) {
		return list
	}
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}

// intersect returns the values that are in both sorted lists; a itself when that
// is all of a.
func intersect[T ~uint16](a, b []T) []T {
	var out []T
	kept := 0
	for i, j := 0, 0; i < len(a); i++ {
		for j < len(b) && b[j] < a[i] {
			j++
		}
		if j < len(b) && b[j] == a[i] {
			if kept == i {
				kept++
				continue
			}
			if out == nil {
				out = append(make([]T, 0, len(a)), a[:kept]...)
			}
			out = append(out, a[i])
		}
	}
	if out == nil {
		return a[:kept:kept]
	}
	return out
}

// unite returns the values that are in either sorted list.
func unite[T ~uint16](a, b []T) []T {
	if slices.Equal(a, b) {
		return a
	}
	all := append(slices.Clone(a), b...)
	slices.Sort(all)
	return slices.Compact(all)
}

// SupportsExtension reports whether every member supports an extension type: it
// is a default one or all list it (Section 7.2). So it is in an empty tree.
func (t *Tree) SupportsExtension(x wire.ExtensionType) bool {
	return IsDefaultExtension(x) || t.root.sum == nil || contains(t.root.sum.extensions, x)
}

// SupportsProposal reports the same for a proposal type.
func (t *Tree) SupportsProposal(p wire.ProposalType) bool {
	return IsDefaultProposal(p) || t.root.sum == nil || contains(t.root.sum.proposals, p)
}

// SupportsCredential reports whether every member lists a credential type; none
// is a default.
func (t *Tree) SupportsCredential(c wire.CredentialType) bool {
	return t.root.sum == nil || contains(t.root.sum.credentials, c)
}

func contains[T ~uint16](list []T, v T) bool {
	_, found := slices.BinarySearch(list, v)
	return found
}

// IsDefaultExtension reports whether every client supports the extension type
// without listing it (Section 7.2).
func IsDefaultExtension(x wire.ExtensionType) bool {
	return x >= wire.ExtensionTypeApplicationID && x <= wire.ExtensionTypeExternalSenders
}

// IsDefaultProposal reports the same for a proposal type.
func IsDefaultProposal(p wire.ProposalType) bool {
	return p >= wire.ProposalTypeAdd && p <= wire.ProposalTypeGroupContextExtensions
}
