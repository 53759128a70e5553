package mls

import (
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

// confirmedTranscriptHash is confirmed_transcript_hash of the epoch that a
// commit starts (RFC 9420 Section 8.2).
func confirmedTranscriptHash(cs *suite.Suite, interimBefore []byte, commit *wire.AuthenticatedContent) []byte {
	input := append([]byte(nil), interimBefore...)
	input = (&wire.ConfirmedTranscriptHashInput{
		WireFormat: commit.WireFormat,
		Content:    &commit.Content,
		Signature:  commit.Auth.Signature,
	}).AppendTo(input)
	return cs.Hash(input)
}

// interimTranscriptHash is interim_transcript_hash of the epoch that a
// confirmation tag confirms (RFC 9420 Section 8.2).
func interimTranscriptHash(cs *suite.Suite, confirmed []byte, tag wire.MAC) []byte {
	input := append([]byte(nil), confirmed...)
	return cs.Hash((&wire.InterimTranscriptHashInput{ConfirmationTag: tag}).AppendTo(input))
}
