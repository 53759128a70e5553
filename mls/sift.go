package mls

import (
	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/wire"
)

// maxTrials bounds how many lists are tried to find the held proposals that spoil a
// commit. One among a thousand is found with twenty; who sends many loses them all.
const maxTrials = 64

// sift gives, of the held proposals chosen for a commit that was not valid, those
// with which it is. Each was valid when it came, and yet there may be no valid
// commit with it: an Update to a key that stands elsewhere in the tree, an Add of
// who is a member already or supports too little. Whoever sends one must not keep
// the others from committing, which RFC 9420 Section 12.2 leaves to the committer.
// Removes and SelfRemoves spoil nothing and are not tried for.
func (g *Group) sift(plan commitPlan, refs []wire.ProposalRef, values []wire.ProposalOrRef) []wire.ProposalRef {
	s := sifting{group: g, plan: plan, values: values, options: g.config.options(plan.Now), trials: maxTrials}
	if s.options.KeyPackages == nil {
		s.options.KeyPackages = new(follower.KeyPackageCache) // signatures once, not in each trial
	}
	var rest []wire.ProposalRef
	for _, ref := range refs {
		if p := g.public.Proposal(ref); rank(p) >= rankRemove {
			s.kept = append(s.kept, ref)
		} else {
			rest = append(rest, ref)
		}
	}
	if !s.fits(nil) {
		return refs // the commit's own proposals spoil it
	}
	s.add(rest)
	kept := make(map[string]bool, len(s.kept))
	for _, ref := range s.kept {
		kept[string(ref)] = true
	}
	var sifted []wire.ProposalRef // in the order in which they came
	for _, ref := range refs {
		if kept[string(ref)] {
			sifted = append(sifted, ref)
		}
	}
	return sifted
}

// sifting is a search for the held proposals with which a commit is valid.
type sifting struct {
	group   *Group
	plan    commitPlan
	values  []wire.ProposalOrRef
	options follower.Options
	kept    []wire.ProposalRef
	trials  int // how many lists may still be tried
}

// add keeps as many of the proposals as go together with those that are kept:
// all, or of each half as many as do.
func (s *sifting) add(refs []wire.ProposalRef) {
	switch {
	case len(refs) == 0:
	case s.fits(refs):
		s.kept = append(s.kept, refs...)
	case len(refs) > 1:
		s.add(refs[:len(refs)/2])
		s.add(refs[len(refs)/2:])
	}
}

// fits reports whether a commit of what is kept and of more is valid as far as its
// proposals go.
func (s *sifting) fits(more []wire.ProposalRef) bool {
	if s.trials == 0 {
		return false
	}
	s.trials--
	list := append(byReference(s.kept), byReference(more)...)
	d, err := s.group.public.Draft(s.plan.sender, append(list, s.values...), s.options)
	return err == nil && d.CheckSupport(d.Tree) == nil
}
