package compax

// What each package may import, and what it may never reach. This is the map
// of the code: read it first, and change it before adding a package. A package
// that no row names is refused.
//
// The checks stand in arch_check_test.go; arch_planted_test.go shows that each
// rule fails when it is broken.

import (
	"testing"
)

// mayImport lists, per package (first word), our packages that its non-test
// code may import. "x/..." is every package below x; the most exact row wins.
// "-" is none of ours, "*" is any. Tests are exempt: they may also import what
// is listed under testSupport.
const mayImport = `
internal/parallel      -
internal/strict25519   -
internal/durable       -
internal/testdata      -
internal/testport      -

# RFC 9420. Public state (wire, suite, tree, follower) apart from secrets (mls, hpke).
mls/wire               -
mls/suite              mls/wire internal/strict25519
mls/suite/...          mls/suite
mls/tree               mls/wire mls/suite internal/parallel
mls/follower           mls/wire mls/suite mls/tree internal/parallel
mls/hpke               mls/wire mls/suite internal/parallel
mls/hpke/...           mls/hpke mls/suite/...
mls                    mls/wire mls/suite mls/tree mls/follower mls/hpke
x509cred               mls/wire
mlstest                mls mls/... x509cred internal/...

# Who somebody is, and what they say.
identity               internal/strict25519
identity/phrase        identity
content                identity

# The protocol first, its two ends beside it: neither end imports the other.
delivery               identity mls/wire
delivery/policy        delivery identity mls/wire mls/suite mls/tree mls/follower
delivery/client        delivery delivery/policy identity
delivery/client/...    delivery delivery/client
delivery/server        delivery delivery/policy identity mls/wire mls/suite mls/tree mls/follower

# What the service stands on: each port has several forms and one contract suite.
store/...              delivery identity
store/batch            -
store/sweep            delivery
store/sqlite           delivery identity store/batch store/sweep
store/postgres         delivery identity store/batch store/sweep
bus/...                delivery identity
blob/...               delivery

# The client engine, and what it stands on.
sdk                    mls mls/wire mls/suite mls/tree mls/follower identity identity/phrase content delivery delivery/policy delivery/client sdk/...
sdk/...                sdk mls mls/wire mls/suite mls/tree identity identity/phrase content delivery delivery/policy delivery/client

# Wiring, programs, and the runs over the whole.
node                   *
cmd/compax             node sdk sdk/... delivery delivery/client delivery/client/native identity identity/phrase content internal/durable cmd/compax/...
cmd/compax/...         node sdk sdk/... delivery delivery/client delivery/client/native identity identity/phrase content internal/durable cmd/compax/...
sim                    *
sim/...                *
scripts                *
bench/...              *
interop                mls mls/... mlstest x509cred identity internal/...
interop/...            mls mls/... mlstest x509cred identity internal/...
`

// testSupport lists packages that only tests may import, here also the
// non-test code of other test support: they import testing.
var testSupport = []string{
	"internal/testdata", "internal/testport", "mlstest", "store/storetest", "bus/bustest", "blob/blobtest", "sdk/sdktest",
}

// never says what packages may not reach, even through others, and why.
var never = []reach{
	{
		from:   []string{"mls", "mls/...", "identity", "identity/...", "content", "delivery", "delivery/policy", "widget", "botapi", "internal/parallel", "internal/strict25519"},
		to:     []string{"net", "os/exec", "database/sql"},
		reason: "pure packages do no I/O: they run in a browser, a fuzzer and a simulator alike",
	},
	{
		from:   []string{"delivery/server", "delivery/server/...", "store/...", "bus/...", "blob/...", "federation", "federation/..."},
		to:     []string{"mls", "mls/hpke", "mls/hpke/...", "content", "identity/phrase", "sdk", "sdk/..."},
		reason: "the server cannot read messages: nothing it is made of can reach the packages that open them",
	},
	{
		from:   []string{"mls", "mls/..."},
		to:     []string{"identity", "identity/...", "x509cred", "delivery", "delivery/..."},
		reason: "the engine knows no identities: credential checks are an injected interface",
	},
	{
		from:   []string{"delivery/server", "delivery/server/..."},
		to:     []string{"delivery/client", "delivery/client/..."},
		reason: "the two ends of the protocol know the protocol, never each other",
	},
	{
		from:   []string{"delivery/client", "delivery/client/...", "sdk", "sdk/..."},
		to:     []string{"delivery/server", "delivery/server/...", "store/...", "bus/...", "blob/..."},
		reason: "the two ends of the protocol know the protocol, never each other",
	},
	{
		from:   []string{"sdk", "delivery/client"},
		to:     []string{"net", "os/exec", "database/sql"},
		reason: "the client engine runs in a browser: sockets, files and databases are ports with native and browser forms",
	},
	{
		from:   []string{"cmd/compax"},
		to:     []string{"testing"},
		reason: "the binary carries no test support",
	},
}

