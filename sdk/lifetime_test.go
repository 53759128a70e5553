package sdk

import (
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// TestAttackLongLivedKeyPackage: a key package that would be good for ever is added by
// nobody, and no member takes the commit of somebody who does (RFC 9420 §7.2).
func TestAttackLongLivedKeyPackage(t *testing.T) {
	ada, bob, eve := newOwner(t).device(), newOwner(t).device(), newOwner(t).device()
	h := newHall(t, delivery.RoomGroup, ada, bob)
	long := func(total time.Duration) *mls.KeyPackageBundle {
		b, err := mls.NewKeyPackage(mls.KeyPackageParams{
			CipherSuite: policy.Suites[0], Random: rand.Reader, Signer: eve.signer(policy.Suites[0]), Credential: eve.credential(),
			Capabilities: policy.Capabilities(), LeafExtensions: policy.LeafExtensions(),
			NotBefore: h.now.Add(-clockSkew), NotAfter: h.now.Add(total - clockSkew),
		})
		must(t, err)
		return b
	}
	for total, want := range map[time.Duration]error{policy.MaxLifetime: nil, policy.MaxLifetime + time.Second: tree.ErrLifetime} {
		add := mls.AddProposal(&long(total).KeyPackage)
		if _, err := h.groups[ada].Commit(mls.CommitParams{Random: rand.Reader, Now: h.now, Proposals: []wire.Proposal{add}}); !errors.Is(err, want) {
			t.Errorf("adding one of %v: %v, want %v", total, err, want)
		}
		ada.mls.MaxLifetime = 0 // she does not ask herself
		commit := h.commit(ada, add)
		ada.mls.MaxLifetime = policy.MaxLifetime
		if _, err := h.groups[bob].Process(commit, mls.ProcessParams{Now: h.now}); !errors.Is(err, want) {
			t.Errorf("the commit with one of %v: %v, want %v", total, err, want)
		}
	}
	o := policy.Options()
	o.Now = h.now
	if _, err := follower.UnverifiedFrom(&long(policy.MaxLifetime + time.Second).KeyPackage).Verify(o); !errors.Is(err, tree.ErrLifetime) {
		t.Errorf("the service takes it: %v", err)
	}
	b, err := eve.newBundle(policy.Suites[0], true)
	must(t, err)
	if l := b.KeyPackage.LeafNode.Lifetime; time.Duration(l.NotAfter-l.NotBefore)*time.Second > policy.MaxLifetime {
		t.Error("devices make longer ones themselves")
	}
}
