package wire

import (
	"bytes"
	"encoding/hex"
	"testing"
)

// TestDraftStructuresByHand compares structures of the extensions draft, for
// which no official vectors exist, with bytes written out by hand from the
// draft's definitions.
func TestDraftStructuresByHand(t *testing.T) {
	for _, c := range []struct {
		name  string
		value codec
		hex   string
	}{
		{"AppDataUpdate update (§4.7)", &Proposal{ProposalType: ProposalTypeAppDataUpdate, AppDataUpdate: &AppDataUpdate{
			ComponentID: 0x8001, Op: AppDataUpdateOperationUpdate, Update: []byte{0xaa, 0xbb}}}, "0008 8001 01 02aabb"},
		{"AppDataUpdate remove (§4.7)", &Proposal{ProposalType: ProposalTypeAppDataUpdate, AppDataUpdate: &AppDataUpdate{
			ComponentID: 0x8001, Op: AppDataUpdateOperationRemove}}, "0008 8001 02"},
		{"AppEphemeral (§4.8)", &Proposal{ProposalType: ProposalTypeAppEphemeral, AppEphemeral: &AppEphemeral{
			ComponentID: 5, Data: []byte{1}}}, "0009 0005 0101"},
		{"SelfRemove (§6.3)", &Proposal{ProposalType: ProposalTypeSelfRemove, SelfRemove: &SelfRemove{}}, "000a"},
		{"unknown proposal", &Proposal{ProposalType: 0xf123, Unknown: []byte{1, 2}}, "f123 020102"},
		{"AppDataDictionary (§4.6)", &AppDataDictionary{ComponentData: []ComponentData{
			{ComponentID: 1, Data: []byte{0}}, {ComponentID: 0x8000, Data: nil}}}, "07 0001 0100 8000 00"},
		{"PreSharedKeyID application (§4.5)", &PreSharedKeyID{PSKType: PSKTypeApplication, ComponentID: 0x8002,
			PSKID: []byte{9}, PSKNonce: []byte{7, 7}}, "03 8002 0109 020707"},
		{"SafeAAD (§4.9)", &SafeAAD{AADItems: []SafeAADItem{{ComponentID: 2, AADItemData: []byte{5}}}}, "04 0002 0105"},
		{"empty SafeAAD (§4.9)", &SafeAAD{}, "00"},
		{"ComponentsList (§5)", &ComponentsList{ComponentIDs: []ComponentID{1, 0x8003}}, "04 0001 8003"},
		{"WireFormats (§5)", &WireFormats{WireFormats: []WireFormat{2}}, "02 0002"},
	} {
		want, err := hex.DecodeString(string(bytes.ReplaceAll([]byte(c.hex), []byte(" "), nil)))
		if err != nil {
			t.Fatal(err)
		}
		if got := Marshal(c.value); !bytes.Equal(got, want) {
			t.Errorf("%s: %x, want %x", c.name, got, want)
		}
	}
	label := ComponentOperationLabel{ComponentID: 0x8001, Label: []byte("x")}
	if got := hex.EncodeToString(Marshal(&label)); got != "0d4d4c5320436f6d706f6e656e7480010178" {
		t.Errorf("ComponentOperationLabel (§4.1): %s", got)
	}
}

// TestSignedStructures: what a signature covers is the structure without its
// signature, with the context that the RFC adds.
func TestSignedStructures(t *testing.T) {
	kp := KeyPackage{Version: 1, CipherSuite: 1, InitKey: []byte{1}, Signature: []byte{9, 9}}
	kp.LeafNode.LeafNodeSource = LeafNodeSourceKeyPackage
	if got, want := Marshal((*KeyPackageTBS)(&kp)), Marshal(&kp); !bytes.Equal(got, want[:len(want)-3]) {
		t.Errorf("KeyPackageTBS %x of %x", got, want)
	}
	gi := GroupInfo{Signer: 3, Signature: []byte{9, 9}}
	if got, want := Marshal((*GroupInfoTBS)(&gi)), Marshal(&gi); !bytes.Equal(got, want[:len(want)-3]) {
		t.Errorf("GroupInfoTBS %x of %x", got, want)
	}
	for _, c := range []struct {
		source LeafNodeSource
		tail   string
	}{
		{LeafNodeSourceKeyPackage, ""},
		{LeafNodeSourceUpdate, "02676900000005"},
		{LeafNodeSourceCommit, "02676900000005"},
	} {
		leaf := LeafNode{LeafNodeSource: c.source, Signature: []byte{9}}
		whole := Marshal(&leaf)
		want := hex.EncodeToString(whole[:len(whole)-2]) + c.tail
		got := hex.EncodeToString(Marshal(&LeafNodeTBS{LeafNode: &leaf, GroupID: []byte("gi"), LeafIndex: 5}))
		if got != want {
			t.Errorf("LeafNodeTBS of source %d: %s, want %s", c.source, got, want)
		}
	}
	context := Marshal(&GroupContext{CipherSuite: 1, GroupID: []byte("gi")})
	for sender, withContext := range map[SenderType]bool{
		SenderTypeMember: true, SenderTypeExternal: false, SenderTypeNewMemberProposal: false, SenderTypeNewMemberCommit: true,
	} {
		content := FramedContent{Sender: Sender{SenderType: sender}, ContentType: ContentTypeApplication}
		want := append([]byte{0, 1, 0, 1}, Marshal(&content)...)
		if withContext {
			want = append(want, context...)
		}
		tbs := FramedContentTBS{WireFormat: WireFormatPublicMessage, Content: &content, Context: context}
		if got := Marshal(&tbs); !bytes.Equal(got, want) {
			t.Errorf("FramedContentTBS of sender %d: %x, want %x", sender, got, want)
		}
		auth := FramedContentAuthData{Signature: []byte{1}, ConfirmationTag: []byte{2}}
		if got := Marshal(&AuthenticatedContentTBM{ContentTBS: tbs, Auth: &auth}); !bytes.Equal(got, append(want, 1, 1)) {
			t.Errorf("AuthenticatedContentTBM of sender %d: %x", sender, got)
		}
		ac := AuthenticatedContent{WireFormat: WireFormatPublicMessage, Content: content, Auth: auth}
		if got := ac.TBS(context); !bytes.Equal(got, want) {
			t.Errorf("TBS of sender %d: %x, want %x", sender, got, want)
		}
		if got := ac.TBM(context); !bytes.Equal(got, append(want, 1, 1)) {
			t.Errorf("TBM of sender %d: %x", sender, got)
		}
	}
}

