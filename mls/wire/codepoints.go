package wire

import "fmt"

// ProtocolVersion is a version of MLS (§6).
type ProtocolVersion uint16

// ProtocolVersionMLS10 is the only version there is.
const ProtocolVersionMLS10 ProtocolVersion = 1

// CipherSuite is a code point of the MLS Cipher Suites registry (§17.1). What
// each means is told by package suite.
type CipherSuite uint16

// WireFormat says what an [MLSMessage] carries (§6).
type WireFormat uint16

// The wire formats of RFC 9420 §17.2.
const (
	WireFormatPublicMessage  WireFormat = 1
	WireFormatPrivateMessage WireFormat = 2
	WireFormatWelcome        WireFormat = 3
	WireFormatGroupInfo      WireFormat = 4
	WireFormatKeyPackage     WireFormat = 5
)

// ContentType says what a [FramedContent] carries (§6).
type ContentType uint8

// The content types of §6.
const (
	ContentTypeApplication ContentType = 1
	ContentTypeProposal    ContentType = 2
	ContentTypeCommit      ContentType = 3
)

// SenderType says who a message claims to be from (§6).
type SenderType uint8

// The sender types of §6.
const (
	SenderTypeMember            SenderType = 1
	SenderTypeExternal          SenderType = 2
	SenderTypeNewMemberProposal SenderType = 3
	SenderTypeNewMemberCommit   SenderType = 4
)

// CredentialType is a kind of credential (§5.3, §17.5).
type CredentialType uint16

// The credential types of §17.5.
const (
	CredentialTypeBasic CredentialType = 1
	CredentialTypeX509  CredentialType = 2
)

// ExtensionType is a kind of extension (§13.4, §17.3 and the extensions draft
// §7.1).
type ExtensionType uint16

// The extension types of §17.3 and of the extensions draft §7.1.
const (
	ExtensionTypeApplicationID        ExtensionType = 0x0001
	ExtensionTypeRatchetTree          ExtensionType = 0x0002
	ExtensionTypeRequiredCapabilities ExtensionType = 0x0003
	ExtensionTypeExternalPub          ExtensionType = 0x0004
	ExtensionTypeExternalSenders      ExtensionType = 0x0005
	ExtensionTypeAppDataDictionary    ExtensionType = 0x0006
	ExtensionTypeSupportedWireFormats ExtensionType = 0x0007
	ExtensionTypeRequiredWireFormats  ExtensionType = 0x0008
	// ExtensionTypeLastResort marks a last-resort KeyPackage in the way of
	// earlier drafts; today's is [ComponentLastResortKeyPackage]. It is
	// accepted and never written.
	ExtensionTypeLastResort ExtensionType = 0x000a
)

// ProposalType is a kind of proposal (§12.1, §17.4 and the extensions draft
// §7.2).
type ProposalType uint16

// The proposal types of §17.4 and of the extensions draft §7.2.
const (
	ProposalTypeAdd                    ProposalType = 0x0001
	ProposalTypeUpdate                 ProposalType = 0x0002
	ProposalTypeRemove                 ProposalType = 0x0003
	ProposalTypePSK                    ProposalType = 0x0004
	ProposalTypeReInit                 ProposalType = 0x0005
	ProposalTypeExternalInit           ProposalType = 0x0006
	ProposalTypeGroupContextExtensions ProposalType = 0x0007
	ProposalTypeAppDataUpdate          ProposalType = 0x0008
	ProposalTypeAppEphemeral           ProposalType = 0x0009
	ProposalTypeSelfRemove             ProposalType = 0x000a
)

// String names the types that have a name and writes the others in hex.
func (t ProposalType) String() string {
	switch t {
	case ProposalTypeAdd:
		return "Add"
	case ProposalTypeUpdate:
		return "Update"
	case ProposalTypeRemove:
		return "Remove"
	case ProposalTypePSK:
		return "PreSharedKey"
	case ProposalTypeReInit:
		return "ReInit"
	case ProposalTypeExternalInit:
		return "ExternalInit"
	case ProposalTypeGroupContextExtensions:
		return "GroupContextExtensions"
	case ProposalTypeAppDataUpdate:
		return "AppDataUpdate"
	case ProposalTypeAppEphemeral:
		return "AppEphemeral"
	case ProposalTypeSelfRemove:
		return "SelfRemove"
	}
	return fmt.Sprintf("proposal %#04x", uint16(t))
}

// LeafNodeSource says how a leaf came into the tree (§7.2).
type LeafNodeSource uint8

// The sources of §7.2.
const (
	LeafNodeSourceKeyPackage LeafNodeSource = 1
	LeafNodeSourceUpdate     LeafNodeSource = 2
	LeafNodeSourceCommit     LeafNodeSource = 3
)

// NodeType tells leaves from parents (§7.8, §12.4.3.3).
type NodeType uint8

// The node types of §7.8.
const (
	NodeTypeLeaf   NodeType = 1
	NodeTypeParent NodeType = 2
)

// PSKType is a kind of pre-shared key (§8.4; application: extensions draft §4.5).
type PSKType uint8

// The PSK types of §8.4 and of the extensions draft §4.5.
const (
	PSKTypeExternal    PSKType = 1
	PSKTypeResumption  PSKType = 2
	PSKTypeApplication PSKType = 3
)

// ResumptionPSKUsage says what a resumption PSK is used for (§8.4).
type ResumptionPSKUsage uint8

// The usages of §8.4.
const (
	ResumptionPSKUsageApplication ResumptionPSKUsage = 1
	ResumptionPSKUsageReInit      ResumptionPSKUsage = 2
	ResumptionPSKUsageBranch      ResumptionPSKUsage = 3
)

// ProposalOrRefType tells a proposal by value from one by reference (§12.4).
type ProposalOrRefType uint8

// The types of §12.4.
const (
	ProposalOrRefTypeProposal  ProposalOrRefType = 1
	ProposalOrRefTypeReference ProposalOrRefType = 2
)

// IsGREASE reports whether a two-byte code point is one of those reserved for
// GREASE (§13.5): 0x0A0A, 0x1A1A, … 0xEAEA.
func IsGREASE[T ~uint16](v T) bool {
	return v&0x0f0f == 0x0a0a && v>>8 == v&0xff && v>>12 != 0xf
}
