package phrase

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"github.com/askucher/compax-core/identity"
	"github.com/askucher/compax-core/internal/testdata"
)

// known is entropy 0, 1, 2 … 31.
func known(t testing.TB) Phrase {
	t.Helper()
	entropy := make([]byte, entropySize)
	for i := range entropy {
		entropy[i] = byte(i)
	}
	p, err := Generate(bytes.NewReader(entropy))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestList(t *testing.T) {
	// The digest of english.txt in the repository of the BIPs.
	const want = "2f5eed53a4727b4bf8880d8f3f199efc90e58503646d9ff8eff3a2ed3b24dbda"
	if got := sha256.Sum256([]byte(english)); hex.EncodeToString(got[:]) != want {
		t.Errorf("english.txt has digest %x", got)
	}
	if len(list()) != listSize || !slices.IsSorted(list()) {
		t.Error("the list is not 2048 sorted words")
	}
}

// TestBIP39Vectors runs every case of every language: words both ways where the
// list is ours (English), the seed everywhere.
func TestBIP39Vectors(t *testing.T) {
	var languages map[string][][]string
	if err := json.Unmarshal(testdata.Shared(t, "wallet-vectors/bitcoin/bip-0039_trezor_vectors.json"), &languages); err != nil {
		t.Fatal(err)
	}
	cases := 0
	for language, vectors := range languages {
		for i, v := range vectors {
			entropy, err := hex.DecodeString(v[0])
			if err != nil {
				t.Fatal(err)
			}
			if language == "english" {
				if got := encode(entropy); got != v[1] {
					t.Errorf("english %d: words %q", i, got)
				}
				indices, err := lookUp(strings.Fields(v[1]))
				if err != nil {
					t.Fatal(err)
				}
				if got, ok := decode(indices); !ok || !bytes.Equal(got, entropy) {
					t.Errorf("english %d: entropy %x", i, got)
				}
				if len(entropy) == entropySize {
					if p, err := Parse(v[1]); err != nil || p.Words() != v[1] {
						t.Errorf("english %d: Parse: %v", i, err)
					}
				} else if _, err := Parse(v[1]); err == nil {
					t.Errorf("english %d: Parse takes %d bytes", i, len(entropy))
				}
			}
			got, err := seed(norm.NFKD.String(v[1]), "TREZOR")
			if err != nil || hex.EncodeToString(got) != v[2] {
				t.Errorf("%s %d: seed %x, %v", language, i, got, err)
			}
			cases++
		}
	}
	if cases != 12*24 {
		t.Errorf("%d cases, expected 288", cases)
	}
}

// TestSLIP0010Vectors runs every chain of the two curves whose private
// derivation this is (Ed25519, and Curve25519, which differs by its name only).
func TestSLIP0010Vectors(t *testing.T) {
	var vectors []struct {
		Name, Seed string
		Chains     []struct {
			Path, Public, Private string
			ChainCode             string `json:"chain_code"`
		}
	}
	if err := json.Unmarshal(testdata.Shared(t, "wallet-vectors/bitcoin/slip-0010_vectors.json"), &vectors); err != nil {
		t.Fatal(err)
	}
	chains := 0
	for _, v := range vectors {
		curve := v.Name[strings.LastIndex(v.Name, " ")+1:]
		if curve != "ed25519" && curve != "curve25519" {
			continue // other arithmetic; the wallets derive on those curves
		}
		seed, err := hex.DecodeString(v.Seed)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range v.Chains {
			n := newMaster(curve+" seed", seed)
			for _, element := range strings.Split(c.Path, "/")[1:] {
				digits, ok := strings.CutSuffix(element, "'")
				i, err := strconv.ParseUint(digits, 10, 31)
				if !ok || err != nil {
					t.Fatalf("path %s", c.Path)
				}
				n = n.child(uint32(i))
			}
			if hex.EncodeToString(n.private()) != c.Private || hex.EncodeToString(n[32:]) != c.ChainCode {
				t.Errorf("%s %s: %x", v.Name, c.Path, n[:])
			}
			if curve == "ed25519" {
				k, err := KeyFromSeed(n.private())
				if err != nil {
					t.Fatal(err)
				}
				pub := k.PublicBytes()
				if "00"+hex.EncodeToString(pub[:]) != c.Public {
					t.Errorf("%s %s: public %x", v.Name, c.Path, pub)
				}
			}
			chains++
		}
	}
	if chains != 24 {
		t.Errorf("%d chains, expected 24", chains)
	}
}

// TestPaths pins the account's paths, computed here step by step, and their
// values: an account that was ever made depends on them.
func TestPaths(t *testing.T) {
	p := known(t)
	seed, err := p.Seed("")
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.Account()
	if err != nil {
		t.Fatal(err)
	}
	m := newMaster(ed25519Curve, seed)
	want := func(path ...uint32) [32]byte {
		n := m
		for _, i := range path {
			n = n.child(i)
		}
		return [32]byte(ed25519.NewKeyFromSeed(n.private()).Public().(ed25519.PublicKey))
	}
	id, err := a.Identity()
	if err != nil || id.PublicBytes() != want(9420, 0, 0) {
		t.Errorf("identity: %v", err)
	}
	for _, i := range []uint32{0, 1, MaxBotIndex} {
		if bot, err := a.Bot(i); err != nil || bot.PublicBytes() != want(9420, 1, i) {
			t.Errorf("bot %d: %v", i, err)
		}
	}
	if _, err := a.Bot(MaxBotIndex + 1); err == nil {
		t.Error("a bot index of 32 bits is taken")
	}
	archive, err := a.ArchiveKey(1)
	if err != nil {
		t.Fatal(err)
	}
	public, err := a.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%s %x", public, archive)
	if got != golden {
		t.Errorf("the account of the known phrase changed:\n got %s\nwant %s", got, golden)
	}
	second, err := a.ArchiveKey(2)
	if err != nil || fmt.Sprintf("%x", second) != goldenSecond {
		t.Errorf("the second generation's key changed: %x, %v", second, err)
	}
	if _, err := a.ArchiveKey(0); err == nil {
		t.Error("a generation 0 is taken")
	}
	stored, err := ParseAccount(a.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if again, err := stored.PublicKey(); err != nil || again != public {
		t.Errorf("a stored account: %v", err)
	}
	if _, err := ParseAccount(a.Bytes()[1:]); err == nil {
		t.Error("a short account is taken")
	}
}

func TestKeySigns(t *testing.T) {
	a, err := known(t).Account()
	if err != nil {
		t.Fatal(err)
	}
	id, err := a.Identity()
	if err != nil {
		t.Fatal(err)
	}
	device, err := GenerateKey(bytes.NewReader(bytes.Repeat([]byte{9}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	c, err := identity.Attest(identity.Attestation{Identity: id.PublicBytes(), DevicePubkey: device.PublicBytes()}, id, device)
	if err != nil || c.Identity() != identity.PublicKey(id.PublicBytes()) {
		t.Errorf("attest: %v", err)
	}
	if _, err := GenerateKey(bytes.NewReader(make([]byte, 31))); err == nil {
		t.Error("a key of 31 random bytes")
	}
	for n := range 66 {
		if _, err := KeyFromSeed(make([]byte, n)); (err == nil) != (n == ed25519.SeedSize) {
			t.Errorf("a seed of %d bytes: %v", n, err)
		}
	}
	if _, err := Generate(bytes.NewReader(make([]byte, 31))); err == nil {
		t.Error("a phrase of 31 random bytes")
	}
}

func TestParseForms(t *testing.T) {
	words := known(t).Words()
	for _, text := range []string{words, strings.ToUpper(words), "\n " + strings.ReplaceAll(words, " ", " \t\r\n") + " "} {
		p, err := Parse(text)
		if err != nil || p.Words() != words {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestWordErrors(t *testing.T) {
	words := strings.Fields(known(t).Words())
	var wrong *WordError
	for _, n := range []int{0, 1, 12, 23} {
		if _, err := Parse(strings.Join(words[:n], " ")); !errors.As(err, &wrong) || wrong.Count != n || len(wrong.Unknown) != 0 {
			t.Errorf("%d words: %v", n, err)
		}
	}
	if _, err := Parse(strings.Repeat("abandon ", 1000)); !errors.As(err, &wrong) || wrong.Count != -1 {
		t.Errorf("a long text: %v", err)
	}
	typed := slices.Clone(words)
	typed[2], typed[20] = mistype(words[2]), "zzzzzzzz"+strings.Repeat("z", 100)
	_, err := Parse(strings.Join(typed, " "))
	if !errors.As(err, &wrong) || len(wrong.Unknown) != 2 {
		t.Fatalf("%v", err)
	}
	if u := wrong.Unknown[0]; u.Position != 3 || !slices.Contains(u.Nearest, words[2]) {
		t.Errorf("suggestions for %q: %+v", typed[2], u)
	}
	if wrong.Unknown[1].Position != 21 || len(wrong.Unknown[1].Nearest) == 0 {
		t.Errorf("suggestions: %+v", wrong.Unknown[1])
	}
	if want := "phrase: words 3, 21 are not in the list: check their spelling"; err.Error() != want {
		t.Errorf("error %q", err)
	}
}

// mistype exchanges the second and the third letter.
func mistype(w string) string { return w[:1] + w[2:3] + w[1:2] + w[3:] }

func TestChecksumErrors(t *testing.T) {
	words := strings.Fields(known(t).Words())
	var wrong *ChecksumError

	swapped := slices.Clone(words)
	swapped[4], swapped[5] = swapped[5], swapped[4]
	_, err := Parse(strings.Join(swapped, " "))
	if !errors.As(err, &wrong) || !slices.Contains(wrong.Repairs, Repair{Position: 5}) {
		t.Errorf("exchanged words: %v %+v", err, wrong)
	}

	// A word of the list that is one letter from the right one.
	tried := false
	for i, w := range words {
		for _, other := range list() {
			if distance(w, other) != 1 {
				continue
			}
			typed := slices.Clone(words)
			typed[i] = other
			_, err := Parse(strings.Join(typed, " "))
			if err == nil {
				continue // one in 256 passes by chance
			}
			tried = true
			if !errors.As(err, &wrong) || !slices.Contains(wrong.Repairs, Repair{i + 1, w}) {
				t.Errorf("word %d: %v", i+1, err)
			}
			for _, r := range wrong.Repairs {
				if r.Word != "" && strings.Contains(err.Error(), r.Word) {
					t.Errorf("the error says a word: %v", err)
				}
			}
		}
	}
	if !tried {
		t.Error("the known phrase has no word with a neighbour: choose another one")
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"abandon", "abandon", 0}, {"abandno", "abandon", 1},
		{"abadon", "abandon", 1}, {"abbandon", "abandon", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q %q: %d, want %d", c.a, c.b, got, c.want)
		}
		if distance(c.a, c.b) != distance(c.b, c.a) {
			t.Errorf("%q %q: not symmetric", c.a, c.b)
		}
	}
}

func TestWipe(t *testing.T) {
	p := known(t)
	a, err := p.Account()
	if err != nil {
		t.Fatal(err)
	}
	k, err := a.Identity()
	if err != nil {
		t.Fatal(err)
	}
	copied := k
	entropy, n, raw := p.entropy.get(), a.n.get(), k.k.get()
	p.Wipe()
	a.Wipe()
	k.Wipe()
	if *entropy != [entropySize]byte{} || *n != (node{}) || *raw != [64]byte{} {
		t.Error("Wipe left bytes")
	}
	p.Wipe()
	a.Wipe()
	k.Wipe()
	if _, err := p.Account(); !errors.Is(err, ErrWiped) {
		t.Error(err)
	}
	if _, err := a.Identity(); !errors.Is(err, ErrWiped) {
		t.Error(err)
	}
	if _, err := a.ArchiveKey(1); !errors.Is(err, ErrWiped) {
		t.Error(err)
	}
	if _, err := copied.Sign(nil, nil, nil); !errors.Is(err, ErrWiped) {
		t.Error(err)
	}
	if p.Words() != "" || a.Bytes() != nil || k.Seed() != nil {
		t.Error("a wiped secret has bytes")
	}
}

// TestNothingPrints puts the secrets, bare and inside other values, through
// every verb and through JSON.
func TestNothingPrints(t *testing.T) {
	p := known(t)
	a, err := p.Account()
	if err != nil {
		t.Fatal(err)
	}
	k, err := a.Identity()
	if err != nil {
		t.Fatal(err)
	}
	type hidden struct {
		p Phrase
		a *Account
		k []Key
	}
	type shown struct {
		P Phrase
		A Account
		K map[string]Key
	}
	h := hidden{p, &a, []Key{k}}
	leaks := []string{
		hex.EncodeToString(p.entropy.get()[:4]), fmt.Sprint(p.entropy.get()[:4]), strings.Join(strings.Fields(p.Words())[:2], " "),
		hex.EncodeToString(a.n.get()[:4]), hex.EncodeToString(k.k.get()[:4]), strings.Trim(fmt.Sprint(a.n.get()[:4]), "[]"), strings.Trim(fmt.Sprint(k.k.get()[:4]), "[]"),
	}
	for _, v := range []any{p, &p, a, &a, k, &k, h, &h, shown{p, a, map[string]Key{"x": k}}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			out := strings.ToLower(fmt.Sprintf(verb, v))
			for _, leak := range leaks {
				if strings.Contains(out, leak) {
					t.Errorf("%T under %s shows %q", v, verb, leak)
				}
			}
		}
	}
	for _, v := range []any{p, a, k, shown{P: p}} {
		if out, err := json.Marshal(v); err == nil {
			t.Errorf("%T is marshalled: %s", v, out)
		}
	}
}

// golden is the identity and the archive key of the entropy 0, 1 … 31.
const golden = "e5ac168641834b3779f05587cf0e14ce0a40c79866e189cd71e71b25e59b171d adcde1d729c68c6ecd28ac2c4f93544f5dfe180813a094634274737ecba17266"

// goldenSecond is the archive key of the second generation of the same entropy.
const goldenSecond = "20500b51ffa59fd6ce2c4fc0983327ae137266cc813368b611137d84a30c3181"
