package mls_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/askucher/compax-core/mls"
	"github.com/askucher/compax-core/mls/wire"
	"github.com/askucher/compax-core/mlstest"
)

// Row 3: tags that are empty, cut short or too long are refused.
func TestAttackTruncatedTags(t *testing.T) {
	w := trio(t, 3)
	by, victim := w.Members[0], w.Members[1]
	commit := commitOf(t, w, by, mls.CommitParams{})
	for _, size := range []int{0, 1, 31, 33} {
		m := public(t, commit.Message)
		m.MembershipTag = append(bytes.Clone(m.MembershipTag), 0)[:size]
		refused(t, w, victim, encode(m), mls.ErrMembershipTag)
	}
	for _, size := range []int{0, 1, 31, 33} {
		m := public(t, commit.Message)
		m.Auth.ConfirmationTag = append(bytes.Clone(m.Auth.ConfirmationTag), 0)[:size]
		by.Group.ForgeTag(m)
		if _, err := victim.Group.Process(encode(m), mls.ProcessParams{Now: w.Now}); err == nil {
			t.Fatalf("a confirmation tag of %d bytes is taken", size)
		}
	}
	goesOn(t, w)
}

// Row 4: every place at which a source of randomness or a message can fail
// leaves the group as it was.
func TestAttackFaultsLeaveNoTrace(t *testing.T) {
	w := trio(t, 5)
	c := w.Members[1]
	newcomer := w.Client()
	kp := newcomer.KeyPackage(w.Now)
	before := mlstest.State(c.Group)
	operations := map[string]func(f *failing) error{
		"seal": func(f *failing) error {
			_, err := c.Group.Seal(mls.SealParams{Random: f, Content: []byte("text")})
			return err
		},
		"commit": func(f *failing) error {
			_, err := c.Group.Commit(mls.CommitParams{Random: f, Now: w.Now, Proposals: []wire.Proposal{mls.AddProposal(&kp.KeyPackage)}})
			return err
		},
		"private commit": func(f *failing) error {
			_, err := c.Group.Commit(mls.CommitParams{Random: f, Now: w.Now, Private: true})
			return err
		},
		"update": func(f *failing) error {
			_, err := c.Group.ProposeUpdate(mls.ProposeParams{Random: f, Now: w.Now}, mls.LeafChange{})
			return err
		},
		"psk": func(f *failing) error {
			_, err := c.Group.ExternalPSKProposal(f, []byte("id"))
			return err
		},
	}
	for name, operation := range operations {
		points := 0
		for n := 0; ; n++ {
			err := operation(&failing{from: w.Random(), left: n})
			if !bytes.Equal(before, mlstest.State(c.Group)) {
				t.Fatalf("%s: failing after %d bytes changed the group", name, n)
			}
			if err == nil {
				break
			}
			if !errors.Is(err, errNoRandomness) {
				t.Fatalf("%s: failing after %d bytes: %v", name, n, err)
			}
			points++
		}
		if points < 4 {
			t.Errorf("%s: only %d fault points", name, points)
		}
	}
	commit := commitOf(t, w, w.Members[0], mls.CommitParams{}).Message
	for i := range commit {
		bad := bytes.Clone(commit)
		bad[i] ^= 0x40
		if _, err := c.Group.Process(bad, mls.ProcessParams{Now: w.Now}); err == nil {
			t.Fatalf("a commit with byte %d changed is taken", i)
		}
	}
	for i := range commit {
		if _, err := c.Group.Process(commit[:i], mls.ProcessParams{Now: w.Now}); !errors.Is(err, mls.ErrMalformed) {
			t.Fatalf("a commit of %d bytes: %v", i, err)
		}
	}
	if !bytes.Equal(before, mlstest.State(c.Group)) {
		t.Fatal("refusals changed the group")
	}
	goesOn(t, w)
}