// bans lists standard packages that pure code may not import by name, and
// functions it may not call. (Through others they are unavoidable: fmt reaches
// os.) Time and randomness are parameters, so that every run can be repeated.
var bans = []ban{{
	from:    []string{"mls", "mls/...", "identity", "identity/...", "content", "delivery", "delivery/policy", "internal/parallel", "internal/strict25519"},
	imports: []string{"os", "math/rand", "math/rand/v2", "net/http", "log", "log/slog", "runtime/debug", "unsafe"},
	calls:   []string{"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.NewTimer", "time.NewTicker"},
	reason:  "pure packages take time and randomness as parameters and do no I/O",
}}

// outside says which of our packages may import a module that is not ours, and
// what for. A module without a row is refused.
const outside = `
filippo.io/edwards25519          internal/strict25519 mls/...        # strict signatures, fixed-base X25519
github.com/BurntSushi/toml       node                                # configuration files
github.com/cloudflare/circl      mls/...                             # X448 and Ed448, which the standard library lacks
github.com/coder/websocket       delivery/server delivery/client/... node sim # sockets of both ends
github.com/fxamacker/cbor/v2     content                             # MIMI content is CBOR
github.com/google/uuid           delivery sdk                        # room ids in UUID form
github.com/jackc/pgx/v5          store/postgres                      # the deployed store
github.com/mattn/go-isatty       cmd/compax cmd/compax/...           # progress only on a terminal
github.com/dustin/go-humanize    cmd/compax cmd/compax/...           # sizes in progress lines
github.com/prometheus/client_golang  node delivery/server delivery/server/... # metrics
github.com/rogpeppe/go-internal  scripts                             # scripts over the binary
github.com/spf13/cobra           cmd/compax cmd/compax/...           # commands, completion, man page
github.com/spf13/pflag           cmd/compax cmd/compax/...           # its flags
golang.org/x/crypto              *                                   # ChaCha20-Poly1305, Argon2, PBKDF2
golang.org/x/sync                *                                   # errgroup
golang.org/x/sys                 *                                   # locks on files
golang.org/x/term                cmd/compax cmd/compax/...           # the phrase is typed unseen
golang.org/x/text                *                                   # NFKD for phrases, folding for usernames
modernc.org/sqlite               store/sqlite sdk/sqlitestore        # the embedded store, without cgo
`

// browser lists the packages that must build for js/wasm.
var browser = []string{
	"mls", "mls/...", "x509cred", "identity", "identity/...", "content",
	"delivery", "delivery/policy", "delivery/client", "sdk",
}

func TestImports(t *testing.T) {
	statSources(t)
	r := parseRules(t, mayImport, outside)
	for _, target := range []target{{"linux", "amd64"}, {"js", "wasm"}} {
		t.Run(target.os+"/"+target.arch, func(t *testing.T) {
			g := loadGraph(t, target)
			if len(g.ours()) < 2 {
				t.Fatalf("go list found only %d packages of ours: the rules were not looked at", len(g.ours()))
			}
			for _, p := range r.check(g) {
				t.Error(p)
			}
			if target.os == "js" {
				for _, p := range mustBuild(g, browser) {
					t.Error(p)
				}
			}
		})
	}
}

func TestPureCodeTakesTimeAndRandomnessAsParameters(t *testing.T) {
	statSources(t)
	for _, p := range checkBans(bans, sources(t)) {
		t.Error(p)
	}
}
