package mls

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/askucher/compax-core/internal/testdata"
	_ "github.com/askucher/compax-core/mls/hpke/hpke448" // suites 4 and 6
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// eachVector runs every case of a file as a subtest named by suite and number,
// and reports how many there were per suite.
func eachVector[T any](t *testing.T, name string, of func(T) wire.CipherSuite, run func(*testing.T, *suite.Suite, T)) {
	counts := map[wire.CipherSuite]int{}
	for i, c := range testdata.Vectors[T](t, name) {
		counts[of(c)]++
		t.Run(fmt.Sprintf("suite%d/%d", of(c), i), func(t *testing.T) {
			testdata.Ran(t, name, uint16(of(c)))
			cs, err := suite.Lookup(of(c))
			if err != nil {
				t.Fatal(err)
			}
			run(t, cs, c)
		})
	}
	for id := wire.CipherSuite(1); id <= 7; id++ {
		t.Logf("%s: suite %d: %d cases", name, id, counts[id])
	}
}

func wantBytes(t *testing.T, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s: got %x, want %x", what, []byte(got), want)
	}
}

// vectorScalar reads a private key of the vectors, in which the scalars of P-521
// come without leading zero bytes.
func vectorScalar(cs *suite.Suite, private []byte) []byte {
	if cs.ID() == suite.P521AES256GCMSHA512P521 && len(private) < 66 {
		return append(make([]byte, 66-len(private)), private...)
	}
	return private
}

func vectorSigner(cs *suite.Suite, private []byte) (*suite.SignatureKey, error) {
	return cs.NewSignatureKey(vectorScalar(cs, private))
}

// flip gives b with one bit changed.
func flip(b []byte) []byte {
	c := bytes.Clone(b)
	c[len(c)/2] ^= 1
	return c
}

func TestVectorsKeySchedule(t *testing.T) {
	type vector struct {
		CipherSuite       wire.CipherSuite `json:"cipher_suite"`
		GroupID           testdata.Hex     `json:"group_id"`
		InitialInitSecret testdata.Hex     `json:"initial_init_secret"`
		Epochs            []struct {
			CommitSecret            testdata.Hex `json:"commit_secret"`
			PSKSecret               testdata.Hex `json:"psk_secret"`
			TreeHash                testdata.Hex `json:"tree_hash"`
			ConfirmedTranscriptHash testdata.Hex `json:"confirmed_transcript_hash"`
			GroupContext            testdata.Hex `json:"group_context"`
			JoinerSecret            testdata.Hex `json:"joiner_secret"`
			WelcomeSecret           testdata.Hex `json:"welcome_secret"`
			InitSecret              testdata.Hex `json:"init_secret"`
			SenderDataSecret        testdata.Hex `json:"sender_data_secret"`
			EncryptionSecret        testdata.Hex `json:"encryption_secret"`
			ExporterSecret          testdata.Hex `json:"exporter_secret"`
			EpochAuthenticator      testdata.Hex `json:"epoch_authenticator"`
			ExternalSecret          testdata.Hex `json:"external_secret"`
			ConfirmationKey         testdata.Hex `json:"confirmation_key"`
			MembershipKey           testdata.Hex `json:"membership_key"`
			ResumptionPSK           testdata.Hex `json:"resumption_psk"`
			ExternalPub             testdata.Hex `json:"external_pub"`
			Exporter                struct {
				Label   string
				Context testdata.Hex
				Length  int
				Secret  testdata.Hex
			}
		}
	}
	eachVector(t, "key-schedule.json", func(v vector) wire.CipherSuite { return v.CipherSuite }, func(t *testing.T, cs *suite.Suite, v vector) {
		init := Secret(v.InitialInitSecret)
		for i, e := range v.Epochs {
			context := wire.Marshal(&wire.GroupContext{
				CipherSuite: v.CipherSuite, GroupID: v.GroupID, Epoch: uint64(i),
				TreeHash: e.TreeHash, ConfirmedTranscriptHash: e.ConfirmedTranscriptHash,
			})
			wantBytes(t, "group_context", context, e.GroupContext)
			joiner := joinerSecret(cs, init, Secret(e.CommitSecret), context)
			wantBytes(t, "joiner_secret", joiner, e.JoinerSecret)
			member := memberSecret(cs, joiner, Secret(e.PSKSecret))
			wantBytes(t, "welcome_secret", welcomeSecret(cs, member), e.WelcomeSecret)
			keys := deriveEpoch(cs, member, context)
			wantBytes(t, "init_secret", keys.init, e.InitSecret)
			wantBytes(t, "sender_data_secret", keys.senderData, e.SenderDataSecret)
			wantBytes(t, "encryption_secret", keys.encryption, e.EncryptionSecret)
			wantBytes(t, "exporter_secret", keys.exporter, e.ExporterSecret)
			wantBytes(t, "epoch_authenticator", keys.authenticator, e.EpochAuthenticator)
			wantBytes(t, "external_secret", keys.external, e.ExternalSecret)
			wantBytes(t, "confirmation_key", keys.confirmation, e.ConfirmationKey)
			wantBytes(t, "membership_key", keys.membership, e.MembershipKey)
			wantBytes(t, "resumption_psk", keys.resumption, e.ResumptionPSK)
			external, err := externalKey(cs, keys.external)
			if err != nil {
				t.Fatal(err)
			}
			wantBytes(t, "external_pub", external.Public(), e.ExternalPub)
			wantBytes(t, "exporter", exportSecret(cs, keys.exporter, e.Exporter.Label, e.Exporter.Context, e.Exporter.Length), e.Exporter.Secret)
			other := joinerSecret(cs, init, Secret(flip(e.CommitSecret)), context)
			if other.Equal(e.JoinerSecret) {
				t.Error("a flipped bit of commit_secret changes nothing")
			}
			init = keys.init
		}
	})
}

