package wire

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// fuzzStructure decodes arbitrary bytes as one kind of structure: no panic, and
// what decodes encodes to the same bytes. The seeds are random structures of
// every shape, so that plain go test replays them.
func fuzzStructure(f *testing.F, name string) {
	fresh := structures[name]
	f.Add([]byte(nil))
	for seed := range uint64(32) {
		data := random(rand.New(rand.NewPCG(seed, 3)), fresh)
		if len(data) > 4<<10 && seed > 0 {
			continue // small seeds make a fast fuzzer
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v := fresh()
		if err := Unmarshal(data, v); err != nil {
			return
		}
		if again := Marshal(v); !bytes.Equal(again, data) {
			t.Fatalf("%x encodes to %x", data, again)
		}
	})
}

// TestEveryStructureHasAFuzzTarget counts the targets below.
func TestEveryStructureHasAFuzzTarget(t *testing.T) {
	for name := range structures {
		if !fuzzed[name] {
			t.Errorf("%s has no fuzz target", name)
		}
	}
}

var fuzzed = map[string]bool{
	"MLSMessage":             true,
	"PublicMessage":          true,
	"PrivateMessage":         true,
	"AuthenticatedContent":   true,
	"FramedContent":          true,
	"Sender":                 true,
	"SenderData":             true,
	"PrivateApplication":     true,
	"PrivateProposal":        true,
	"PrivateCommit":          true,
	"Proposal":               true,
	"ProposalOrRef":          true,
	"Commit":                 true,
	"UpdatePath":             true,
	"LeafNode":               true,
	"ParentNode":             true,
	"Node":                   true,
	"RatchetTree":            true,
	"KeyPackage":             true,
	"GroupContext":           true,
	"GroupInfo":              true,
	"GroupSecrets":           true,
	"Welcome":                true,
	"PreSharedKeyID":         true,
	"Credential":             true,
	"Capabilities":           true,
	"Extensions":             true,
	"RequiredCapabilities":   true,
	"ExternalSenders":        true,
	"ExternalPub":            true,
	"ApplicationID":          true,
	"WireFormats":            true,
	"AppDataDictionary":      true,
	"AppDataUpdate":          true,
	"AppEphemeral":           true,
	"ComponentsList":         true,
	"SafeAAD":                true,
	"ReInit":                 true,
	"GroupContextExtensions": true,
}

