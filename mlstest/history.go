package mlstest

import (
	"fmt"

	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/wire"
)

// Step does one random thing in a world of at most limit members: proposals,
// commits of every kind, external commits, messages, restarts.
func (w *World) Step(limit int) {
	w.t.Helper()
	switch w.rand.IntN(8) {
	case 0:
		w.Chat(1 + w.rand.IntN(6))
	case 1:
		w.Pick().Restart()
	case 2:
		w.proposals(1 + w.rand.IntN(4))
	case 3:
		w.external(limit)
	case 4:
		w.raced()
	default:
		w.commit(limit)
	}
}

// proposals has members send proposals that a commit can take together.
func (w *World) proposals(n int) {
	w.t.Helper()
	touched := map[uint32]bool{}
	for range n {
		by := w.Pick()
		leaf := by.Group.OwnLeaf()
		for _, p := range by.Group.Proposals() {
			touched[p.Sender.LeafIndex] = true
			if p.Proposal.Remove != nil {
				touched[p.Proposal.Remove.Removed] = true
			}
		}
		params := mls.ProposeParams{Random: w.random, Now: w.Now, Private: w.Private}
		var proposed *mls.Proposed
		var err error
		switch k := w.rand.IntN(4); {
		case k == 0 && !touched[leaf]:
			proposed, err = by.Group.ProposeUpdate(params, mls.LeafChange{})
		case k == 1 && !touched[leaf] && len(w.Members) > 3:
			params.Private = false
			params.Proposal = mls.SelfRemoveProposal()
			proposed, err = by.Group.Propose(params)
		case k == 2 && len(w.Members) > 4:
			victim := w.Pick()
			if touched[victim.Group.OwnLeaf()] || victim == by {
				continue
			}
			leaf = victim.Group.OwnLeaf()
			params.Proposal = mls.RemoveProposal(leaf)
			proposed, err = by.Group.Propose(params)
		default:
			params.Proposal, err = by.Group.ExternalPSKProposal(w.random, w.psk())
			if err == nil {
				proposed, err = by.Group.Propose(params)
			}
			leaf = 1 << 31
		}
		if err != nil {
			w.t.Fatalf("%s: proposal: %v", by.Name, err)
		}
		touched[leaf] = true
		w.Propose(by, proposed)
	}
}

// psk gives everybody a new pre-shared key.
func (w *World) psk() []byte {
	w.count++
	id := fmt.Sprintf("psk %d", w.count)
	for _, c := range w.Members {
		c.PSKs[id] = mls.Secret("the secret of " + id)
	}
	return []byte(id)
}

// committer picks a member whom no held proposal removes.
func (w *World) committer() *Client {
	for {
		by := w.Pick()
		going := false
		for _, p := range by.Group.Proposals() {
			going = going || p.Proposal.SelfRemove != nil && p.Sender.LeafIndex == by.Group.OwnLeaf() ||
				p.Proposal.Remove != nil && p.Proposal.Remove.Removed == by.Group.OwnLeaf()
		}
		if !going {
			return by
		}
	}
}

// commit has a member commit what is held and something of its own.
func (w *World) commit(limit int) {
	w.t.Helper()
	by := w.committer()
	p := mls.CommitParams{Private: w.Private && w.rand.IntN(2) == 0}
	var joiners []*Client
	for range w.rand.IntN(4) {
		if len(w.Members)+len(joiners) >= limit {
			break
		}
		c := w.Client()
		for id, secret := range by.PSKs {
			c.PSKs[id] = secret
		}
		p.Proposals = append(p.Proposals, mls.AddProposal(&c.KeyPackage(w.Now).KeyPackage))
		joiners = append(joiners, c)
	}
	switch {
	case w.rand.IntN(3) == 0 && len(by.Group.Proposals()) == 0 && len(w.Members) > 2:
		if victim := w.Pick(); victim != by {
			p.Proposals = append(p.Proposals, mls.RemoveProposal(victim.Group.OwnLeaf()))
		}
	case w.rand.IntN(4) == 0:
		psk, err := by.Group.ResumptionPSKProposal(w.random, by.Group.GroupID(), by.Group.Epoch())
		if err != nil {
			w.t.Fatal(err)
		}
		if len(joiners) == 0 { // joiners have no resumption PSK of this group
			p.Proposals = append(p.Proposals, psk)
		}
	case w.rand.IntN(4) == 0:
		p.Proposals = append(p.Proposals, mls.AppDataUpdateProposal(0x8001, fmt.Appendf(nil, "data %d", w.count)))
	case w.rand.IntN(4) == 0:
		p.OmitPath = true
	}
	w.Commit(by, p, joiners...)
}

// external lets somebody in by external commit: a new client, one that was
// removed, or a member that resyncs.
func (w *World) external(limit int) {
	w.t.Helper()
	if len(w.Members) > 1 && w.rand.IntN(2) == 0 {
		w.ExternalJoin(w.Pick(), true)
		return
	}
	if len(w.Members) >= limit {
		return
	}
	w.ExternalJoin(w.Client(), false)
}

// raced has two members commit at once; the order takes one and the other
// discards its own.
func (w *World) raced() {
	w.t.Helper()
	winner, loser := w.committer(), w.committer()
	if winner == loser {
		return
	}
	p := mls.CommitParams{Random: w.random, Now: w.Now}
	lost, err := loser.Group.Commit(p)
	if err != nil {
		w.t.Fatalf("%s: commit: %v", loser.Name, err)
	}
	loser.Take(*lost.Keep())
	if w.rand.IntN(2) == 0 {
		loser.Take(*loser.Group.Discard())
	}
	w.Commit(winner, p)
}

// Capable are extensions of a GroupContext that ask for everything beyond RFC
// 9420 that the engine speaks.
func Capable() wire.Extensions {
	return wire.Extensions{
		wire.NewExtension(wire.ExtensionTypeRequiredCapabilities, &wire.RequiredCapabilities{
			ExtensionTypes: []wire.ExtensionType{wire.ExtensionTypeAppDataDictionary},
			ProposalTypes: []wire.ProposalType{
				wire.ProposalTypeAppDataUpdate, wire.ProposalTypeAppEphemeral, wire.ProposalTypeSelfRemove,
			},
		}),
		wire.NewExtension(wire.ExtensionTypeAppDataDictionary, &wire.AppDataDictionary{}),
	}
}