// holdsNoSecret checks that a text shows none of a group's secrets, in any form
// in which package fmt or an encoder might have written it.
func holdsNoSecret(t *testing.T, g *mls.Group, text string) {
	t.Helper()
	for _, secret := range g.Secrets() {
		if len(secret) < 8 {
			continue
		}
		part := secret[:8]
		forms := []string{
			string(part), hex.EncodeToString(part), strings.ToUpper(hex.EncodeToString(part)),
			strings.Trim(fmt.Sprint([]byte(part)), "[]"), strings.Trim(strings.TrimPrefix(fmt.Sprintf("%#v", []byte(part)), "[]byte"), "{}"),
		}
		for _, form := range forms {
			if strings.Contains(text, form) {
				t.Fatalf("a secret is shown: %.40q…", text)
			}
		}
	}
}

// Row 5: no printed form of anything the package hands out shows a secret.
func TestAttackSecretsInPrint(t *testing.T) {
	w := trio(t, 4)
	w.Chat(8)
	c := w.Members[0]
	sealed, err := c.Group.Seal(mls.SealParams{Random: w.Random(), Content: []byte("text")})
	if err != nil {
		t.Fatal(err)
	}
	commit := commitOf(t, w, c, mls.CommitParams{})
	staged, err := commit.Apply(c.Group, w.Now)
	if err != nil {
		t.Fatal(err)
	}
	exported, err := c.Group.Export("label", nil, 32)
	if err != nil {
		t.Fatal(err)
	}
	bundle := w.Client().KeyPackage(w.Now)
	things := []any{
		c.Group, *c.Group, sealed, *sealed, sealed.Step, sealed.Delta, commit, *commit, commit.Keep(), staged, *staged,
		exported, bundle, *bundle, c.Group.Records(), c.Config, *c.Config, struct{ G *mls.Group }{c.Group},
	}
	for _, thing := range things {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			text := fmt.Sprintf(verb, thing)
			holdsNoSecret(t, c.Group, text)
			holdsNoSecret(t, staged.Next, text)
			for _, secret := range []mls.Secret{exported, bundle.InitPrivate, bundle.EncryptionPrivate} {
				if strings.Contains(text, hex.EncodeToString(secret[:8])) || strings.Contains(text, string(secret[:8])) ||
					strings.Contains(text, strings.Trim(fmt.Sprint([]byte(secret[:8])), "[]")) {
					t.Fatalf("%T with %s shows a secret", thing, verb)
				}
			}
		}
	}
}

// Row 6: application data never travels as PublicMessage, membership tags are
// where they belong and nowhere else.
func TestAttackWireFormats(t *testing.T) {
	w := trio(t, 3)
	by, victim := w.Members[0], w.Members[1]
	frame := content(by.Group, wire.ContentTypeApplication)
	frame.ApplicationData = []byte("in the clear")
	refused(t, w, victim, by.Group.ForgePublic(frame, nil, nil), mls.ErrWireFormat)
	// Without its tag a member's message ends too early, with one a non-member's
	// has bytes left over.
	commit := commitOf(t, w, by, mls.CommitParams{})
	m := public(t, commit.Message)
	refused(t, w, victim, commit.Message[:len(commit.Message)-len(m.MembershipTag)-1], mls.ErrMalformed)
	add, err := mls.ExternalAdd(by.Group.GroupID(), by.Group.Epoch(), w.Client().KeyPackage(w.Now), by.Signer)
	if err != nil {
		t.Fatal(err)
	}
	refused(t, w, victim, append(bytes.Clone(add), wire.AppendOpaque(nil, m.MembershipTag)...), mls.ErrMalformed)
	for _, message := range [][]byte{commit.GroupInfo, w.Client().KeyPackage(w.Now).Message()} {
		refused(t, w, victim, message, mls.ErrWireFormat)
	}
	goesOn(t, w)
}

