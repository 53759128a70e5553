package wire

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"
)

// codec is what every structure that travels can do.
type codec interface {
	Encoder
	Decoder
}

// structures makes an empty value of every structure that can be decoded on
// its own.
var structures = map[string]func() codec{
	"MLSMessage":             func() codec { return new(MLSMessage) },
	"PublicMessage":          func() codec { return new(PublicMessage) },
	"PrivateMessage":         func() codec { return new(PrivateMessage) },
	"AuthenticatedContent":   func() codec { return new(AuthenticatedContent) },
	"FramedContent":          func() codec { return new(FramedContent) },
	"Sender":                 func() codec { return new(Sender) },
	"SenderData":             func() codec { return new(SenderData) },
	"PrivateApplication":     func() codec { return &PrivateMessageContent{ContentType: ContentTypeApplication} },
	"PrivateProposal":        func() codec { return &PrivateMessageContent{ContentType: ContentTypeProposal} },
	"PrivateCommit":          func() codec { return &PrivateMessageContent{ContentType: ContentTypeCommit} },
	"Proposal":               func() codec { return new(Proposal) },
	"ProposalOrRef":          func() codec { return new(ProposalOrRef) },
	"Commit":                 func() codec { return new(Commit) },
	"UpdatePath":             func() codec { return new(UpdatePath) },
	"LeafNode":               func() codec { return new(LeafNode) },
	"ParentNode":             func() codec { return new(ParentNode) },
	"Node":                   func() codec { return new(Node) },
	"RatchetTree":            func() codec { return new(RatchetTree) },
	"KeyPackage":             func() codec { return new(KeyPackage) },
	"GroupContext":           func() codec { return new(GroupContext) },
	"GroupInfo":              func() codec { return new(GroupInfo) },
	"GroupSecrets":           func() codec { return new(GroupSecrets) },
	"Welcome":                func() codec { return new(Welcome) },
	"PreSharedKeyID":         func() codec { return new(PreSharedKeyID) },
	"Credential":             func() codec { return new(Credential) },
	"Capabilities":           func() codec { return new(Capabilities) },
	"Extensions":             func() codec { return new(Extensions) },
	"RequiredCapabilities":   func() codec { return new(RequiredCapabilities) },
	"ExternalSenders":        func() codec { return new(ExternalSenders) },
	"ExternalPub":            func() codec { return new(ExternalPub) },
	"ApplicationID":          func() codec { return new(ApplicationID) },
	"WireFormats":            func() codec { return new(WireFormats) },
	"AppDataDictionary":      func() codec { return new(AppDataDictionary) },
	"AppDataUpdate":          func() codec { return new(AppDataUpdate) },
	"AppEphemeral":           func() codec { return new(AppEphemeral) },
	"ComponentsList":         func() codec { return new(ComponentsList) },
	"SafeAAD":                func() codec { return new(SafeAAD) },
	"ReInit":                 func() codec { return new(ReInit) },
	"GroupContextExtensions": func() codec { return new(GroupContextExtensions) },
}

// pick returns one of the values.
func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// fill sets v to a random value that has an encoding: enumerations get values
// that the structure allows, every case of a select is there.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	switch p := v.Addr().Interface().(type) {
	case *ContentType:
		*p = pick(r, ContentTypeApplication, ContentTypeProposal, ContentTypeCommit)
		return
	case *SenderType:
		*p = pick(r, SenderTypeMember, SenderTypeExternal, SenderTypeNewMemberProposal, SenderTypeNewMemberCommit)
		return
	case *WireFormat:
		*p = WireFormat(1 + r.IntN(5))
		return
	case *ProposalType:
		*p = ProposalType(1 + r.IntN(12)) // two of them unknown
		return
	case *CredentialType:
		*p = CredentialType(1 + r.IntN(3)) // one of them unknown
		return
	case *LeafNodeSource:
		*p = pick(r, LeafNodeSourceKeyPackage, LeafNodeSourceUpdate, LeafNodeSourceCommit)
		return
	case *NodeType:
		*p = pick(r, NodeTypeLeaf, NodeTypeParent)
		return
	case *PSKType:
		*p = pick(r, PSKTypeExternal, PSKTypeResumption, PSKTypeApplication)
		return
	case *ResumptionPSKUsage:
		*p = pick(r, ResumptionPSKUsageApplication, ResumptionPSKUsageReInit, ResumptionPSKUsageBranch)
		return
	case *ProposalOrRefType:
		*p = pick(r, ProposalOrRefTypeProposal, ProposalOrRefTypeReference)
		return
	case *AppDataUpdateOperation:
		*p = pick(r, AppDataUpdateOperationUpdate, AppDataUpdateOperationRemove)
		return
	case *AppDataDictionary:
		for id := range ComponentID(r.IntN(5)) {
			*p = p.With(id*7, randomBytes(r))
		}
		return
	case *SafeAAD:
		for id := range ComponentID(r.IntN(5)) {
			p.AADItems = append(p.AADItems, SafeAADItem{ComponentID: id * 5, AADItemData: randomBytes(r)})
		}
		return
	case *RatchetTree:
		for range r.IntN(6) {
			var n *Node
			if r.IntN(3) > 0 {
				n = new(Node)
				fill(r, reflect.ValueOf(n).Elem(), depth+1)
			}
			*p = append(*p, n)
		}
		return
	case **UpdatePath, **PathSecret:
		if r.IntN(2) == 0 {
			return // optional and absent
		}
	case *PrivateMessageContent:
		fill(r, reflect.ValueOf(&p.Auth).Elem(), depth)
		p.ApplicationData, p.Padding = randomBytes(r), r.IntN(70)
		p.Proposal, p.Commit = new(Proposal), new(Commit)
		fill(r, reflect.ValueOf(p.Proposal).Elem(), depth+1)
		fill(r, reflect.ValueOf(p.Commit).Elem(), depth+1)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(r, v.Elem(), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i), depth+1)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(randomBytes(r))
			return
		}
		n := r.IntN(4)
		if depth > 6 {
			n = r.IntN(2)
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(r, v.Index(i), depth+1)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i), depth+1)
		}
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(r.Uint64() & (1<<v.Type().Bits() - 1))
	default:
		panic("fill: " + v.Type().String())
	}
}