// TestDictionary sets, replaces and deletes entries without touching the
// original, and keeps the order.
func TestDictionary(t *testing.T) {
	var empty AppDataDictionary
	d := empty.With(7, []byte{7})
	d = d.With(3, []byte{3})
	d = d.With(9, []byte{9})
	e := d.With(7, []byte{70})
	f := e.Without(3)
	if data, found := d.Get(7); !found || data[0] != 7 {
		t.Errorf("the original changed: %x", data)
	}
	if data, found := e.Get(7); !found || data[0] != 70 {
		t.Errorf("not replaced: %x", data)
	}
	if _, found := f.Get(3); found || len(f.ComponentData) != 2 || len(e.ComponentData) != 3 {
		t.Error("not deleted, or deleted from the original")
	}
	if g := f.Without(3); len(g.ComponentData) != 2 {
		t.Error("deleting what is not there deleted something")
	}
	for _, x := range []AppDataDictionary{empty, d, e, f} {
		var back AppDataDictionary
		if err := Unmarshal(Marshal(&x), &back); err != nil {
			t.Errorf("order lost: %v", err)
		}
	}
}

// TestLastResort recognises both ways of marking a last-resort KeyPackage.
func TestLastResort(t *testing.T) {
	var d AppDataDictionary
	marked := d.With(ComponentLastResortKeyPackage, nil)
	other := d.With(ComponentSafeAAD, []byte{0})
	for _, c := range []struct {
		name string
		x    Extensions
		want bool
	}{
		{"none", nil, false},
		{"component", Extensions{NewExtension(ExtensionTypeAppDataDictionary, &marked)}, true},
		{"other component", Extensions{NewExtension(ExtensionTypeAppDataDictionary, &other)}, false},
		{"extension of earlier drafts", Extensions{{ExtensionType: ExtensionTypeLastResort}}, true},
		{"broken dictionary", Extensions{{ExtensionType: ExtensionTypeAppDataDictionary, ExtensionData: []byte{9}}}, false},
	} {
		if got := IsLastResort(c.x); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestDuplicateExtension finds a type that occurs twice, in short and in long
// vectors.
func TestDuplicateExtension(t *testing.T) {
	for _, n := range []int{0, 1, 2, 16, 17, 100} {
		var x Extensions
		for i := range n {
			x = append(x, Extension{ExtensionType: ExtensionType(i)})
		}
		if dup, found := x.Duplicate(); found {
			t.Errorf("%d different: %d found", n, dup)
		}
		if n > 0 {
			x = append(x, Extension{ExtensionType: ExtensionType(n / 2)})
			if dup, found := x.Duplicate(); !found || dup != ExtensionType(n/2) {
				t.Errorf("%d and one again: %d, %v", n, dup, found)
			}
		}
	}
}

// TestGREASE lists the fifteen reserved values of RFC 9420 §13.5.
func TestGREASE(t *testing.T) {
	count := 0
	for v := range 1 << 16 {
		if IsGREASE(ExtensionType(v)) {
			count++
			if v&0xff != v>>8 || v&0xf != 0xa {
				t.Errorf("%#04x", v)
			}
		}
	}
	if count != 15 || !IsGREASE(CipherSuite(0x0a0a)) || !IsGREASE(CipherSuite(0xeaea)) || IsGREASE(CipherSuite(0xfafa)) {
		t.Errorf("%d values", count)
	}
}

// TestExtensionsWith replaces and appends without touching the original.
func TestExtensionsWith(t *testing.T) {
	x := Extensions{{ExtensionType: 1, ExtensionData: []byte("a")}, {ExtensionType: 2, ExtensionData: []byte("b")}}
	for _, c := range []struct {
		e    Extension
		want Extensions
	}{
		{Extension{1, []byte("c")}, Extensions{{1, []byte("c")}, {2, []byte("b")}}},
		{Extension{3, []byte("c")}, Extensions{{1, []byte("a")}, {2, []byte("b")}, {3, []byte("c")}}},
	} {
		before := Marshal(&x)
		got := x.With(c.e)
		if !bytes.Equal(Marshal(&got), Marshal(&c.want)) {
			t.Errorf("with type %d: %v", c.e.ExtensionType, got)
		}
		if !bytes.Equal(Marshal(&x), before) {
			t.Errorf("with type %d: the original changed", c.e.ExtensionType)
		}
	}
}

// TestProposalTypeString writes an unknown type as the registry does.
func TestProposalTypeString(t *testing.T) {
	for value, want := range map[ProposalType]string{ProposalTypeAdd: "Add", 0x000b: "proposal 0x000b", 0xf001: "proposal 0xf001"} {
		if got := value.String(); got != want {
			t.Errorf("%d is written %q, not %q", value, got, want)
		}
	}
}
