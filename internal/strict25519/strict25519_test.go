package strict25519

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"
	"testing"

	"filippo.io/edwards25519"
)

// smallOrder holds every encoding of the eight points of small order,
// canonical or not.
var smallOrder = []string{
	"0100000000000000000000000000000000000000000000000000000000000000", // order 1
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // order 2
	"0000000000000000000000000000000000000000000000000000000000000000", // order 4
	"0000000000000000000000000000000000000000000000000000000000000080", // order 4
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05", // order 8
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85", // order 8
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a", // order 8
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa", // order 8
	"0100000000000000000000000000000000000000000000000000000000000080", // order 1, x = -0
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", // order 2, x = -0
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // y = p
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", // y = p
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f", // y = p + 1
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", // y = p + 1
}

func testKey(i int) ed25519.PrivateKey {
	seed := sha512.Sum512([]byte(fmt.Sprintf("strict25519 test key %d", i)))
	return ed25519.NewKeyFromSeed(seed[:32])
}

// check demands one verdict of the single and the batch rule.
func check(t *testing.T, want bool, pub, message, sig []byte) {
	t.Helper()
	if got := Verify(pub, message, sig); got != want {
		t.Errorf("Verify = %v, want %v", got, want)
	}
	for _, extra := range []int{0, 1, 3} {
		var b Batch
		for i := range extra {
			k := testKey(1000 + i)
			m := []byte{byte(i)}
			b.Add(k.Public().(ed25519.PublicKey), m, ed25519.Sign(k, m))
		}
		b.Add(pub, message, sig)
		if got := b.Verify(); got != want {
			t.Errorf("batch with %d good ones = %v, want %v", extra, got, want)
		}
	}
}

func TestGoodSignatures(t *testing.T) {
	for i := range 32 {
		k := testKey(i)
		m := []byte(fmt.Sprintf("message %d", i))
		check(t, true, k.Public().(ed25519.PublicKey), m, ed25519.Sign(k, m))
	}
	var empty Batch
	if !empty.Verify() {
		t.Error("an empty batch is invalid")
	}
}

func TestChangedBit(t *testing.T) {
	k := testKey(0)
	pub := k.Public().(ed25519.PublicKey)
	m := []byte("a message that is signed")
	sig := ed25519.Sign(k, m)
	for bit := 0; bit < len(sig)*8; bit += 7 {
		bad := append([]byte(nil), sig...)
		bad[bit/8] ^= 1 << (bit % 8)
		check(t, false, pub, m, bad)
	}
	for bit := 0; bit < len(pub)*8; bit += 7 {
		bad := append([]byte(nil), pub...)
		bad[bit/8] ^= 1 << (bit % 8)
		check(t, false, bad, m, sig)
	}
	check(t, false, pub, append(m, 0), sig)
	for _, n := range []int{0, 1, 31, 32, 63} {
		check(t, false, pub, m, bytes.Clone(sig[:n]))
	}
	check(t, false, pub, m, append(sig, 0))
	check(t, false, pub[:31], m, sig)
	check(t, false, nil, m, nil)
}

// TestMalleatedS adds L to S: the equation still holds, the encoding is no
// longer canonical.
func TestMalleatedS(t *testing.T) {
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	k := testKey(0)
	m := []byte("malleable?")
	sig := ed25519.Sign(k, m)
	s := new(big.Int).SetBytes(reversed(sig[32:]))
	for range 15 {
		s.Add(s, order)
		if s.BitLen() > 256 {
			break
		}
		bad := append([]byte(nil), sig...)
		copy(bad[32:], reversed(s.FillBytes(make([]byte, 32))))
		check(t, false, k.Public().(ed25519.PublicKey), m, bad)
	}
}

