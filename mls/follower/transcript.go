package follower

import (
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// confirmedTranscriptHash is confirmed_transcript_hash of the epoch that a
// commit starts (§8.2). interim is interim_transcript_hash of the epoch before.
func confirmedTranscriptHash(cs *suite.Suite, interim []byte, commit *wire.AuthenticatedContent) []byte {
	input := wire.ConfirmedTranscriptHashInput{WireFormat: commit.WireFormat, Content: &commit.Content, Signature: commit.Auth.Signature}
	return cs.Hash(input.AppendTo(append(make([]byte, 0, 4096), interim...)))
}

// interimTranscriptHash is interim_transcript_hash of the epoch that a
// confirmation tag confirms (§8.2).
func interimTranscriptHash(cs *suite.Suite, confirmed []byte, tag wire.MAC) []byte {
	input := wire.InterimTranscriptHashInput{ConfirmationTag: tag}
	return cs.Hash(input.AppendTo(append(make([]byte, 0, 160), confirmed...)))
}
