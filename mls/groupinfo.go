package mls

import (
	"fmt"
	"io"

	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// groupInfo makes the signed GroupInfo of an epoch with its external_pub (RFC
// 9420 Section 12.4.3).
func groupInfo(cs *suite.Suite, signer *suite.SignatureKey, public *follower.Group, leaf tree.LeafIndex, external Secret, extensions wire.Extensions) (*wire.GroupInfo, error) {
	key, err := externalKey(cs, external)
	if err != nil {
		return nil, err
	}
	defer key.Wipe()
	info := &wire.GroupInfo{
		GroupContext:    *public.Context(),
		ConfirmationTag: public.ConfirmationTag(),
		Signer:          uint32(leaf),
	}
	info.Extensions = append(info.Extensions, wire.NewExtension(wire.ExtensionTypeExternalPub, &wire.ExternalPub{ExternalPub: key.Public()}))
	info.Extensions = append(info.Extensions, extensions...)
	if err := signGroupInfo(signer, info); err != nil {
		return nil, err
	}
	return info, nil
}

func signGroupInfo(signer *suite.SignatureKey, info *wire.GroupInfo) error {
	signature, err := signer.SignWithLabel("GroupInfoTBS", wire.Marshal((*wire.GroupInfoTBS)(info)))
	if err != nil {
		return fmt.Errorf("mls: signing a group info: %w", err)
	}
	info.Signature = signature
	return nil
}

// GroupInfo makes a signed GroupInfo of the current epoch as MLSMessage, with
// the external_pub extension, so that others can join by external commit. With
// withTree it carries the ratchet tree too.
func (g *Group) GroupInfo(withTree bool, extensions wire.Extensions) ([]byte, error) {
	if err := g.canSend(); err != nil {
		return nil, err
	}
	if withTree {
		nodes := g.public.Tree().RatchetTree()
		extensions = append(extensions[:len(extensions):len(extensions)], wire.NewExtension(wire.ExtensionTypeRatchetTree, &nodes))
	}
	info, err := groupInfo(g.cs, g.signer, g.public, g.leaf, g.keys.external, extensions)
	if err != nil {
		return nil, err
	}
	return wire.Marshal(&wire.MLSMessage{WireFormat: wire.WireFormatGroupInfo, GroupInfo: info}), nil
}

// greaseExtension is an extension that nobody knows (RFC 9420 Section 13.5).
func greaseExtension(random io.Reader) (wire.Extension, error) {
	var b [9]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return wire.Extension{}, fmt.Errorf("mls: reading randomness: %w", err)
	}
	return wire.Extension{ExtensionType: wire.ExtensionType(grease(b[0])), ExtensionData: b[1:]}, nil
}