// randomBytes returns a string around one of the sizes where lengths change
// their form.
func randomBytes(r *rand.Rand) []byte {
	n := pick(r, 0, 1, 16, 32, 63, 64, 65, 200)
	if r.IntN(400) == 0 {
		n = pick(r, 1<<14-1, 1<<14)
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// random returns a random structure of a kind and its encoding.
func random(r *rand.Rand, fresh func() codec) []byte {
	v := fresh()
	fill(r, reflect.ValueOf(v).Elem(), 0)
	return Marshal(v)
}

// TestRoundTripRandomStructures encodes random structures of every kind and
// decodes them: same value, same bytes.
func TestRoundTripRandomStructures(t *testing.T) {
	for name, fresh := range structures {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(200) {
				data := random(rand.New(rand.NewPCG(seed, 1)), fresh)
				first, second := fresh(), fresh()
				if err := Unmarshal(data, first); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				again := Marshal(first)
				if !bytes.Equal(again, data) {
					t.Fatalf("seed %d: encodes to %x, was %x", seed, again, data)
				}
				if err := Unmarshal(again, second); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if !reflect.DeepEqual(first, second) {
					t.Fatalf("seed %d: decoded twice, two values", seed)
				}
			}
		})
	}
}

// TestEveryTruncationIsRefused cuts random structures at every byte.
func TestEveryTruncationIsRefused(t *testing.T) {
	for name, fresh := range structures {
		if _, padded := fresh().(*PrivateMessageContent); padded {
			continue // ends with padding of any length
		}
		for seed := range uint64(20) {
			data := random(rand.New(rand.NewPCG(seed, 2)), fresh)
			for n := 0; n < len(data); n += 1 + len(data)/500 {
				if err := Unmarshal(data[:n], fresh()); err == nil {
					t.Errorf("%s, seed %d: %d of %d bytes accepted", name, seed, n, len(data))
				}
			}
		}
	}
}

// TestDecodedValuesDoNotShareTheInput changes the input after decoding.
func TestDecodedValuesDoNotShareTheInput(t *testing.T) {
	data := random(rand.New(rand.NewPCG(7, 7)), structures["KeyPackage"])
	var k KeyPackage
	if err := Unmarshal(data, &k); err != nil {
		t.Fatal(err)
	}
	want := bytes.Clone(data)
	clear(data)
	if !bytes.Equal(Marshal(&k), want) {
		t.Error("the KeyPackage changed with the bytes it was decoded from")
	}
	leaf := k.LeafNode.Clone()
	before := Marshal(leaf)
	for _, b := range [][]byte{k.LeafNode.EncryptionKey, k.LeafNode.SignatureKey, k.LeafNode.Signature,
		k.LeafNode.Credential.Identity, k.LeafNode.Credential.Unknown, k.LeafNode.ParentHash} {
		clear(b)
	}
	clear(k.LeafNode.Extensions)
	clear(k.LeafNode.Credential.Certificates)
	clear(k.LeafNode.Capabilities.Proposals)
	if !bytes.Equal(Marshal(leaf), before) {
		t.Error("a cloned leaf changed with the original")
	}
}

// TestTreeOfTenThousandLeaves encodes and decodes a tree whose length needs
// four bytes many times over.
func TestTreeOfTenThousandLeaves(t *testing.T) {
	r := rand.New(rand.NewPCG(10, 10))
	var tree RatchetTree
	for i := range 2*10000 - 1 {
		n := &Node{NodeType: NodeTypeLeaf, LeafNode: &LeafNode{
			EncryptionKey: randomBytes(r), SignatureKey: randomBytes(r), Credential: BasicCredential(randomBytes(r)),
			LeafNodeSource: LeafNodeSourceCommit, ParentHash: randomBytes(r), Signature: randomBytes(r),
		}}
		if i%2 == 1 {
			n = &Node{NodeType: NodeTypeParent, ParentNode: &ParentNode{EncryptionKey: randomBytes(r), UnmergedLeaves: []uint32{uint32(i)}}}
		}
		if i%7 == 3 {
			n = nil
		}
		tree = append(tree, n)
	}
	data := Marshal(&tree)
	var back RatchetTree
	if err := Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if len(back) != len(tree) || !bytes.Equal(Marshal(&back), data) {
		t.Errorf("%d of %d nodes, or other bytes", len(back), len(tree))
	}
}

// TestLengthsOfVectorsGrow closes vectors around every length at which the
// length itself grows, nested in one another.
func TestLengthsOfVectorsGrow(t *testing.T) {
	for _, n := range []int{0, 1, 61, 62, 63, 64, 16379, 16380, 16381, 16382, 16383, 16384, 70000} {
		body := bytes.Repeat([]byte{0xab}, n)
		b, outer := OpenVector([]byte("before"))
		b, inner := OpenVector(b)
		b = CloseVector(append(b, body...), inner)
		b = CloseVector(b, outer)
		r := NewReader(b)
		if string(r.Bytes(6)) != "before" {
			t.Fatal("what was there before changed")
		}
		limit := r.EnterVector()
		got := r.Opaque()
		r.LeaveVector(limit)
		if err := r.Finish(); err != nil || !bytes.Equal(got, body) {
			t.Errorf("%d bytes: %d came back, %v", n, len(got), err)
		}
	}
}
