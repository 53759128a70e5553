package mls

import (
	"bytes"
	"crypto/rand"
	"errors"
	"testing"

	"github.com/askucher/compax-core/internal/testdata"
	"github.com/askucher/compax-core/mls/hpke"
	"github.com/askucher/compax-core/mls/suite"
	"github.com/askucher/compax-core/mls/tree"
	"github.com/askucher/compax-core/mls/wire"
)

type treeKEMVector struct {
	CipherSuite             wire.CipherSuite `json:"cipher_suite"`
	GroupID                 testdata.Hex     `json:"group_id"`
	Epoch                   uint64
	ConfirmedTranscriptHash testdata.Hex `json:"confirmed_transcript_hash"`
	RatchetTree             testdata.Hex `json:"ratchet_tree"`
	LeavesPrivate           []struct {
		Index          tree.LeafIndex
		EncryptionPriv testdata.Hex `json:"encryption_priv"`
		SignaturePriv  testdata.Hex `json:"signature_priv"`
		PathSecrets    []struct {
			Node       tree.NodeIndex
			PathSecret testdata.Hex `json:"path_secret"`
		} `json:"path_secrets"`
	} `json:"leaves_private"`
	UpdatePaths []struct {
		Sender        tree.LeafIndex
		UpdatePath    testdata.Hex    `json:"update_path"`
		PathSecrets   []*testdata.Hex `json:"path_secrets"`
		CommitSecret  testdata.Hex    `json:"commit_secret"`
		TreeHashAfter testdata.Hex    `json:"tree_hash_after"`
	} `json:"update_paths"`
}

func (v *treeKEMVector) provisional(treeHash []byte) []byte {
	return wire.Marshal(&wire.GroupContext{
		CipherSuite: v.CipherSuite, GroupID: v.GroupID, Epoch: v.Epoch, TreeHash: treeHash,
		ConfirmedTranscriptHash: v.ConfirmedTranscriptHash,
	})
}

// merge puts a path into a tree and checks its leaf's parent hash.
func merge(t *testing.T, before *tree.Tree, sender tree.LeafIndex, path *wire.UpdatePath) *tree.Tree {
	t.Helper()
	edit := before.Edit()
	var public []wire.HPKEPublicKey
	for _, n := range path.Nodes {
		public = append(public, n.EncryptionKey)
	}
	hash, err := edit.SetPath(sender, public)
	if err != nil {
		t.Fatal(err)
	}
	wantBytes(t, "parent_hash of the leaf", hash, path.LeafNode.ParentHash)
	if err := edit.SetLeaf(sender, &path.LeafNode); err != nil {
		t.Fatal(err)
	}
	return edit.Freeze()
}

func TestVectorsTreeKEM(t *testing.T) {
	eachVector(t, "treekem.json", func(v treeKEMVector) wire.CipherSuite { return v.CipherSuite }, func(t *testing.T, cs *suite.Suite, v treeKEMVector) {
		unverified, err := tree.ParseBytes(cs, v.RatchetTree)
		if err != nil {
			t.Fatal(err)
		}
		before := unverified.Trust() // the leaves of these vectors list no capabilities
		held := map[tree.LeafIndex]privateKeys{}
		signers := map[tree.LeafIndex]*suite.SignatureKey{}
		for _, l := range v.LeavesPrivate {
			key, err := hpke.NewPrivateKey(cs, vectorScalar(cs, l.EncryptionPriv))
			if err != nil {
				t.Fatal(err)
			}
			wantBytes(t, "encryption key", key.Public(), before.PublicKey(l.Index.Node()))
			keys := privateKeys{l.Index.Node(): key}
			for _, p := range l.PathSecrets {
				if keys[p.Node], err = nodeKey(cs, Secret(p.PathSecret)); err != nil {
					t.Fatal(err)
				}
				wantBytes(t, "node key", keys[p.Node].Public(), before.PublicKey(p.Node))
			}
			held[l.Index] = keys
			if signers[l.Index], err = vectorSigner(cs, l.SignaturePriv); err != nil {
				t.Fatal(err)
			}
			wantBytes(t, "signature key", signers[l.Index].Public(), before.Leaf(l.Index).SignatureKey)
		}
		for _, u := range v.UpdatePaths {
			var path wire.UpdatePath
			if err := wire.Unmarshal(u.UpdatePath, &path); err != nil {
				t.Fatal(err)
			}
			after := merge(t, before, u.Sender, &path)
			wantBytes(t, "tree_hash_after", after.Hash(), u.TreeHashAfter)
			for l, keys := range held {
				if l == u.Sender {
					continue
				}
				_, secrets, err := receivePath(cs, after, &path, u.Sender, l, nil, keys, v.provisional(after.Hash()))
				if err != nil {
					t.Fatalf("leaf %d: %v", l, err)
				}
				wantBytes(t, "path_secret", secrets.secrets[0], *u.PathSecrets[l])
				wantBytes(t, "commit_secret", secrets.commit, u.CommitSecret)
				if _, _, err := receivePath(cs, after, &path, u.Sender, l, nil, keys, flip(v.provisional(after.Hash()))); !errors.Is(err, ErrPath) {
					t.Fatalf("a flipped bit of the context: %v", err)
				}
			}
			own := ownPathOf(t, cs, before, u.Sender, signers[u.Sender], &v)
			for l, keys := range held {
				if l == u.Sender {
					continue
				}
				after := merge(t, before, u.Sender, own.update)
				wantBytes(t, "own tree hash", after.Hash(), own.tree.Hash())
				_, secrets, err := receivePath(cs, after, own.update, u.Sender, l, nil, keys, v.provisional(after.Hash()))
				if err != nil {
					t.Fatalf("own path, leaf %d: %v", l, err)
				}
				if !secrets.commit.Equal(own.secrets.commit) {
					t.Fatal("own path: different commit_secret")
				}
			}
		}
	})
}

// ownPathOf makes a path of our own for a member of a vector's tree.
func ownPathOf(t *testing.T, cs *suite.Suite, before *tree.Tree, sender tree.LeafIndex, signer *suite.SignatureKey, v *treeKEMVector) *newPath {
	t.Helper()
	path, err := buildPath(cs, rand.Reader, before, sender, nil, *before.Leaf(sender).Clone(), signer, v.GroupID)
	if err != nil {
		t.Fatal(err)
	}
	if err := path.encrypt(v.provisional(path.tree.Hash())); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(path.update.LeafNode.EncryptionKey, before.Leaf(sender).EncryptionKey) {
		t.Fatal("the leaf kept its key")
	}
	return path
}