// TestSmallOrder uses S = 0 and R = A of small order, which satisfy the
// cofactored equation for every message.
func TestSmallOrder(t *testing.T) {
	good := testKey(0)
	m := []byte("anything")
	for _, x := range smallOrder {
		point, err := hex.DecodeString(x)
		if err != nil {
			t.Fatal(err)
		}
		if ValidPublicKey(point) {
			t.Errorf("small-order key %s is taken", x)
		}
		check(t, false, point, m, append(append([]byte(nil), point...), make([]byte, 32)...))

		// R of small order under a good key: S = k*a satisfies the equation.
		pub := good.Public().(ed25519.PublicKey)
		h := sha512.New()
		h.Write(point)
		h.Write(pub)
		h.Write(m)
		kk, _ := edwards25519.NewScalar().SetUniformBytes(h.Sum(nil))
		digest := sha512.Sum512(good.Seed())
		a, _ := edwards25519.NewScalar().SetBytesWithClamping(digest[:32])
		s := edwards25519.NewScalar().Multiply(kk, a)
		check(t, false, pub, m, append(append([]byte(nil), point...), s.Bytes()...))
	}
}

// TestMixedOrder shows where cofactored and cofactorless rules part: A or R
// with a small component. The single rule and the batch agree, whatever the
// coefficients.
func TestMixedOrder(t *testing.T) {
	k := testKey(0)
	digest := sha512.Sum512(k.Seed())
	a, _ := edwards25519.NewScalar().SetBytesWithClamping(digest[:32])
	pub := k.Public().(ed25519.PublicKey)
	for _, x := range smallOrder[1:8] {
		raw, _ := hex.DecodeString(x)
		torsion, err := new(edwards25519.Point).SetBytes(raw)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 8 {
			m := make([]byte, 8)
			binary.BigEndian.PutUint64(m, uint64(i))
			nonce, _ := edwards25519.NewScalar().SetUniformBytes(digest[:])
			r := new(edwards25519.Point).ScalarBaseMult(nonce)
			r.Add(r, torsion)
			h := sha512.New()
			h.Write(r.Bytes())
			h.Write(pub)
			h.Write(m)
			kk, _ := edwards25519.NewScalar().SetUniformBytes(h.Sum(nil))
			s := edwards25519.NewScalar().MultiplyAdd(kk, a, nonce)
			check(t, true, pub, m, append(r.Bytes(), s.Bytes()...))
		}
	}
}

func TestBatchFindsOneBad(t *testing.T) {
	for bad := range 20 {
		var b Batch
		for i := range 20 {
			k := testKey(i)
			m := []byte{byte(i)}
			sig := ed25519.Sign(k, m)
			if i == bad {
				m = []byte{byte(i), 1}
			}
			b.Add(k.Public().(ed25519.PublicKey), m, sig)
		}
		if b.Verify() {
			t.Errorf("batch with bad signature %d is valid", bad)
		}
	}
}

// TestBatchOfOneKey: signatures of one key share its point, one after the other
// or with others between them, and one bad among them is still found.
func TestBatchOfOneKey(t *testing.T) {
	for bad := -1; bad < 6; bad++ {
		var b Batch
		for i, key := range []int{0, 0, 1, 0, 0, 0} {
			k := testKey(key)
			m := []byte{byte(i)}
			sig := ed25519.Sign(k, m)
			if i == bad {
				m = []byte{byte(i), 1}
			}
			b.Add(k.Public().(ed25519.PublicKey), m, sig)
		}
		if got := b.Verify(); got != (bad < 0) {
			t.Errorf("batch with bad signature %d: %v", bad, got)
		}
	}
}

// TestOneKeyCannotCancel moves a difference from one signature of a key to the
// next: their sum stays right, and the batch refuses them as it refuses each.
func TestOneKeyCannotCancel(t *testing.T) {
	k := testKey(0)
	pub := k.Public().(ed25519.PublicKey)
	one := edwards25519.NewScalar()
	if _, err := one.SetCanonicalBytes(append([]byte{1}, make([]byte, 31)...)); err != nil {
		t.Fatal(err)
	}
	shift := func(sig []byte, by *edwards25519.Scalar) []byte {
		s, err := edwards25519.NewScalar().SetCanonicalBytes(sig[32:])
		if err != nil {
			t.Fatal(err)
		}
		return append(append([]byte(nil), sig[:32]...), s.Add(s, by).Bytes()...)
	}
	first, second := []byte("first"), []byte("second")
	var b Batch
	b.Add(pub, first, shift(ed25519.Sign(k, first), one))
	b.Add(pub, second, shift(ed25519.Sign(k, second), edwards25519.NewScalar().Negate(one)))
	if b.Verify() {
		t.Error("two wrong signatures whose differences cancel are valid")
	}
}