// Row 7: sender data that names no member, padding that is not zero.
func TestAttackSenderDataAndPadding(t *testing.T) {
	w := trio(t, 4)
	gone := w.Members[3]
	w.Commit(w.Members[0], mls.CommitParams{Proposals: mlstest.Remove(gone)})
	w.Add(w.Members[0], 1)
	w.Commit(w.Members[0], mls.CommitParams{Proposals: mlstest.Remove(w.Members[1])})
	by, victim := w.Members[0], w.Members[len(w.Members)-1]
	blank := uint32(1)
	if by.Group.Member(blank).Node != nil {
		t.Fatal("the leaf is not blank")
	}
	frame := content(by.Group, wire.ContentTypeApplication)
	frame.ApplicationData = []byte("text")
	for _, leaf := range []uint32{blank, 4, 1 << 20, 1<<32 - 1} {
		refused(t, w, victim, by.Group.ForgePrivate(w.Random(), frame, mls.Forged{Leaf: &leaf}), mls.ErrUnknownSender)
	}
	for _, padding := range [][]byte{{1}, {0, 0, 1}, {0, 1, 0}} {
		refused(t, w, victim, by.Group.ForgePrivate(w.Random(), frame, mls.Forged{Padding: padding}), mls.ErrMalformed)
	}
	refused(t, w, victim, by.Group.ForgePrivate(w.Random(), frame, mls.Forged{Signature: make([]byte, 64)}), mls.ErrSignature)
	if _, err := victim.Process(w.Now, by.Group.ForgePrivate(w.Random(), frame, mls.Forged{Padding: make([]byte, 1000)})); err != nil {
		t.Fatalf("zero padding: %v", err)
	}
}

// Row 8: replays, jumps of the generation, and failed decryptions that must not
// use a key up.
func TestAttackGenerations(t *testing.T) {
	w := trio(t, 3)
	by, victim := w.Members[0], w.Members[1]
	frame := content(by.Group, wire.ContentTypeApplication)
	frame.ApplicationData = []byte("text")
	for _, generation := range []uint32{2001, 1 << 31, 1<<32 - 1} {
		start := time.Now()
		refused(t, w, victim, by.Group.ForgePrivate(w.Random(), frame, mls.Forged{Generation: &generation}), mls.ErrGenerationLimit)
		// Walking there would take minutes at the least, looking at the number nothing.
		if took := time.Since(start); took > 30*time.Second {
			t.Fatalf("a jump to generation %d costs %v", generation, took)
		}
	}
	message := by.Seal("once")
	for i := len(message) - 40; i < len(message); i++ {
		bad := bytes.Clone(message)
		bad[i] ^= 1
		refused(t, w, victim, bad, mls.ErrDecrypt)
	}
	if _, err := victim.Process(w.Now, message); err != nil {
		t.Fatalf("the true message after failed ones: %v", err)
	}
	refused(t, w, victim, message, mls.ErrKeyConsumed)
	victim.Restart()
	refused(t, w, victim, message, mls.ErrKeyConsumed)

	// Late messages are read within the window and no further.
	victim.Config.Limits = mls.Limits{Forward: 50, Window: 5}
	var sent [][]byte
	for range 20 {
		sent = append(sent, by.Seal("late"))
	}
	if _, err := victim.Process(w.Now, sent[19]); err != nil {
		t.Fatal(err)
	}
	refused(t, w, victim, sent[13], mls.ErrKeyConsumed)
	for i := 14; i < 19; i++ {
		if _, err := victim.Process(w.Now, sent[i]); err != nil {
			t.Fatalf("message %d within the window: %v", i, err)
		}
		refused(t, w, victim, sent[i], mls.ErrKeyConsumed)
	}
	for range 51 {
		sent = append(sent, by.Seal("far"))
	}
	refused(t, w, victim, by.Seal("beyond"), mls.ErrGenerationLimit)
}

