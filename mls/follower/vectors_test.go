package follower

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/askucher/compax-core/internal/testdata"
	"github.com/askucher/compax-core/mls/suite"
	_ "github.com/askucher/compax-core/mls/suite/suite448"
	"github.com/askucher/compax-core/mls/wire"
)

type hexBytes []byte

func (h *hexBytes) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	var err error
	*h, err = hex.DecodeString(s)
	return err
}

// TestVectorsTranscriptHashes: every case, in every suite (§8.2).
func TestVectorsTranscriptHashes(t *testing.T) {
	var cases []struct {
		CipherSuite          wire.CipherSuite `json:"cipher_suite"`
		ConfirmationKey      hexBytes         `json:"confirmation_key"`
		AuthenticatedContent hexBytes         `json:"authenticated_content"`
		InterimBefore        hexBytes         `json:"interim_transcript_hash_before"`
		ConfirmedAfter       hexBytes         `json:"confirmed_transcript_hash_after"`
		InterimAfter         hexBytes         `json:"interim_transcript_hash_after"`
	}
	const file = "transcript-hashes.json"
	if err := json.Unmarshal(testdata.Shared(t, "mls-vectors/"+file), &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) == 0 {
		t.Fatal("the file holds no case")
	}
	for i, v := range cases {
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