// TestCanonicalPoints compares the check of an encoding with encoding its point
// again and multiplying it by the cofactor: for all y from p on, for the points of
// small order and their neighbours, and for random bytes.
func TestCanonicalPoints(t *testing.T) {
	want := func(b []byte) bool {
		p, err := new(edwards25519.Point).SetBytes(b)
		return err == nil && bytes.Equal(p.Bytes(), b) && !isSmallOrder(p)
	}
	var encodings [][]byte
	for low := range 256 {
		for _, sign := range []byte{0x7f, 0xff} {
			high := bytes.Repeat([]byte{0xff}, 32)
			high[0], high[31] = byte(low), sign
			encodings = append(encodings, high, append([]byte{byte(low)}, append(make([]byte, 30), sign&0x80)...))
		}
	}
	for _, x := range smallOrder {
		b, _ := hex.DecodeString(x)
		for i := range 32 {
			near := append([]byte(nil), b...)
			near[i] ^= 1
			encodings = append(encodings, b, near)
		}
	}
	for i := range 500 {
		random := sha512.Sum512([]byte(fmt.Sprintf("point %d", i)))
		encodings = append(encodings, random[:32])
	}
	valid := 0
	for _, b := range encodings {
		got := ValidPublicKey(b)
		if got != want(b) {
			t.Errorf("%x is valid: %v", b, got)
		}
		if got {
			valid++
		}
	}
	if valid < 200 || valid > len(encodings)-200 {
		t.Errorf("%d of %d are valid: the encodings are not mixed", valid, len(encodings))
	}
}

func reversed(b []byte) []byte {
	out := make([]byte, len(b))
	for i, x := range b {
		out[len(b)-1-i] = x
	}
	return out
}

func BenchmarkVerify(b *testing.B) {
	k := testKey(0)
	pub := k.Public().(ed25519.PublicKey)
	m := make([]byte, 256)
	sig := ed25519.Sign(k, m)
	b.Run("strict", func(b *testing.B) {
		for b.Loop() {
			Verify(pub, m, sig)
		}
	})
	b.Run("crypto/ed25519", func(b *testing.B) {
		for b.Loop() {
			ed25519.Verify(pub, m, sig)
		}
	})
	for _, n := range []int{16, 64, 256} {
		b.Run(fmt.Sprintf("batch-%d", n), func(b *testing.B) {
			keys := make([]ed25519.PublicKey, n)
			sigs := make([][]byte, n)
			for i := range n {
				k := testKey(i)
				keys[i], sigs[i] = k.Public().(ed25519.PublicKey), ed25519.Sign(k, m)
			}
			for b.Loop() {
				var batch Batch
				for i := range n {
					batch.Add(keys[i], m, sigs[i])
				}
				if !batch.Verify() {
					b.Fatal("invalid")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "µs/sig")
		})
	}
}

// TestKeySizes: a key of any other size is no key.
func TestKeySizes(t *testing.T) {
	pub, k, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	sig := ed25519.Sign(k, nil)
	for n := range 65 {
		key := append(append([]byte(nil), pub...), pub...)[:n]
		want := n == PublicKeySize
		if ValidPublicKey(key) != want || Verify(key, nil, sig) != want {
			t.Errorf("a key of %d bytes: valid %v, verifies %v", n, ValidPublicKey(key), Verify(key, nil, sig))
		}
		var b Batch
		b.Add(key, nil, sig)
		if b.Verify() != want {
			t.Errorf("a key of %d bytes in a batch: %v", n, !want)
		}
	}
}