// Row 9: keys that were used are gone from memory and store, and no two messages
// have the same nonce guard.
func TestAttackUsedKeysAreGone(t *testing.T) {
	w := trio(t, 3)
	by, victim := w.Members[0], w.Members[1]
	guards := map[[4]byte]bool{}
	for range 20 {
		key, nonce := by.Group.NextKey()
		if !bytes.Contains(mlstest.State(by.Group), key[:0]) {
			t.Fatal("unreachable")
		}
		message := by.Seal("text")
		sender := victim.Group.OpenSenderData(message)
		if guards[sender.ReuseGuard] {
			t.Fatal("a reuse guard comes twice")
		}
		guards[sender.ReuseGuard] = true
		if _, err := victim.Process(w.Now, message); err != nil {
			t.Fatal(err)
		}
		for _, c := range []*mlstest.Client{by, victim} {
			for _, record := range c.Records() {
				if bytes.Contains(record.Value, key) || bytes.Contains(record.Value, nonce) {
					t.Fatalf("%s: the store still holds a used key in %q", c.Name, record.Key)
				}
			}
			for _, secret := range c.Group.Secrets() {
				if bytes.Equal(secret, key) || bytes.Equal(secret, nonce) {
					t.Fatalf("%s: the group still holds a used key", c.Name)
				}
			}
		}
	}
	// The secrets of an epoch are gone when it is over.
	init := map[string][]byte{}
	for i, secret := range by.Group.Secrets()[:8] {
		if i != 0 && i != 5 { // sender_data_secret and resumption_psk are kept for past epochs
			init[fmt.Sprint(i)] = bytes.Clone(secret)
		}
	}
	w.Commit(by, mls.CommitParams{})
	for name, secret := range init {
		if bytes.Contains(mls.MarshalRecords(by.Records()), secret) {
			t.Fatalf("secret %s of the epoch before is still stored", name)
		}
	}
}

// Row 27: messages of past epochs are read with the keys and credentials of
// their epoch, and only as long as those are kept.
func TestAttackPastEpochs(t *testing.T) {
	w := trio(t, 4)
	by, victim := w.Members[0], w.Members[1]
	late := by.Seal("before the rotation")
	other := w.Members[2]
	fromGone := other.Seal("before I left")
	signer, err := by.Suite.GenerateSignatureKey(w.Random())
	if err != nil {
		t.Fatal(err)
	}
	old := by.Signer
	by.Config.Signers = append(by.Config.Signers, signer)
	w.Commit(by, mls.CommitParams{Leaf: mls.LeafChange{Signer: signer}})
	w.Commit(victim, mls.CommitParams{Proposals: mlstest.Remove(other)})
	r, err := victim.Process(w.Now, late)
	if err != nil {
		t.Fatal(err)
	}
	a := r.(*mls.Application)
	if !bytes.Equal(a.Sender.Node.SignatureKey, old.Public()) || a.Epoch == victim.Group.Epoch() {
		t.Fatal("the late message is read with the credential of another epoch")
	}
	if _, err := victim.Process(w.Now, fromGone); err != nil {
		t.Fatalf("late message of somebody who was removed since: %v", err)
	}
	refused(t, w, victim, late, mls.ErrKeyConsumed)
	// What the removed member signs for the new epoch is nothing: it lacks the keys,
	// and its leaf is blank.
	frame := content(other.Group, wire.ContentTypeApplication)
	frame.Epoch = victim.Group.Epoch()
	frame.ApplicationData = []byte("still here")
	unread := by.Seal("never delivered in time")
	for range 4 {
		w.Commit(by, mls.CommitParams{})
	}
	if _, err := victim.Process(w.Now, unread); err != nil {
		t.Fatalf("a message four epochs late: %v", err)
	}
	gone := by.Seal("too late")
	for range 5 {
		w.Commit(by, mls.CommitParams{})
	}
	refused(t, w, victim, gone, mls.ErrPastEpoch)
	aged := by.Seal("too old")
	w.Now = w.Now.Add(30 * 24 * time.Hour)
	w.Commit(by, mls.CommitParams{})
	if _, err := victim.Process(w.Now, aged); err != nil {
		t.Fatalf("the epoch ended just now: %v", err)
	}
	aged = by.Seal("too old")
	w.Commit(by, mls.CommitParams{})
	w.Now = w.Now.Add(8 * 24 * time.Hour)
	w.Commit(by, mls.CommitParams{})
	refused(t, w, victim, aged, mls.ErrPastEpoch)
}
