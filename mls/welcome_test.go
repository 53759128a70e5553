package mls

import (
	"errors"
	"testing"

	"github.com/askucher/compax-core/internal/testdata"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

func TestVectorsWelcome(t *testing.T) {
	type vector struct {
		CipherSuite wire.CipherSuite `json:"cipher_suite"`
		InitPriv    testdata.Hex     `json:"init_priv"`
		SignerPub   testdata.Hex     `json:"signer_pub"`
		KeyPackage  testdata.Hex     `json:"key_package"`
		Welcome     testdata.Hex
	}
	eachVector(t, "welcome.json", func(v vector) wire.CipherSuite { return v.CipherSuite }, func(t *testing.T, cs *suite.Suite, v vector) {
		var kp, welcome wire.MLSMessage
		if err := wire.Unmarshal(v.KeyPackage, &kp); err != nil {
			t.Fatal(err)
		}
		if err := wire.Unmarshal(v.Welcome, &welcome); err != nil {
			t.Fatal(err)
		}
		bundle := &KeyPackageBundle{KeyPackage: *kp.KeyPackage, InitPrivate: Secret(v.InitPriv)}
		secrets, err := openGroupSecrets(cs, welcome.Welcome, bundle)
		if err != nil {
			t.Fatal(err)
		}
		psk, err := pskSecret(cs, nil)
		if err != nil {
			t.Fatal(err)
		}
		member := memberSecret(cs, secrets.JoinerSecret, psk)
		info, err := openGroupInfo(cs, welcome.Welcome, member)
		if err != nil {
			t.Fatal(err)
		}
		if !cs.VerifyWithLabel(v.SignerPub, "GroupInfoTBS", wire.Marshal((*wire.GroupInfoTBS)(info)), info.Signature) {
			t.Error("the signature of the GroupInfo does not verify")
		}
		keys := deriveEpoch(cs, member, wire.Marshal(&info.GroupContext))
		if !cs.VerifyMAC(keys.confirmation, info.GroupContext.ConfirmedTranscriptHash, info.ConfirmationTag) {
			t.Error("the confirmation tag does not verify")
		}
		w := *welcome.Welcome
		w.EncryptedGroupInfo = flip(w.EncryptedGroupInfo)
		if _, err := openGroupSecrets(cs, &w, bundle); !errors.Is(err, ErrDecrypt) {
			t.Errorf("a flipped bit of the group info: %v", err)
		}
	})
}
