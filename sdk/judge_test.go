package sdk

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/identity/phrase"
	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/wire"
)

// leafOf is a device without a service: what an engine has before it is in a room.
func leafOf(t *testing.T, home identity.Home) *Engine {
	t.Helper()
	words, err := phrase.Generate(rand.Reader)
	must(t, err)
	node, err := words.Account()
	must(t, err)
	key, err := node.Identity()
	must(t, err)
	device, err := phrase.GenerateKey(rand.Reader)
	must(t, err)
	cred, err := identity.Attest(identity.Attestation{
		Home: home, Identity: key.PublicBytes(), DevicePubkey: device.PublicBytes(), DeviceHPKE: identity.DeviceHPKEKey(bytes.Repeat([]byte{9}, 32)),
		Role: identity.RoleMember, Version: 1, IssuedAt: 1,
	}, key, device)
	must(t, err)
	e := newEngine(Config{Random: rand.Reader, Now: time.Now})
	must(t, e.begin(cred.Bytes(), device.Seed()))
	e.account.Identity, e.account.Device = cred.Identity(), cred.DeviceID()
	return e
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestAttackRemovalWithoutTheRight: a service that lets anything into the log shows
// a commit by which somebody without the right removes this device. It is judged
// by the room's rules like every other commit, and not believed.
func TestAttackRemovalWithoutTheRight(t *testing.T) {
	home := identity.Home{1, 2, 3}
	ada, bob, eve := leafOf(t, home), leafOf(t, home), leafOf(t, home)
	room, err := delivery.NewRoomID(home, rand.Reader)
	must(t, err)
	sender, _, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	extensions, err := policy.Creation{
		Room: room, Kind: delivery.RoomGroup, Domain: "home.example", SenderKey: sender, Creator: ada.account.Identity,
		Others: []identity.PublicKey{bob.account.Identity, eve.account.Identity}, Suite: policy.Suites[0],
	}.Extensions()
	must(t, err)
	now := time.Now()
	step, err := ada.mls.Create(mls.CreateParams{
		Random: rand.Reader, Now: now, CipherSuite: policy.Suites[0], GroupID: room[:], Extensions: extensions,
		Leaf: mls.CreatorLeaf{
			Signer: ada.mls.Signers[0], Credential: ada.credential(), Capabilities: policy.Capabilities(), Extensions: policy.LeafExtensions(),
			NotBefore: now.Add(-clockSkew), NotAfter: now.Add(lifetime),
		},
	})
	must(t, err)
	var adds []wire.Proposal
	var bundles []*mls.KeyPackageBundle
	for _, e := range []*Engine{bob, eve} {
		b, err := e.newBundle(policy.Suites[0], false)
		must(t, err)
		bundles, adds = append(bundles, b), append(adds, mls.AddProposal(&b.KeyPackage))
	}
	added, err := step.Next.Commit(mls.CommitParams{Random: rand.Reader, Now: now, Proposals: adds, TreeInWelcome: true})
	must(t, err)
	applied, err := added.Apply(step.Next, now)
	must(t, err)
	join := func(e *Engine, b *mls.KeyPackageBundle) *mls.Group {
		j, err := e.mls.Join(mls.JoinParams{Welcome: added.Welcome, Bundles: []*mls.KeyPackageBundle{b}, Now: now})
		must(t, err)
		return j.Next
	}
	inBob, inEve := join(bob, bundles[0]), join(eve, bundles[1])
	state, err := newState(inBob)
	must(t, err)

	remove := func(g *mls.Group) *mls.StagedCommit {
		u, _ := state.policy.Participants.Removing(false, bob.account.Identity)
		c, err := g.Commit(mls.CommitParams{Random: rand.Reader, Now: now, Proposals: []wire.Proposal{
			mls.RemoveProposal(inBob.OwnLeaf()), mls.AppDataUpdateProposal(policy.ComponentParticipants, u.Bytes()),
		}})
		must(t, err)
		got, err := inBob.Process(c.Message, mls.ProcessParams{Now: now})
		must(t, err)
		staged, ok := got.(*mls.StagedCommit)
		if !ok || !staged.SelfRemoved {
			t.Fatalf("%T does not remove this device", got)
		}
		return staged
	}
	if _, err := judge(state, remove(inEve)); !errors.Is(err, ErrStuck) || !errors.Is(err, policy.ErrAuthority) {
		t.Errorf("a removal by somebody without the right: %v", err)
	}
	after, err := judge(state, remove(applied.Next))
	must(t, err)
	if after.roster != nil || after.group.Active() {
		t.Error("after a removal by an admin the device is still in the room")
	}
}
