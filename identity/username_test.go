package identity

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func testUsername(t *testing.T, change func(*UsernameFields)) UsernameRecord {
	t.Helper()
	f := UsernameFields{
		Identity: publicOf(testKey("ada")),
		Username: "ada",
		Version:  3,
		IssuedAt: 1_764_000_000,
		Profile:  PublicProfile{DisplayName: "Ada Łovelace", About: "First line\nsecond", Picture: [32]byte{5}},
	}
	if change != nil {
		change(&f)
	}
	r, err := SignUsername(f, testKey("ada"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestUsernameRecord(t *testing.T) {
	for _, change := range []func(*UsernameFields){
		nil,
		func(f *UsernameFields) { f.Username = "" },
		func(f *UsernameFields) { f.Profile = PublicProfile{} },
		func(f *UsernameFields) {
			f.Username = "a" + strings.Repeat("b", MaxUsername-1)
			f.Profile.DisplayName = strings.Repeat("n", MaxDisplayName)
			f.Profile.About = strings.Repeat("a", MaxAbout)
		},
	} {
		r := testUsername(t, change)
		b := r.Bytes()
		if len(b) > MaxUsernameRecord {
			t.Errorf("%d bytes above the bound %d", len(b), MaxUsernameRecord)
		}
		u, err := ParseUsernameRecord(b)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := u.Verify(); err != nil || again != r {
			t.Errorf("round trip: %v", err)
		}
		for n := range b {
			if _, err := ParseUsernameRecord(b[:n]); !errors.Is(err, ErrFormat) {
				t.Fatalf("cut to %d: %v", n, err)
			}
		}
		for bit := range len(b) * 8 {
			bad := bytes.Clone(b)
			bad[bit/8] ^= 1 << (bit % 8)
			u, err := ParseUsernameRecord(bad)
			if err == nil {
				_, err = u.Verify()
			}
			if !errors.Is(err, ErrFormat) && !errors.Is(err, ErrSignature) {
				t.Fatalf("bit %d: %v", bit, err)
			}
		}
	}
}

func TestUsernameSuccessor(t *testing.T) {
	old := testUsername(t, nil)
	eve, err := SignUsername(UsernameFields{Identity: publicOf(testKey("eve")), Username: "ada", Version: 9}, testKey("eve"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		next UsernameRecord
		want error
	}{
		"the same":         {old, nil},
		"higher":           {testUsername(t, func(f *UsernameFields) { f.Version++; f.Username = "ada_l" }), nil},
		"lower":            {testUsername(t, func(f *UsernameFields) { f.Version-- }), ErrStale},
		"equivocation":     {testUsername(t, func(f *UsernameFields) { f.Username = "ada_l" }), ErrEquivocation},
		"another identity": {eve, ErrKey},
	} {
		if err := old.CheckSuccessor(c.next); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestNormalizeUsername(t *testing.T) {
	for in, want := range map[string]string{"ada": "ada", "@Ada": "ada", "Weather_Bot": "weather_bot", "a1_2": "a1_2"} {
		if got, err := NormalizeUsername(in); err != nil || got != want {
			t.Errorf("%q: %q, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "@", "ab", "1ada", "_ada", "ada_", "a__b", "ad a", "адa", "ada-l", "@@ada", "Kada\u212a", strings.Repeat("a", MaxUsername+1)} {
		if got, err := NormalizeUsername(in); !errors.Is(err, ErrFormat) {
			t.Errorf("%q is taken as %q", in, got)
		}
	}
}

func TestProfileTextRefused(t *testing.T) {
	for name, change := range map[string]func(*UsernameFields){
		"long name":       func(f *UsernameFields) { f.Profile.DisplayName = strings.Repeat("n", MaxDisplayName+1) },
		"name of lines":   func(f *UsernameFields) { f.Profile.DisplayName = "a\nb" },
		"override":        func(f *UsernameFields) { f.Profile.DisplayName = "a\u202eb" },
		"line separator":  func(f *UsernameFields) { f.Profile.DisplayName = "a\u2028b" },
		"not UTF-8":       func(f *UsernameFields) { f.Profile.About = "\xff" },
		"long about":      func(f *UsernameFields) { f.Profile.About = strings.Repeat("n", MaxAbout+1) },
		"not normalised":  func(f *UsernameFields) { f.Username = "Ada" },
		"unusable letter": func(f *UsernameFields) { f.Username = "ada!" },
	} {
		f := testUsername(t, nil).Fields()
		change(&f)
		if _, err := SignUsername(f, testKey("ada")); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := SignUsername(testUsername(t, nil).Fields(), testKey("ada's phone")); !errors.Is(err, ErrSigner) {
		t.Error("a device signed a username")
	}
}
