package mls

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/askucher/compax-core/internal/testdata"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

type passiveVector struct {
	CipherSuite  wire.CipherSuite `json:"cipher_suite"`
	ExternalPSKs []struct {
		ID  testdata.Hex `json:"psk_id"`
		PSK testdata.Hex
	} `json:"external_psks"`
	KeyPackage                testdata.Hex  `json:"key_package"`
	SignaturePriv             testdata.Hex  `json:"signature_priv"`
	EncryptionPriv            testdata.Hex  `json:"encryption_priv"`
	InitPriv                  testdata.Hex  `json:"init_priv"`
	Welcome                   testdata.Hex  `json:"welcome"`
	RatchetTree               *testdata.Hex `json:"ratchet_tree"`
	InitialEpochAuthenticator testdata.Hex  `json:"initial_epoch_authenticator"`
	Epochs                    []struct {
		Proposals          []testdata.Hex
		Commit             testdata.Hex
		EpochAuthenticator testdata.Hex `json:"epoch_authenticator"`
	}
}

func TestVectorsPassiveClientWelcome(t *testing.T) { runPassive(t, "passive-client-welcome.json") }

func TestVectorsPassiveClientHandlingCommit(t *testing.T) {
	runPassive(t, "passive-client-handling-commit.json")
}

func TestVectorsPassiveClientRandom(t *testing.T) { runPassive(t, "passive-client-random.json") }

func runPassive(t *testing.T, name string) {
	t.Parallel()
	eachVector(t, name, func(v passiveVector) wire.CipherSuite { return v.CipherSuite }, func(t *testing.T, cs *suite.Suite, v passiveVector) {
		now := time.Unix(0, 0)
		config, join := v.client(t, cs)
		joined, err := config.Join(join)
		if err != nil {
			t.Fatal(err)
		}
		g := joined.Next
		store := map[string][]byte{}
		joined.Delta.ApplyTo(store)
		wantBytes(t, "initial_epoch_authenticator", g.EpochAuthenticator(), v.InitialEpochAuthenticator)
		bad := join
		bad.Welcome = flip(join.Welcome)
		if _, err := config.Join(bad); err == nil {
			t.Error("joins by a Welcome with a flipped bit")
		}
		for i, e := range v.Epochs {
			for _, p := range e.Proposals {
				r, err := g.Process(p, ProcessParams{Now: now})
				if err != nil {
					t.Fatalf("epoch %d: proposal: %v", i, err)
				}
				received := r.(*ProposalReceived)
				received.Delta.ApplyTo(store)
				received.Forget()
				g = received.Next
			}
			if i%16 == 3 {
				g = reload(t, config, store, g)
			}
			refused := bytes.Clone(e.Commit)
			refused[len(refused)-1] ^= 1
			before := MarshalRecords(g.Records())
			if _, err := g.Process(refused, ProcessParams{Now: now}); err == nil {
				t.Fatalf("epoch %d: a commit with a flipped bit is taken", i)
			}
			if !bytes.Equal(before, MarshalRecords(g.Records())) {
				t.Fatalf("epoch %d: the refusal changed the group", i)
			}
			r, err := g.Process(e.Commit, ProcessParams{Now: now})
			if err != nil {
				t.Fatalf("epoch %d: %v", i, err)
			}
			staged := r.(*StagedCommit)
			staged.Delta.ApplyTo(store)
			staged.Forget()
			g = staged.Next
			if !g.EpochAuthenticator().Equal(e.EpochAuthenticator) {
				t.Fatalf("epoch %d: another epoch_authenticator", i)
			}
		}
		reload(t, config, store, g)
	})
}

// client gives the configuration and the Welcome of a vector's client.
func (v *passiveVector) client(t *testing.T, cs *suite.Suite) (*Config, JoinParams) {
	t.Helper()
	signer, err := vectorSigner(cs, v.SignaturePriv)
	if err != nil {
		t.Fatal(err)
	}
	var kp wire.MLSMessage
	if err := wire.Unmarshal(v.KeyPackage, &kp); err != nil {
		t.Fatal(err)
	}
	psks := PSKs{}
	for _, p := range v.ExternalPSKs {
		psks[string(p.ID)] = Secret(p.PSK)
	}
	join := JoinParams{
		Welcome: v.Welcome,
		Bundles: []*KeyPackageBundle{{
			KeyPackage: *kp.KeyPackage, InitPrivate: vectorScalar(cs, v.InitPriv), EncryptionPrivate: vectorScalar(cs, v.EncryptionPriv),
		}},
	}
	if v.RatchetTree != nil {
		join.Tree = *v.RatchetTree
	}
	return &Config{Signers: []*suite.SignatureKey{signer}, PSKs: psks}, join
}

// reload reads the group from the store that its deltas filled and compares it
// with the one in memory.
func reload(t *testing.T, c *Config, store map[string][]byte, g *Group) *Group {
	t.Helper()
	var records []Record
	for key, value := range store {
		records = append(records, Record{Key: key, Value: value})
	}
	loaded, err := c.Load(records)
	if err != nil {
		t.Fatalf("loading: %v", err)
	}
	sameState(t, loaded, g)
	return loaded
}

// sameState compares all that two groups would store.
func sameState(t *testing.T, a, b *Group) {
	t.Helper()
	x, y := a.Records(), b.Records()
	if !bytes.Equal(MarshalRecords(x), MarshalRecords(y)) {
		t.Fatalf("the states differ: %s", diff(x, y))
	}
}

func diff(a, b []Record) string {
	have := map[string][]byte{}
	for _, r := range a {
		have[r.Key] = r.Value
	}
	out := ""
	for _, r := range b {
		if v, ok := have[r.Key]; !ok {
			out += fmt.Sprintf(" missing %s", r.Key)
		} else if !bytes.Equal(v, r.Value) {
			out += fmt.Sprintf(" differs %s", r.Key)
		}
		delete(have, r.Key)
	}
	for key := range have {
		out += fmt.Sprintf(" surplus %s", key)
	}
	return out
}
