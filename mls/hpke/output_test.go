package hpke_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"testing"

	"github.com/askucher/compax-core/mls/hpke"
	"github.com/askucher/compax-core/mls/suite"
)

// What is wrong with a KEM output without any secret, and what the holder of the
// private key finds wrong with it, is the same in every suite: or servers and members
// would come to different verdicts.
func TestKEMOutputHasOneVerdict(t *testing.T) {
	for _, cs := range every(t) {
		key, err := hpke.DeriveKeyPair(cs, bytes.Repeat([]byte{7}, 64))
		if err != nil {
			t.Fatal(err)
		}
		good, _, err := hpke.ExportSender(cs, rand.Reader, key.Public(), "label", 32)
		if err != nil {
			t.Fatal(err)
		}
		tail := func(b ...byte) []byte { return append(bytes.Clone(good[:len(good)-len(b)]), b...) }
		small := make([]byte, 32)
		if cs.KEM() == suite.KEMX448 {
			small = make([]byte, 56)
		}
		for name, output := range map[string][]byte{
			"as it was made": good, "nothing": nil, "one byte less": good[1:], "one byte more": append(bytes.Clone(good), 0),
			"all zeros": make([]byte, len(good)), "all ones": bytes.Repeat([]byte{0xff}, len(good)),
			"zeros at the end": tail(small...), "a one and zeros at the end": tail(append([]byte{1}, small[1:]...)...),
			"the last byte changed": tail(good[len(good)-1] ^ 1),
		} {
			_, err := key.ExportReceiver(output, "label", 32)
			if public := cs.ValidateKEMOutput(output); errors.Is(err, hpke.ErrKey) != errors.Is(public, suite.ErrKey) {
				t.Errorf("%v: %s: with the key %v, without it %v", cs, name, err, public)
			}
		}
	}
}
