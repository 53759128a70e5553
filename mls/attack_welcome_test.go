package mls_test

import (
	"encoding/binary"
	"errors"
	"math"
	"runtime"
	"testing"

	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
	"github.com/askucher/compax-core/mlstest"
)

// welcomed is a newcomer whom a member added, and what an honest Welcome of that
// member would say.
type welcomed struct {
	by, newcomer *mlstest.Client
	tree         []byte
	forged       mls.ForgedWelcome
}

func welcoming(t *testing.T, w *mlstest.World) welcomed {
	t.Helper()
	by, newcomer := w.Members[0], w.Client()
	bundle := newcomer.KeyPackage(w.Now)
	commit := commitOf(t, w, by, mls.CommitParams{Proposals: []wire.Proposal{mls.AddProposal(&bundle.KeyPackage)}, OmitPath: true})
	applied, err := commit.Apply(by.Group, w.Now)
	if err != nil {
		t.Fatal(err)
	}
	var m wire.MLSMessage
	if err := wire.Unmarshal(commit.GroupInfo, &m); err != nil {
		t.Fatal(err)
	}
	return welcomed{by, newcomer, applied.Next.RatchetTree(), mls.ForgedWelcome{Info: *m.GroupInfo, To: &bundle.KeyPackage}}
}

func (c *welcomed) join(w *mlstest.World, from *mls.Group) (*mls.Joined, error) {
	return c.newcomer.Config.Join(mls.JoinParams{
		Welcome: c.by.Group.ForgeWelcome(w.Random(), c.forged), Tree: c.tree, Bundles: c.newcomer.Bundles, From: from, Now: w.Now,
	})
}

// psk adds a pre-shared key, which the newcomer has too when secret is not nil.
func (c *welcomed) psk(id wire.PreSharedKeyID, secret mls.Secret) {
	if secret != nil {
		c.newcomer.PSKs[string(id.PSKID)] = secret
	}
	if id.PSKNonce == nil {
		id.PSKNonce = make([]byte, 32)
	}
	c.forged.PSKs = append(c.forged.PSKs, id)
	c.forged.Secrets = append(c.forged.Secrets, mls.Secret("secret"))
}

