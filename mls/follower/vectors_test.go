package follower

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/askucher/compax-core/internal/testdata"
	"github.com/askucher/compax-core/mls/suite"
	_ "github.com/askucher/compax-core/mls/suite/suite448"
	"github.com/askucher/compax-core/mls/wire"
)

// TestVectorsTranscriptHashes: every case, in every suite (§8.2).
func TestVectorsTranscriptHashes(t *testing.T) {
	type vector struct {
		CipherSuite          wire.CipherSuite `json:"cipher_suite"`
		ConfirmationKey      testdata.Hex     `json:"confirmation_key"`
		AuthenticatedContent testdata.Hex     `json:"authenticated_content"`
		InterimBefore        testdata.Hex     `json:"interim_transcript_hash_before"`
		ConfirmedAfter       testdata.Hex     `json:"confirmed_transcript_hash_after"`
		InterimAfter         testdata.Hex     `json:"interim_transcript_hash_after"`
	}
	const file = "transcript-hashes.json"
	for i, v := range testdata.Vectors[vector](t, file) {
		t.Run(fmt.Sprintf("suite%d/%d", v.CipherSuite, i), func(t *testing.T) {
			testdata.Ran(t, file, uint16(v.CipherSuite))
			cs, err := suite.Lookup(v.CipherSuite)
			if err != nil {
				t.Fatal(err)
			}
			var ac wire.AuthenticatedContent
			if err := wire.Unmarshal(v.AuthenticatedContent, &ac); err != nil {
				t.Fatal(err)
			}
			confirmed := confirmedTranscriptHash(cs, v.InterimBefore, &ac)
			if !bytes.Equal(confirmed, v.ConfirmedAfter) {
				t.Errorf("confirmed_transcript_hash: got %x, want %x", confirmed, []byte(v.ConfirmedAfter))
			}
			if interim := interimTranscriptHash(cs, confirmed, ac.Auth.ConfirmationTag); !bytes.Equal(interim, v.InterimAfter) {
				t.Errorf("interim_transcript_hash: got %x, want %x", interim, []byte(v.InterimAfter))
			}
			if !cs.VerifyMAC(v.ConfirmationKey, confirmed, ac.Auth.ConfirmationTag) {
				t.Error("confirmation_tag does not verify")
			}
			v.InterimBefore[0] ^= 1
			if bytes.Equal(confirmedTranscriptHash(cs, v.InterimBefore, &ac), v.ConfirmedAfter) {
				t.Error("a flipped bit of the hash before changes nothing")
			}
		})
	}
}