func FuzzMLSMessage(f *testing.F)             { fuzzStructure(f, "MLSMessage") }
func FuzzPublicMessage(f *testing.F)          { fuzzStructure(f, "PublicMessage") }
func FuzzPrivateMessage(f *testing.F)         { fuzzStructure(f, "PrivateMessage") }
func FuzzAuthenticatedContent(f *testing.F)   { fuzzStructure(f, "AuthenticatedContent") }
func FuzzFramedContent(f *testing.F)          { fuzzStructure(f, "FramedContent") }
func FuzzSender(f *testing.F)                 { fuzzStructure(f, "Sender") }
func FuzzSenderData(f *testing.F)             { fuzzStructure(f, "SenderData") }
func FuzzPrivateApplication(f *testing.F)     { fuzzStructure(f, "PrivateApplication") }
func FuzzPrivateProposal(f *testing.F)        { fuzzStructure(f, "PrivateProposal") }
func FuzzPrivateCommit(f *testing.F)          { fuzzStructure(f, "PrivateCommit") }
func FuzzProposal(f *testing.F)               { fuzzStructure(f, "Proposal") }
func FuzzProposalOrRef(f *testing.F)          { fuzzStructure(f, "ProposalOrRef") }
func FuzzCommit(f *testing.F)                 { fuzzStructure(f, "Commit") }
func FuzzUpdatePath(f *testing.F)             { fuzzStructure(f, "UpdatePath") }
func FuzzLeafNode(f *testing.F)               { fuzzStructure(f, "LeafNode") }
func FuzzParentNode(f *testing.F)             { fuzzStructure(f, "ParentNode") }
func FuzzNode(f *testing.F)                   { fuzzStructure(f, "Node") }
func FuzzRatchetTree(f *testing.F)            { fuzzStructure(f, "RatchetTree") }
func FuzzKeyPackage(f *testing.F)             { fuzzStructure(f, "KeyPackage") }
func FuzzGroupContext(f *testing.F)           { fuzzStructure(f, "GroupContext") }
func FuzzGroupInfo(f *testing.F)              { fuzzStructure(f, "GroupInfo") }
func FuzzGroupSecrets(f *testing.F)           { fuzzStructure(f, "GroupSecrets") }
func FuzzWelcome(f *testing.F)                { fuzzStructure(f, "Welcome") }
func FuzzPreSharedKeyID(f *testing.F)         { fuzzStructure(f, "PreSharedKeyID") }
func FuzzCredential(f *testing.F)             { fuzzStructure(f, "Credential") }
func FuzzCapabilities(f *testing.F)           { fuzzStructure(f, "Capabilities") }
func FuzzExtensions(f *testing.F)             { fuzzStructure(f, "Extensions") }
func FuzzRequiredCapabilities(f *testing.F)   { fuzzStructure(f, "RequiredCapabilities") }
func FuzzExternalSenders(f *testing.F)        { fuzzStructure(f, "ExternalSenders") }
func FuzzExternalPub(f *testing.F)            { fuzzStructure(f, "ExternalPub") }
func FuzzApplicationID(f *testing.F)          { fuzzStructure(f, "ApplicationID") }
func FuzzWireFormats(f *testing.F)            { fuzzStructure(f, "WireFormats") }
func FuzzAppDataDictionary(f *testing.F)      { fuzzStructure(f, "AppDataDictionary") }
func FuzzAppDataUpdate(f *testing.F)          { fuzzStructure(f, "AppDataUpdate") }
func FuzzAppEphemeral(f *testing.F)           { fuzzStructure(f, "AppEphemeral") }
func FuzzComponentsList(f *testing.F)         { fuzzStructure(f, "ComponentsList") }
func FuzzSafeAAD(f *testing.F)                { fuzzStructure(f, "SafeAAD") }
func FuzzReInit(f *testing.F)                 { fuzzStructure(f, "ReInit") }
func FuzzGroupContextExtensions(f *testing.F) { fuzzStructure(f, "GroupContextExtensions") }

// FuzzReader reads arbitrary bytes by an arbitrary program of Reader calls: no
// panic, never more bytes than there are, and nothing after the first failure.
func FuzzReader(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8}, []byte{3, 1, 2, 3, 0x40, 0x40})
	f.Add([]byte{6, 5, 7, 4, 5, 7, 9}, []byte{4, 2, 1, 2, 0})
	f.Fuzz(func(t *testing.T, program, data []byte) {
		r := NewReader(data)
		var outer []int
		for _, op := range program {
			failed, before := r.Err() != nil, r.Offset()
			switch op % 10 {
			case 0:
				r.Uint8()
			case 1:
				r.Uint16()
			case 2:
				r.Uint32()
			case 3:
				r.Uint64()
			case 4:
				r.Varint()
			case 5:
				r.Opaque()
			case 6:
				outer = append(outer, r.EnterVector())
			case 7:
				if n := len(outer); n > 0 {
					r.LeaveVector(outer[n-1])
					outer = outer[:n-1]
				}
			case 8:
				r.Present()
			case 9:
				r.Bytes(int(op))
			}
			if r.Offset() > len(data) || r.Offset() < before {
				t.Fatalf("offset %d after %d of %d bytes", r.Offset(), before, len(data))
			}
			if failed && (r.More() || r.Offset() != before || r.Finish() == nil) {
				t.Fatal("the reader went on after a failure")
			}
		}
	})
}