// What only a member can make: a Welcome that opens, with a GroupInfo that is
// signed, of which something is wrong (RFC 9420 Section 12.4.3.1).
func TestAttackWelcomeByAMember(t *testing.T) {
	external := wire.PreSharedKeyID{PSKType: wire.PSKTypeExternal, PSKID: []byte("id")}
	secret := mls.Secret("secret")
	for name, c := range map[string]struct {
		forge func(*welcomed)
		want  error // nil: it is taken
	}{
		"nothing":                    {func(*welcomed) {}, nil},
		"a pre-shared key":           {func(c *welcomed) { c.psk(external, secret) }, nil},
		"another confirmation tag":   {func(c *welcomed) { c.forged.Tag = make([]byte, 32) }, mls.ErrConfirmationTag},
		"a short confirmation tag":   {func(c *welcomed) { c.forged.Tag = make([]byte, 31) }, follower.ErrGroupInfo},
		"another tree hash":          {func(c *welcomed) { c.forged.Info.GroupContext.TreeHash = make([]byte, 32) }, mls.ErrGroupInfo},
		"another suite":              {func(c *welcomed) { c.forged.Info.GroupContext.CipherSuite = 3 }, mls.ErrGroupInfo},
		"an extension twice":         {func(c *welcomed) { x := &c.forged.Info.Extensions; *x = append(*x, (*x)[0]) }, follower.ErrGroupInfo},
		"a signer that is not there": {func(c *welcomed) { c.forged.Info.Signer = 77 }, follower.ErrGroupInfo},
		"somebody else as signer":    {func(c *welcomed) { c.forged.Info.Signer = 1 }, follower.ErrSignature},
		"an extension that the joiner lacks": {func(c *welcomed) {
			x := &c.forged.Info.GroupContext.Extensions
			*x = append(*x, wire.Extension{ExtensionType: 0xf00d})
		}, follower.ErrTree},
		"a path secret of nobody":   {func(c *welcomed) { c.forged.PathSecret = make([]byte, 32) }, mls.ErrPath},
		"a key that is not at hand": {func(c *welcomed) { c.psk(external, nil) }, mls.ErrMissingPSK},
		"another key":               {func(c *welcomed) { c.psk(external, mls.Secret("other")) }, mls.ErrDecrypt},
		"a key twice":               {func(c *welcomed) { c.psk(external, secret); c.psk(external, secret) }, mls.ErrMalformed},
		"a short nonce": {func(c *welcomed) {
			c.psk(wire.PreSharedKeyID{PSKType: wire.PSKTypeExternal, PSKID: []byte("id"), PSKNonce: make([]byte, 31)}, secret)
		}, mls.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			w := trio(t, 3)
			welcome := welcoming(t, w)
			c.forge(&welcome)
			_, err := welcome.join(w, nil)
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// A group that follows another one begins in epoch 1, and follows only one (RFC
// 9420 Sections 11.3 and 12.4.3.1).
func TestAttackWelcomeThatFollows(t *testing.T) {
	for name, c := range map[string]struct {
		usages []wire.ResumptionPSKUsage
		want   error
	}{
		"a late branch": {[]wire.ResumptionPSKUsage{wire.ResumptionPSKUsageBranch}, mls.ErrGroupInfo},
		"two groups":    {[]wire.ResumptionPSKUsage{wire.ResumptionPSKUsageBranch, wire.ResumptionPSKUsageReInit}, mls.ErrMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			w := trio(t, 3)
			old := w.Members[1].Group
			psk, err := old.ResumptionPSK(old.Epoch())
			if err != nil {
				t.Fatal(err)
			}
			welcome := welcoming(t, w)
			for _, usage := range c.usages {
				welcome.psk(wire.PreSharedKeyID{
					PSKType: wire.PSKTypeResumption, Usage: usage, PSKGroupID: old.GroupID(), PSKEpoch: old.Epoch(),
				}, nil)
				welcome.forged.Secrets[len(welcome.forged.Secrets)-1] = psk
			}
			if _, err := welcome.join(w, old); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

// A Welcome may name thousands of pre-shared keys, each with a nonce of its own.
func TestWelcomeCostsInProportion(t *testing.T) {
	w := trio(t, 2)
	work := func(n int) uint64 {
		c := welcoming(t, w)
		for i := range n {
			nonce := binary.BigEndian.AppendUint64(make([]byte, 24), uint64(i))
			c.psk(wire.PreSharedKeyID{PSKType: wire.PSKTypeExternal, PSKID: []byte("id"), PSKNonce: nonce}, mls.Secret("secret"))
		}
		message := c.by.Group.ForgeWelcome(w.Random(), c.forged)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := c.newcomer.Config.Join(mls.JoinParams{Welcome: message, Tree: c.tree, Bundles: c.newcomer.Bundles, Now: w.Now})
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Fatalf("%d pre-shared keys: %v", n, err)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	if few, many := work(500), work(2000); many > 6*few {
		t.Errorf("500 pre-shared keys allocate %d bytes and 2,000 allocate %d", few, many)
	}
}

// The last epoch that a number of 64 bits counts ends in a refusal, not in epoch 0.
func TestAttackLastEpoch(t *testing.T) {
	w := trio(t, 2)
	c := welcoming(t, w)
	c.forged.Info.GroupContext.Epoch = math.MaxUint64
	joined, err := c.join(w, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := joined.Next.Commit(mls.CommitParams{Random: w.Random(), Now: w.Now}); !errors.Is(err, follower.ErrClosed) {
		t.Errorf("a commit in the last epoch: %v", err)
	}
}

// What the caller gets wrong is told, and not found out by everybody else.
func TestParamsAreChecked(t *testing.T) {
	w := trio(t, 2)
	c := w.Members[0]
	cs, err := suite.Lookup(suite.P256AES128GCMSHA256P256)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := cs.GenerateSignatureKey(w.Random())
	if err != nil {
		t.Fatal(err)
	}
	for what, signer := range map[string]*suite.SignatureKey{"no signer": nil, "a signer of another suite": foreign} {
		leaf := c.Leaf(w.Now)
		leaf.Signer = signer
		_, created := c.Config.Create(mls.CreateParams{Random: w.Random(), Now: w.Now, CipherSuite: testSuite, Leaf: leaf})
		_, packed := mls.NewKeyPackage(mls.KeyPackageParams{
			CipherSuite: testSuite, Random: w.Random(), Signer: signer, Credential: c.Credential(), NotBefore: w.Now, NotAfter: w.Now,
		})
		info, err := c.Group.GroupInfo(true, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, joined := c.Config.ExternalJoin(mls.ExternalJoinParams{
			Random: w.Random(), Now: w.Now, GroupInfo: info, Signer: signer, Credential: c.Credential(),
		})
		for where, err := range map[string]error{"create": created, "key package": packed, "external join": joined} {
			if !errors.Is(err, mls.ErrParams) {
				t.Errorf("%s, %s: %v", where, what, err)
			}
		}
	}
	change := mls.LeafChange{Signer: foreign}
	_, committed := c.Group.Commit(mls.CommitParams{Random: w.Random(), Now: w.Now, Leaf: change})
	_, updated := c.Group.ProposeUpdate(mls.ProposeParams{Random: w.Random(), Now: w.Now}, change)
	_, padded := c.Group.Seal(mls.SealParams{Random: w.Random(), PadTo: 1 << 31})
	for where, err := range map[string]error{"commit": committed, "update": updated, "padding": padded} {
		if !errors.Is(err, mls.ErrParams) {
			t.Errorf("%s: %v", where, err)
		}
	}
}

// In a group whose dictionary has the component safe_aad, the authenticated data
// of every message is framed, also of application messages (draft-ietf-mls
// -extensions Section 4.9).
func TestAttackUnframedAuthenticatedData(t *testing.T) {
	w := trio(t, 2)
	framing := mls.AppDataUpdateProposal(wire.ComponentSafeAAD, wire.Marshal(&wire.ComponentsList{}))
	w.Commit(w.Members[0], mls.CommitParams{Proposals: []wire.Proposal{framing}})
	by, reader := w.Members[0], w.Members[1]
	if _, err := by.Group.Seal(mls.SealParams{Random: w.Random(), AuthenticatedData: []byte("bare")}); !errors.Is(err, mls.ErrParams) {
		t.Errorf("sealing: %v", err)
	}
	frame := content(by.Group, wire.ContentTypeApplication)
	frame.ApplicationData, frame.AuthenticatedData = []byte("text"), []byte("bare")
	refused(t, w, reader, by.Group.ForgePrivate(w.Random(), frame, mls.Forged{}), follower.ErrContent)
	items := wire.SafeAAD{AADItems: []wire.SafeAADItem{{ComponentID: 0x8001, AADItemData: []byte("framed")}}}
	sealed, err := by.Group.Seal(mls.SealParams{Random: w.Random(), Content: []byte("text"), AuthenticatedData: wire.Marshal(&items)})
	if err != nil {
		t.Fatal(err)
	}
	by.Take(sealed.Step)
	if _, err := reader.Process(w.Now, sealed.Message); err != nil {
		t.Errorf("framed data: %v", err)
	}
}