func TestVectorsPSKSecret(t *testing.T) {
	type vector struct {
		CipherSuite wire.CipherSuite `json:"cipher_suite"`
		PSKs        []struct {
			ID    testdata.Hex `json:"psk_id"`
			PSK   testdata.Hex
			Nonce testdata.Hex `json:"psk_nonce"`
		}
		PSKSecret testdata.Hex `json:"psk_secret"`
	}
	eachVector(t, "psk_secret.json", func(v vector) wire.CipherSuite { return v.CipherSuite }, func(t *testing.T, cs *suite.Suite, v vector) {
		var inputs []pskInput
		for _, p := range v.PSKs {
			inputs = append(inputs, pskInput{
				id:     wire.PreSharedKeyID{PSKType: wire.PSKTypeExternal, PSKID: p.ID, PSKNonce: p.Nonce},
				secret: Secret(p.PSK),
			})
		}
		got, err := pskSecret(cs, inputs)
		if err != nil {
			t.Fatal(err)
		}
		wantBytes(t, "psk_secret", got, v.PSKSecret)
		for i := range inputs {
			inputs[i].secret = flip(inputs[i].secret)
			if got, _ := pskSecret(cs, inputs); got.Equal(v.PSKSecret) {
				t.Error("a flipped bit of a PSK changes nothing")
			}
			inputs[i].secret = Secret(v.PSKs[i].PSK)
		}
	})
}

func TestVectorsSecretTree(t *testing.T) {
	type vector struct {
		CipherSuite      wire.CipherSuite `json:"cipher_suite"`
		EncryptionSecret testdata.Hex     `json:"encryption_secret"`
		SenderData       struct {
			Secret     testdata.Hex `json:"sender_data_secret"`
			Ciphertext testdata.Hex
			Key        testdata.Hex
			Nonce      testdata.Hex
		} `json:"sender_data"`
		Leaves [][]struct {
			Generation       uint32
			ApplicationKey   testdata.Hex `json:"application_key"`
			ApplicationNonce testdata.Hex `json:"application_nonce"`
			HandshakeKey     testdata.Hex `json:"handshake_key"`
			HandshakeNonce   testdata.Hex `json:"handshake_nonce"`
		}
	}
	eachVector(t, "secret-tree.json", func(v vector) wire.CipherSuite { return v.CipherSuite }, func(t *testing.T, cs *suite.Suite, v vector) {
		key, nonce := senderDataKeys(cs, Secret(v.SenderData.Secret), v.SenderData.Ciphertext)
		wantBytes(t, "sender data key", key, v.SenderData.Key)
		wantBytes(t, "sender data nonce", nonce, v.SenderData.Nonce)
		if key, _ := senderDataKeys(cs, Secret(v.SenderData.Secret), flip(v.SenderData.Ciphertext[:cs.HashSize()])); key.Equal(v.SenderData.Key) {
			t.Error("a flipped bit of the sample changes nothing")
		}
		tree := newSecretTree(Secret(bytes.Clone(v.EncryptionSecret)), uint32(len(v.Leaves)))
		take := func(leaf int, which ratchetType, generation uint32) messageKey {
			next, r, change, err := tree.ratchetAt(cs, uint32(leaf), which)
			if err != nil {
				t.Fatal(err)
			}
			key, after, forget, err := r.forReceiving(cs, generation, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			key.key, key.nonce = key.key.clone(), key.nonce.clone()
			tree = next.with(uint32(leaf), which, after)
			wipeAll(change.forget)
			wipeAll(forget)
			if !tree.complete() {
				t.Fatal("the tree lost a leaf")
			}
			if _, _, _, err := after.forReceiving(cs, generation, Limits{}); err == nil {
				t.Fatal("a key is given twice")
			}
			return key
		}
		for i, leaf := range v.Leaves {
			for _, g := range leaf {
				application := take(i, applicationRatchet, g.Generation)
				wantBytes(t, "application_key", application.key, g.ApplicationKey)
				wantBytes(t, "application_nonce", application.nonce, g.ApplicationNonce)
				handshake := take(i, handshakeRatchet, g.Generation)
				wantBytes(t, "handshake_key", handshake.key, g.HandshakeKey)
				wantBytes(t, "handshake_nonce", handshake.nonce, g.HandshakeNonce)
			}
		}
	})
}
