package identity

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func testRequest() EnvelopeRequest {
	return EnvelopeRequest{
		Home:     Home{0x0a, 0x0b, 0x0c},
		Method:   "POST",
		Target:   `/bot9f2c/sendMessage?text="a\b"&x=1`,
		Body:     []byte(`{"chat_id":-1001,"text":"Hello."}`),
		IssuedAt: 1_764_000_000,
		Nonce:    Nonce{0, 1, 2, 3, 250, 251, 252, 253, 254, 255, 6, 7, 8, 9, 10, 11},
	}
}

// open seals, parses and verifies at a time.
func open(t *testing.T, r EnvelopeRequest, now time.Time) (Envelope, error) {
	t.Helper()
	header, err := Seal(testKey("ada's phone"), r)
	if err != nil {
		t.Fatal(err)
	}
	u, err := ParseEnvelopeHeader(header)
	if err != nil {
		t.Fatal(err)
	}
	return u.Verify(r.Method, r.Target, r.Body, r.Home, now, EnvelopeSkew)
}

func TestEnvelopeRoundTrip(t *testing.T) {
	r := testRequest()
	at := time.Unix(int64(r.IssuedAt), 0)
	e, err := open(t, r, at)
	if err != nil {
		t.Fatal(err)
	}
	phone := DevicePublicKey(publicOf(testKey("ada's phone")))
	if e.Device() != phone || e.Home() != r.Home || e.Nonce() != r.Nonce || !e.IssuedAt().Equal(at) {
		t.Errorf("envelope fields: %+v", e)
	}
	key := e.NonceKey()
	if !bytes.Equal(key[:32], phone[:]) || !bytes.Equal(key[32:], r.Nonce[:]) {
		t.Errorf("nonce key %x", key)
	}
	r.Body = nil
	if _, err := open(t, r, at); err != nil {
		t.Errorf("without a body: %v", err)
	}
}

// TestEnvelopeLayout lays the bytes out by hand.
func TestEnvelopeLayout(t *testing.T) {
	r := EnvelopeRequest{Home: Home{1, 2, 3}, Method: "GET", Target: "/a", Body: []byte("xyz"), IssuedAt: 5, Nonce: Nonce{9}}
	device := DevicePublicKey{8}
	want := "chat-relay-envelope-v1" + string(device[:]) + "\x01\x02\x03" + "\x00\x00\x00\x03GET" + "\x00\x00\x00\x02/a" + "\x00\x00\x00\x03xyz" +
		"\x00\x00\x00\x00\x00\x00\x00\x05" + "\x09" + strings.Repeat("\x00", 15)
	got := string(appendEnvelope(nil, device, r))
	if got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if len(got) != envelopeSize(r) {
		t.Errorf("envelopeSize %d, is %d", envelopeSize(r), len(got))
	}
}

// TestEnvelopeSkewEdges: sixty seconds either way are inside, one nanosecond
// more is not.
func TestEnvelopeSkewEdges(t *testing.T) {
	r := testRequest()
	at := time.Unix(int64(r.IssuedAt), 0)
	for _, c := range []struct {
		off  time.Duration
		want error
	}{
		{0, nil}, {EnvelopeSkew, nil}, {-EnvelopeSkew, nil}, {EnvelopeSkew - 1, nil},
		{EnvelopeSkew + 1, ErrSkew}, {-EnvelopeSkew - 1, ErrSkew}, {time.Hour, ErrSkew}, {-time.Hour, ErrSkew},
	} {
		if _, err := open(t, r, at.Add(c.off)); !errors.Is(err, c.want) {
			t.Errorf("%v off: %v, want %v", c.off, err, c.want)
		}
	}
	for _, issued := range []uint64{0, 1 << 41, 1<<63 - 1, 1 << 63, 1<<64 - 1} {
		r.IssuedAt = issued
		if _, err := open(t, r, at); !errors.Is(err, ErrSkew) {
			t.Errorf("issued at %d: %v", issued, err)
		}
	}
}

func TestEnvelopeNonceWindow(t *testing.T) {
	r := testRequest()
	at := time.Unix(int64(r.IssuedAt), 0)
	e, err := open(t, r, at)
	if err != nil {
		t.Fatal(err)
	}
	if !e.NonceExpiry().After(at.Add(EnvelopeSkew)) {
		t.Error("the nonce is forgotten while the envelope still counts")
	}
	// A store born a minute before the envelope was issued cannot have missed
	// it: an envelope used before the birth was issued at most a skew after.
	if e.Predates(at.Add(-EnvelopeSkew)) {
		t.Error("issued a skew after the birth: must be taken")
	}
	if !e.Predates(at.Add(-EnvelopeSkew + 1)) {
		t.Error("issued within a skew of the birth: must be refused")
	}
}

