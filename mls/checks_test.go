package mls

import (
	"errors"
	"math"
	"testing"

	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/wire"
)

func checksSuite(t *testing.T) *suite.Suite {
	t.Helper()
	cs, err := suite.Lookup(suite.X25519AES128GCMSHA256Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	return cs
}

// What no message can bring about in the time of a test is refused all the same.
func TestBoundsOfCounters(t *testing.T) {
	cs := checksSuite(t)
	used := &ratchet{secret: Secret("a ratchet secret of 32 bytes ...."), next: maxGenerations}
	if _, _, _, err := used.forSending(cs); !errors.Is(err, ErrGenerationLimit) {
		t.Errorf("a ratchet that is used up: %v", err)
	}
	if _, err := pskSecret(cs, make([]pskInput, math.MaxUint16+1)); !errors.Is(err, ErrParams) {
		t.Errorf("65,536 pre-shared keys: %v", err)
	}
	tree := newSecretTree(Secret("an encryption secret of 32 bytes"), 4)
	if _, _, _, err := tree.ratchetAt(cs, 4, applicationRatchet); !errors.Is(err, ErrUnknownSender) {
		t.Errorf("leaf 4 of a tree of four: %v", err)
	}
}

// Without what the application would decide by, nothing is decided.
func TestMissingCollaborators(t *testing.T) {
	c := &dataChoice{config: &Config{}, dictionary: &wire.AppDataDictionary{}}
	if c.take(&wire.AppDataUpdate{ComponentID: 1, Op: wire.AppDataUpdateOperationUpdate}) {
		t.Error("an update of data that nobody understands is taken")
	}
	if _, err := (&Config{}).psk(wire.PreSharedKeyID{PSKType: wire.PSKTypeExternal}); !errors.Is(err, ErrMissingPSK) {
		t.Errorf("a key out of no store: %v", err)
	}
}

// A stored secret tree holds each secret in one place, and none below a secret
// from which it follows.
func TestSecretTreeTakesOnlyWhatFits(t *testing.T) {
	secret := &secretNode{secret: Secret("a secret")}
	ratchets := &secretNode{ratchets: [2]*ratchet{{}, {}}}
	for _, c := range []struct {
		name   string
		before map[uint32]*secretNode
		index  uint32
		node   *secretNode
		fits   bool
	}{
		{"the root", nil, 3, secret, true},
		{"the last leaf", nil, 6, ratchets, true},
		{"an index behind the last leaf", nil, 7, secret, false},
		{"a node below a secret", map[uint32]*secretNode{1: secret}, 0, ratchets, false},
		{"a node below the root's secret", map[uint32]*secretNode{3: secret}, 1, secret, false},
		{"a node twice", map[uint32]*secretNode{1: secret}, 1, secret, false},
		{"a secret above a left child", map[uint32]*secretNode{0: ratchets}, 1, secret, false},
		{"a secret above a right child", map[uint32]*secretNode{2: ratchets}, 1, secret, false},
		{"a secret at a leaf with ratchets", map[uint32]*secretNode{0: ratchets}, 0, secret, false},
		{"the other half", map[uint32]*secretNode{1: secret}, 5, secret, true},
	} {
		tree := &secretTree{width: 4}
		for index, n := range c.before {
			if !tree.insert(index, n) {
				t.Fatalf("%s: node %d does not fit", c.name, index)
			}
		}
		if got := tree.insert(c.index, c.node); got != c.fits {
			t.Errorf("%s fits: %v", c.name, got)
		}
	}
}

// Records whose keys are no place are refused.
func TestRecordsOutOfPlace(t *testing.T) {
	trees := secretTrees{}
	body := appendRatchet(nil, &ratchet{secret: Secret("a secret")})
	for _, which := range []string{"2", "", "00"} {
		r := Record{Key: epochIndexKey(prefixLeaf, 1, 0) + "/" + which, Value: body}
		if err := trees.add(r, body); !errors.Is(err, ErrState) {
			t.Errorf("%q: %v", r.Key, err)
		}
	}
	own := &ownCommit{content: &wire.AuthenticatedContent{
		WireFormat: wire.WireFormatPublicMessage,
		Content: wire.FramedContent{
			Sender: wire.Sender{SenderType: wire.SenderTypeMember}, ContentType: wire.ContentTypeCommit, Commit: &wire.Commit{},
		},
		Auth: wire.FramedContentAuthData{ConfirmationTag: make([]byte, 32)},
	}}
	g := &Group{cs: checksSuite(t)}
	hash := ownKey([32]byte{1})
	if err := g.readOwn(Record{Key: hash, Value: own.append(nil)}); err != nil {
		t.Fatal(err)
	}
	if err := g.readOwn(Record{Key: hash[:len(hash)-2], Value: own.append(nil)}); !errors.Is(err, ErrState) {
		t.Errorf("a hash of 31 bytes: %v", err)
	}
	sums := newChecksums()
	for _, version := range []byte{0, recordVersion + 1} {
		value := []byte{version, 'b'}
		sum := sums.of("key", value)
		if _, err := sums.openRecord(Record{Key: "key", Value: append(value, sum[:]...)}); !errors.Is(err, ErrState) {
			t.Errorf("version %d: %v", version, err)
		}
	}
}
