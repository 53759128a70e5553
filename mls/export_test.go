package mls

import (
	"io"
	"maps"

	"github.com/askucher/compax-core/mls/follower"
	"github.com/askucher/compax-core/mls/hpke"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

// What tests need to forge the messages of a dishonest member.

// ForgePublic signs a content as this member and protects it with the true
// membership key. mutate changes the message before it is encoded.
func (g *Group) ForgePublic(content wire.FramedContent, tag wire.MAC, mutate func(*wire.PublicMessage)) []byte {
	ac, err := g.sign(wire.WireFormatPublicMessage, content)
	if err != nil {
		panic(err)
	}
	ac.Auth.ConfirmationTag = tag
	m := protectPublic(g.cs, g.keys.membership, ac, g.public.EncodedContext())
	if mutate != nil {
		mutate(m)
	}
	return wire.Marshal(&wire.MLSMessage{WireFormat: wire.WireFormatPublicMessage, PublicMessage: m})
}

// ForgeTag gives a public message the membership tag that fits what it says now.
func (g *Group) ForgeTag(m *wire.PublicMessage) {
	ac := follower.Authenticated(m)
	m.MembershipTag = membershipTag(g.cs, g.keys.membership, ac, g.public.EncodedContext())
}

// Forged says how a PrivateMessage differs from an honest one.
type Forged struct {
	Leaf       *uint32 // sender data names another leaf
	Generation *uint32 // and another generation, with that generation's key
	Keys       bool    // the key is of that leaf's ratchet, which every member can compute
	Padding    []byte  // follows the content
	Signature  []byte  // replaces the signature
}

// ForgePrivate encrypts a content of this member as a PrivateMessage.
func (g *Group) ForgePrivate(random io.Reader, content wire.FramedContent, f Forged) []byte {
	ac, err := g.sign(wire.WireFormatPrivateMessage, content)
	if err != nil {
		panic(err)
	}
	if f.Signature != nil {
		ac.Auth.Signature = f.Signature
	}
	of := uint32(g.leaf)
	if f.Keys {
		of = *f.Leaf
	}
	_, r, _, err := g.messages.ratchetAt(g.cs, of, applicationRatchet)
	if err != nil {
		panic(err)
	}
	key, _, _, err := r.forSending(g.cs)
	if err != nil {
		panic(err)
	}
	sender := wire.SenderData{LeafIndex: uint32(g.leaf), Generation: key.generation}
	if f.Leaf != nil {
		sender.LeafIndex = *f.Leaf
	}
	if f.Generation != nil {
		sender.Generation = *f.Generation
	}
	m := &wire.PrivateMessage{
		GroupID: content.GroupID, Epoch: content.Epoch, ContentType: content.ContentType, AuthenticatedData: content.AuthenticatedData,
	}
	plaintext := wire.Marshal(&wire.PrivateMessageContent{
		ContentType: content.ContentType, ApplicationData: content.ApplicationData,
		Proposal: content.Proposal, Commit: content.Commit, Auth: ac.Auth,
	})
	plaintext = append(plaintext, f.Padding...)
	if m.Ciphertext, err = g.cs.Seal(key.key, guarded(key.nonce, sender.ReuseGuard), contentAAD(m), plaintext); err != nil {
		panic(err)
	}
	k, n := senderDataKeys(g.cs, g.keys.senderData, m.Ciphertext)
	if m.EncryptedSenderData, err = g.cs.Seal(k, n, senderDataAAD(m), wire.Marshal(&sender)); err != nil {
		panic(err)
	}
	return wire.Marshal(&wire.MLSMessage{WireFormat: wire.WireFormatPrivateMessage, PrivateMessage: m})
}

// OpenSenderData reads the sender data of a PrivateMessage.
func (g *Group) OpenSenderData(message []byte) wire.SenderData {
	var m wire.MLSMessage
	if err := wire.Unmarshal(message, &m); err != nil {
		panic(err)
	}
	sender, err := openSenderData(g.cs, g.keys.senderData, m.PrivateMessage)
	if err != nil {
		panic(err)
	}
	return sender
}

// SignLeaf signs a leaf as this member, in the group or outside of it.
func (g *Group) SignLeaf(leaf *wire.LeafNode, index uint32) {
	if err := signLeaf(g.signer, leaf, g.GroupID(), index); err != nil {
		panic(err)
	}
}

// SignGroupInfo signs a GroupInfo as this member.
func (g *Group) SignGroupInfo(info *wire.GroupInfo) {
	if err := signGroupInfo(g.signer, info); err != nil {
		panic(err)
	}
}

// PathContext is the provisional GroupContext of a commit that led to next.
func (g *Group) PathContext(next *Group) []byte {
	c := *next.public.Context()
	c.ConfirmedTranscriptHash = g.public.Context().ConfirmedTranscriptHash
	return wire.Marshal(&c)
}

// EncryptPath encrypts a path secret like an honest committer.
func (g *Group) EncryptPath(random io.Reader, to wire.HPKEPublicKey, context, secret []byte) wire.HPKECiphertext {
	c, err := hpke.EncryptWithLabel(g.cs, random, to, "UpdatePathNode", context, secret)
	if err != nil {
		panic(err)
	}
	return c
}

// Secrets lists every secret that the group holds.
func (g *Group) Secrets() [][]byte {
	var all [][]byte
	for _, s := range g.keys.all() {
		all = append(all, *s)
	}
	for _, k := range g.private {
		all = append(all, k.Bytes())
	}
	trees := []*secretTree{g.messages, g.exporter.asSecretTree()}
	for _, p := range g.past {
		trees = append(trees, p.messages)
		all = append(all, p.senderData)
	}
	for _, t := range trees {
		t.walk(func(_ uint32, n *secretNode) {
			if n.secret != nil {
				all = append(all, n.secret)
			}
			for _, r := range n.ratchets {
				if r == nil {
					continue
				}
				all = append(all, r.secret)
				for _, k := range r.skipped {
					all = append(all, k.key, k.nonce)
				}
			}
		})
	}
	for _, r := range g.resumption {
		all = append(all, r.secret)
	}
	return all
}

// NextKey is the key and nonce that the group will use for its next application
// message.
func (g *Group) NextKey() (key, nonce []byte) {
	_, r, _, err := g.messages.ratchetAt(g.cs, uint32(g.leaf), applicationRatchet)
	if err != nil {
		panic(err)
	}
	k, _, _, err := r.forSending(g.cs)
	if err != nil {
		panic(err)
	}
	return k.key, k.nonce
}

// Reforge is a commit of this member changed after it was made, with a signature,
// a membership tag and a confirmation tag that fit the change: what only the
// committer itself can do.
func (g *Group) Reforge(c *Commit, mutate func(*wire.Commit)) []byte {
	content := c.own.content.Content
	changed := new(wire.Commit)
	if err := wire.Unmarshal(wire.Marshal(content.Commit), changed); err != nil {
		panic(err)
	}
	mutate(changed)
	content.Commit = changed
	ac, err := g.sign(wire.WireFormatPublicMessage, content)
	if err != nil {
		panic(err)
	}
	draft, err := g.public.Draft(content.Sender, c.own.content.Content.Commit.Proposals, g.config.options(c.own.next.now))
	if err != nil {
		panic(err)
	}
	after := c.own.next.public.Tree()
	nodes, err := after.FilteredDirectPath(g.leaf)
	if err != nil {
		panic(err)
	}
	secrets, err := derivePath(g.cs, c.own.path.first, len(nodes))
	if err != nil {
		panic(err)
	}
	staged, err := draft.Finish(ac, after)
	if err != nil {
		panic(err)
	}
	start, err := startEpoch(g.cs, g.keys.init, secrets.commit, nil, staged.EncodedContext(), staged.ConfirmedTranscriptHash())
	if err != nil {
		panic(err)
	}
	ac.Auth.ConfirmationTag = start.tag
	return g.publicMessage(ac)
}

// ForgedWelcome is a Welcome of a dishonest member, who may choose all that it
// says.
type ForgedWelcome struct {
	Info       wire.GroupInfo // its tag and signature are made here
	To         *wire.KeyPackage
	PSKs       []wire.PreSharedKeyID
	Secrets    []Secret // of PSKs
	PathSecret []byte
	Tag        []byte // replaces the confirmation tag
}

// ForgeWelcome encrypts and signs a Welcome as this member.
func (g *Group) ForgeWelcome(random io.Reader, f ForgedWelcome) []byte {
	inputs := make([]pskInput, len(f.PSKs))
	for i := range inputs {
		inputs[i] = pskInput{id: f.PSKs[i], secret: f.Secrets[i]}
	}
	psk, err := pskSecret(g.cs, inputs)
	if err != nil {
		panic(err)
	}
	joiner := Secret("a joiner_secret that was made up")
	member := memberSecret(g.cs, joiner, psk)
	keys := deriveEpoch(g.cs, member, wire.Marshal(&f.Info.GroupContext))
	f.Info.ConfirmationTag = g.cs.MAC(keys.confirmation, f.Info.GroupContext.ConfirmedTranscriptHash)
	if f.Tag != nil {
		f.Info.ConfirmationTag = f.Tag
	}
	g.SignGroupInfo(&f.Info)
	key, nonce := welcomeKeys(g.cs, member)
	sealed, err := g.cs.Seal(key, nonce, nil, wire.Marshal(&f.Info))
	if err != nil {
		panic(err)
	}
	secrets := wire.GroupSecrets{JoinerSecret: joiner, PSKs: f.PSKs}
	if f.PathSecret != nil {
		secrets.PathSecret = &wire.PathSecret{PathSecret: f.PathSecret}
	}
	c, err := hpke.EncryptWithLabel(g.cs, random, f.To.InitKey, "Welcome", sealed, wire.Marshal(&secrets))
	if err != nil {
		panic(err)
	}
	return wire.Marshal(&wire.MLSMessage{WireFormat: wire.WireFormatWelcome, Welcome: &wire.Welcome{
		CipherSuite: g.cs.ID(), EncryptedGroupInfo: sealed,
		Secrets: []wire.EncryptedGroupSecrets{{NewMember: g.cs.KeyPackageRef(f.To), EncryptedGroupSecrets: c}},
	}})
}

// DamageRecord changes a byte of a record's body and makes its checksum fit. A
// place below zero counts from the end.
func DamageRecord(r Record, at int, change byte) Record {
	body, err := newChecksums().openRecord(r)
	if err != nil {
		panic(err)
	}
	body = append([]byte(nil), body...)
	if at < 0 {
		at += len(body)
	}
	if len(body) > 0 {
		body[at%len(body)] ^= change
	}
	return Record{Key: r.Key, Value: sealRecord(r.Key, body)}
}

// MoveRecord gives a record another key, its checksum in order.
func MoveRecord(r Record, key string) Record {
	body, err := newChecksums().openRecord(r)
	if err != nil {
		panic(err)
	}
	return Record{Key: key, Value: sealRecord(key, body)}
}

// CoreWith is the record of the core with other private keys (a nil one goes) or
// another confirmation key, its checksum in order.
func (g *Group) CoreWith(keys map[uint32][]byte, confirmation []byte) Record {
	changed := *g
	changed.private = make(privateKeys, len(g.private))
	maps.Copy(changed.private, g.private)
	for node, secret := range keys {
		if secret == nil {
			delete(changed.private, tree.NodeIndex(node))
			continue
		}
		other, err := hpke.NewPrivateKey(g.cs, secret)
		if err != nil {
			panic(err)
		}
		changed.private[tree.NodeIndex(node)] = other
	}
	if confirmation != nil {
		changed.keys.confirmation = confirmation
	}
	return Record{Key: keyCore, Value: sealRecord(keyCore, changed.appendCore(nil))}
}

// PrivateKeys are the private keys that a group holds, by node.
func (g *Group) PrivateKeys() map[uint32][]byte {
	keys := map[uint32][]byte{}
	for node, key := range g.private {
		keys[uint32(node)] = key.Bytes()
	}
	return keys
}

// CheckSuccession is what somebody who joins next checks when its Welcome names a
// group that it follows; old is that group.
func CheckSuccession(from *wire.PreSharedKeyID, context wire.GroupContext, next, old *Group) error {
	return checkSuccession(from, &wire.GroupInfo{GroupContext: context}, next.public, old)
}

// FindOwnLeaf looks for a leaf as a joiner does for its own.
func (g *Group) FindOwnLeaf(own *wire.LeafNode) error {
	_, err := ownLeaf(g.public, own)
	return err
}