func TestEnvelopeWrongHome(t *testing.T) {
	r := testRequest()
	header, _ := Seal(testKey("ada's phone"), r)
	u, err := ParseEnvelopeHeader(header)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(int64(r.IssuedAt), 0)
	if _, err := u.Verify(r.Method, r.Target, r.Body, Home{1, 1, 1}, at, EnvelopeSkew); !errors.Is(err, ErrWrongHome) {
		t.Errorf("at another home: %v", err)
	}
	// A carrier that rewrites the home breaks the signature.
	u.Home = Home{1, 1, 1}
	if _, err := u.Verify(r.Method, r.Target, r.Body, Home{1, 1, 1}, at, EnvelopeSkew); !errors.Is(err, ErrSignature) {
		t.Errorf("home substituted: %v", err)
	}
}

func TestEnvelopeChanged(t *testing.T) {
	r := testRequest()
	header, _ := Seal(testKey("ada's phone"), r)
	good, err := ParseEnvelopeHeader(header)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(int64(r.IssuedAt), 0)
	verify := func(u UnverifiedEnvelope, r EnvelopeRequest) error {
		_, err := u.Verify(r.Method, r.Target, r.Body, r.Home, at, EnvelopeSkew)
		return err
	}
	if err := verify(good, r); err != nil {
		t.Fatal(err)
	}
	small := DevicePublicKey{1}
	for name, c := range map[string]struct {
		u    func(*UnverifiedEnvelope)
		r    func(*EnvelopeRequest)
		want error
	}{
		"method of the request":       {nil, func(r *EnvelopeRequest) { r.Method = "GET" }, ErrEnvelopeRequest},
		"method in lower case":        {nil, func(r *EnvelopeRequest) { r.Method = "post" }, ErrEnvelopeRequest},
		"path of the request":         {nil, func(r *EnvelopeRequest) { r.Target = "/bot9f2c/deleteMessage?x=1" }, ErrEnvelopeRequest},
		"query of the request":        {nil, func(r *EnvelopeRequest) { r.Target += "2" }, ErrEnvelopeRequest},
		"query dropped":               {nil, func(r *EnvelopeRequest) { r.Target = "/bot9f2c/sendMessage" }, ErrEnvelopeRequest},
		"path normalised":             {nil, func(r *EnvelopeRequest) { r.Target = "/" + r.Target }, ErrEnvelopeRequest},
		"path percent-encoded":        {nil, func(r *EnvelopeRequest) { r.Target = strings.Replace(r.Target, "t", "%74", 1) }, ErrEnvelopeRequest},
		"both paths changed":          {func(u *UnverifiedEnvelope) { u.Target = "/x" }, func(r *EnvelopeRequest) { r.Target = "/x" }, ErrSignature},
		"both methods changed":        {func(u *UnverifiedEnvelope) { u.Method = "PUT" }, func(r *EnvelopeRequest) { r.Method = "PUT" }, ErrSignature},
		"body changed":                {nil, func(r *EnvelopeRequest) { r.Body = []byte(`{"chat_id":-1002,"text":"Hello."}`) }, ErrSignature},
		"body with a space":           {nil, func(r *EnvelopeRequest) { r.Body = append(slices.Clone(r.Body), ' ') }, ErrSignature},
		"body dropped":                {nil, func(r *EnvelopeRequest) { r.Body = nil }, ErrSignature},
		"issued_at changed":           {func(u *UnverifiedEnvelope) { u.IssuedAt++ }, nil, ErrSignature},
		"nonce changed":               {func(u *UnverifiedEnvelope) { u.Nonce[3]++ }, nil, ErrSignature},
		"another device's key":        {func(u *UnverifiedEnvelope) { u.DevicePubkey = publicOf(testKey("eve")) }, nil, ErrSignature},
		"small-order key":             {func(u *UnverifiedEnvelope) { u.DevicePubkey = small; u.Signature = Signature{1} }, nil, ErrSignature},
		"signature of zeros":          {func(u *UnverifiedEnvelope) { u.Signature = Signature{} }, nil, ErrSignature},
		"malleated S":                 {func(u *UnverifiedEnvelope) { malleate(u.Signature[32:]) }, nil, ErrSignature},
		"relative path":               {func(u *UnverifiedEnvelope) { u.Target = "x" }, func(r *EnvelopeRequest) { r.Target = "x" }, ErrFormat},
		"line break in the path":      {func(u *UnverifiedEnvelope) { u.Target = "/x\r\n" }, func(r *EnvelopeRequest) { r.Target = "/x\r\n" }, ErrFormat},
		"path above the bound":        {func(u *UnverifiedEnvelope) { u.Target = long }, func(r *EnvelopeRequest) { r.Target = long }, ErrFormat},
		"method that is not a method": {func(u *UnverifiedEnvelope) { u.Method = "" }, func(r *EnvelopeRequest) { r.Method = "" }, ErrFormat},
	} {
		t.Run(name, func(t *testing.T) {
			u, r := good, r
			if c.u != nil {
				c.u(&u)
			}
			if c.r != nil {
				c.r(&r)
			}
			if err := verify(u, r); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}

var long = "/" + strings.Repeat("a", MaxEnvelopeTarget)

// malleate adds the group order to S.
func malleate(s []byte) {
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	slices.Reverse(s)
	new(big.Int).Add(new(big.Int).SetBytes(s), order).FillBytes(s)
	slices.Reverse(s)
}

func TestSealRefuses(t *testing.T) {
	for name, change := range map[string]func(*EnvelopeRequest){
		"no method":      func(r *EnvelopeRequest) { r.Method = "" },
		"long method":    func(r *EnvelopeRequest) { r.Method = strings.Repeat("A", 17) },
		"no path":        func(r *EnvelopeRequest) { r.Target = "" },
		"relative path":  func(r *EnvelopeRequest) { r.Target = "a" },
		"long path":      func(r *EnvelopeRequest) { r.Target = long },
		"space in path":  func(r *EnvelopeRequest) { r.Target = "/a b" },
		"unencoded path": func(r *EnvelopeRequest) { r.Target = "/ä" },
	} {
		r := testRequest()
		change(&r)
		if _, err := Seal(testKey("ada's phone"), r); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Seal(nil, testRequest()); !errors.Is(err, ErrSigner) {
		t.Errorf("no key: %v", err)
	}
	r := testRequest()
	r.Target = long[:MaxEnvelopeTarget]
	header, err := Seal(testKey("ada's phone"), r)
	if err != nil || len(header) > MaxEnvelopeHeader {
		t.Errorf("the longest path makes a header of %d bytes: %v", len(header), err)
	}
}

// TestEnvelopeInjective moves bytes between the fields of random requests: as
// long as anything differs, the signed bytes differ.
func TestEnvelopeInjective(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	// Few letters and short fields, so that collisions would be found; the
	// lengths and counters use the same byte values.
	word := func(n int) string {
		b := make([]byte, rng.IntN(n))
		for i := range b {
			b[i] = "\x00\x01\x02A"[rng.IntN(4)]
		}
		return string(b)
	}
	seen := map[string]string{}
	for range 200_000 {
		r := EnvelopeRequest{Method: word(4), Target: word(7), Body: []byte(word(12)), IssuedAt: rng.Uint64N(3)}
		r.Home[2], r.Nonce[0] = byte(rng.IntN(2)), byte(rng.IntN(2))
		device := DevicePublicKey{byte(rng.IntN(2))}
		laid := string(appendEnvelope(nil, device, r))
		what := fmt.Sprintf("%x %+q", device, fmt.Sprint(r))
		if other, ok := seen[laid]; ok && other != what {
			t.Fatalf("%s and %s lay out alike", what, other)
		}
		seen[laid] = what
	}
}

// TestEnvelopeSplits takes one string and cuts it into method, target and body
// in every possible way.
func TestEnvelopeSplits(t *testing.T) {
	const text = "POST/a/b\x00\x00\x00\x01c"
	seen := map[string]bool{}
	n := 0
	for i := 0; i <= len(text); i++ {
		for j := i; j <= len(text); j++ {
			laid := appendEnvelope(nil, DevicePublicKey{}, EnvelopeRequest{Method: text[:i], Target: text[i:j], Body: []byte(text[j:])})
			seen[string(laid)] = true
			n++
		}
	}
	if len(seen) != n {
		t.Errorf("%d ways to cut make %d layouts", n, len(seen))
	}
}

func TestParseEnvelopeHeader(t *testing.T) {
	header, _ := Seal(testKey("ada's phone"), testRequest())
	raw, err := base64.RawURLEncoding.DecodeString(header)
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	replace := func(old, new string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("%q is not in %s", old, text)
		}
		return strings.Replace(text, old, new, 1)
	}
	good, err := ParseEnvelopeHeader(header)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]string{
		"spaces":        " " + strings.ReplaceAll(text, `":`, `": `) + "\n",
		"unknown field": replace(`{"device`, `{"v":[{"a":1}],"device`),
		"escapes":       replace(`"POST"`, `"\u0050OST"`),
		"upper hex":     replace(`"0a0b0c"`, `"0A0B0C"`),
		"order":         `{"method":"POST",` + replace(`"method":"POST",`, "")[1:],
	} {
		u, err := ParseEnvelopeHeader(base64.RawURLEncoding.EncodeToString([]byte(s)))
		if err != nil || u != good {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, s := range map[string]string{
		"empty":             "",
		"not an object":     `[1]`,
		"cut":               text[:len(text)-1],
		"two objects":       text + text,
		"trailing":          text + "x",
		"doubled field":     replace(`{"device`, `{"home":"0a0b0c","device`),
		"doubled unknown":   replace(`{"device`, `{"v":1,"v":1,"device`),
		"other case":        replace(`"home"`, `"Home"`),
		"missing":           replace(`"home":"0a0b0c",`, ``),
		"short key":         replace(`{"device_pubkey":[`, `{"device_pubkey":[1],"x":[`),
		"long nonce":        replace(`"nonce":[`, `"nonce":[1,`),
		"nonce in hex":      replace(`"nonce":[`, `"nonce":"00","x":[`),
		"number above 255":  replace(`"nonce":[0`, `"nonce":[256`),
		"negative":          replace(`"nonce":[0`, `"nonce":[-1`),
		"fraction":          replace(`"nonce":[0`, `"nonce":[0.5`),
		"float time":        replace(`"issued_at":1764000000`, `"issued_at":1.764e9`),
		"text time":         replace(`"issued_at":1764000000`, `"issued_at":"1764000000"`),
		"time above 64 bit": replace(`"issued_at":1764000000`, `"issued_at":18446744073709551616`),
		"null method":       replace(`"POST"`, `null`),
		"short home":        replace(`"0a0b0c"`, `"0a0b"`),
		"short signature":   replace(`"signature":"`, `"x":"","signature":"00`),
		"too many unknown":  replace(`{"device`, `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"device`),
	} {
		if _, err := ParseEnvelopeHeader(base64.RawURLEncoding.EncodeToString([]byte(s))); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, s := range map[string]string{
		"padding":       base64.URLEncoding.EncodeToString([]byte(text+" ")) + "=",
		"plus":          "+" + header[1:],
		"line break":    header[:8] + "\n" + header[8:],
		"trailing bits": "eyJ9", // not JSON either way
		"too long":      strings.Repeat("A", MaxEnvelopeHeader+1),
		"plain JSON":    text,
	} {
		if _, err := ParseEnvelopeHeader(s); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParseEnvelopeHeader(f *testing.F) {
	header, _ := Seal(testKey("ada's phone"), testRequest())
	f.Add(header)
	f.Add("e30")
	f.Add(base64.RawURLEncoding.EncodeToString([]byte(`{"device_pubkey":[[[[[[`)))
	f.Fuzz(func(t *testing.T, s string) {
		u, err := ParseEnvelopeHeader(s)
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Errorf("error of another kind: %v", err)
			}
			return
		}
		if !visibleASCII(u.Method) || !visibleASCII(u.Target) {
			return // Seal never writes it, Verify refuses it
		}
		again, err := ParseEnvelopeHeader(u.header())
		if err != nil || again != u {
			t.Errorf("round trip: %v", err)
		}
	})
}

func FuzzParseCredential(f *testing.F) {
	a := testAttestation()
	c, _ := Attest(a, testKey("ada"), testKey("ada's phone"))
	f.Add(c.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		u, err := ParseCredential(b)
		if err == nil && !bytes.Equal(u.Bytes(), b) {
			t.Error("round trip differs")
		}
	})
}

// ExampleSeal signs one request and checks it as a server does.
func ExampleSeal() {
	device := ed25519.NewKeyFromSeed(make([]byte, 32))
	request := EnvelopeRequest{
		Home:     Home{0xc0, 0xff, 0xee},
		Method:   "GET",
		Target:   "/info?full=1",
		IssuedAt: 1_764_000_000,
		Nonce:    Nonce(binary.BigEndian.AppendUint64(make([]byte, 8), 1)),
	}
	header, err := Seal(device, request)
	if err != nil {
		fmt.Println(err)
		return
	}
	unverified, err := ParseEnvelopeHeader(header)
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Unix(1_764_000_030, 0)
	envelope, err := unverified.Verify("GET", "/info?full=1", nil, Home{0xc0, 0xff, 0xee}, now, EnvelopeSkew)
	fmt.Println(envelope.Device(), err)
	_, err = unverified.Verify("GET", "/info?full=0", nil, Home{0xc0, 0xff, 0xee}, now, EnvelopeSkew)
	fmt.Println(err)
	// Output:
	// 3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29 <nil>
	// identity: envelope is for another request: method or path differ
}
