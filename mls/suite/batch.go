package suite

import "github.com/askucher/compax-core/internal/strict25519"

// SignatureBatch collects signatures of one suite and verifies them together:
// for Ed25519 at less than half the price of one by one, for the other
// algorithms at the same. The verdict is that of verifying each
// ([Suite.VerifyWithLabel]), also for signatures that were crafted. A batch is
// for one goroutine; several batches may run side by side.
type SignatureBatch struct {
	suite   *Suite
	ed25519 *strict25519.Batch
	failed  bool
}

// NewSignatureBatch returns an empty batch, which verifies.
func (s *Suite) NewSignatureBatch() *SignatureBatch {
	b := &SignatureBatch{suite: s}
	if _, ok := s.scheme.(ed25519Scheme); ok {
		b.ed25519 = new(strict25519.Batch)
	}
	return b
}

// Add puts one signature into the batch. The arguments are not kept.
func (b *SignatureBatch) Add(public []byte, label string, content, signature []byte) {
	if b.ed25519 != nil {
		b.ed25519.Add(public, signContent(label, content), signature)
		return
	}
	if !b.failed && !b.suite.VerifyWithLabel(public, label, content, signature) {
		b.failed = true
	}
}

// Verify reports whether every signature that was added is right. To learn
// which one is wrong, verify one by one.
func (b *SignatureBatch) Verify() bool {
	return !b.failed && (b.ed25519 == nil || b.ed25519.Verify())
}
