package node

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/askucher/compax-core/delivery/server"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func testConfig(dir string) Config {
	return Config{Dir: dir, Listen: "127.0.0.1:0", MetricsListen: "127.0.0.1:0", DrainSeconds: 1, Log: slog.New(slog.DiscardHandler)}
}

// run starts a node and gives what stops it.
func run(t *testing.T, c Config) (*Node, func()) {
	t.Helper()
	n, err := New(t.Context(), c)
	check(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	return n, func() {
		cancel()
		check(t, <-done)
	}
}

func get(t *testing.T, url string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequest("GET", url, nil)
	check(t, err)
	if len(header) == 2 {
		req.Header.Set(header[0], header[1])
	}
	resp, err := http.DefaultClient.Do(req)
	check(t, err)
	b, err := io.ReadAll(resp.Body)
	check(t, err)
	check(t, resp.Body.Close())
	return resp.StatusCode, string(b)
}

func TestNodeServesAndStops(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	n, stop := run(t, testConfig(dir))
	home := n.Home()
	if status, body := get(t, n.URL()+"/"); status != 200 || !strings.Contains(body, "compax account new") || !strings.Contains(body, n.URL()) {
		t.Errorf("page: %d %s", status, body)
	}
	for _, path := range []string{"/v1/info", "/health", "/health/live", "/health/ready", "/openapi.json"} {
		if status, body := get(t, n.URL()+path); status != 200 {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, _ := get(t, n.URL()+"/nothing"); status != 404 {
		t.Errorf("/nothing: %d", status)
	}
	if status, _ := get(t, n.MetricsURL()); status != 401 {
		t.Errorf("metrics without a token: %d", status)
	}
	status, body := get(t, n.MetricsURL(), "Authorization", "Bearer "+n.MetricsToken())
	if status != 200 || !strings.Contains(body, "chat_http_requests_total") || !strings.Contains(body, "go_goroutines") {
		t.Errorf("metrics: %d %s", status, body)
	}
	for path, want := range map[string]os.FileMode{"": 0o700, "server": 0o700, "server/compax.db": 0o600, "server/blobs": 0o700, "metrics.token": 0o600} {
		info, err := os.Stat(filepath.Join(dir, path))
		check(t, err)
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
	if _, err := New(t.Context(), testConfig(dir)); err == nil {
		t.Error("a second node opened the same directory")
	}
	token := n.MetricsToken()
	stop()

	n, stop = run(t, testConfig(dir))
	if n.Home() != home || n.MetricsToken() != token {
		t.Error("home or token changed with a restart")
	}
	stop()

	c := testConfig(dir)
	c.Home = "010203"
	if _, err := New(t.Context(), c); err == nil || !strings.Contains(err.Error(), "010203") {
		t.Errorf("another home: %v", err)
	}
}

func TestConfigurationNamesEveryFault(t *testing.T) {
	c := Config{
		Listen: "nowhere", Database: "mysql://x", MetricsToken: "short", Home: "xyz", Domain: "a/b", RetentionDays: -1,
		Rules: map[server.Rule]server.Mode{"no_rule": "maybe"}, TrustedProxies: []string{"?"}, Archive: server.ArchiveLimits{Segments: -1, Snapshot: 1 << 30}, MaxMembers: 10_001, MaxDevices: 257, MaxRevocations: 100, MaxConnections: -1, MaxPerAddress: -1,
	}
	err := c.check()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"listen:", "database:", "metrics.token:", "home:", "domain:", "retention_days:", "rules.no_rule:", `"maybe"`, "trusted_proxies:", "archive.segments:", "archive.snapshot_bytes:", "max_members:", "max_devices:", "max_revocations:", "max_connections:", "max_connections_per_address:"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
}

// TestKeptForEver: whoever writes down more days than a time.Duration has does not want
// everything to be swept at once.
func TestKeptForEver(t *testing.T) {
	for setting, c := range map[string]Config{
		"retention_days": {RetentionDays: 200_000}, "archive_retention_days": {ArchiveRetentionDays: 200_000}, "drain_seconds": {DrainSeconds: 1 << 40},
	} {
		if err := c.check(); err == nil || !strings.Contains(err.Error(), setting+": ") {
			t.Errorf("%s: %v", setting, err)
		}
	}
	c := Config{RetentionDays: maxDays}
	if err := c.check(); err != nil || days(c.RetentionDays) < 99*365*24*time.Hour {
		t.Errorf("a hundred years: %v, %v", days(c.RetentionDays), err)
	}
}

// TestOnlyMetricsAreSwitchedOff: a service that listens nowhere is none.
func TestOnlyMetricsAreSwitchedOff(t *testing.T) {
	c := Config{Listen: "off", MetricsListen: "off"}
	if err := c.check(); err == nil || !strings.Contains(err.Error(), `listen: "off" is not host:port`) || strings.Contains(err.Error(), "metrics") {
		t.Errorf("%v", err)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		check(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	load := func(env map[string]string) (Config, error) {
		return Load(func(k string) string { return env[k] })
	}
	t.Chdir(dir)
	c, err := load(nil)
	check(t, err)
	if c.Listen != "" || c.Digest != "" {
		t.Errorf("no file, and %+v", c)
	}
	tokenFile := write("token", "0123456789abcdef0123\n")
	for _, path := range []string{
		write("server.json", `{"listen": "127.0.0.1:1", "metrics": {"token_file": "`+tokenFile+`"}, "pow": {"off": true}, "congestion": {"cpu_busy": 1.5, "refuse_calls_at": "busy"}, "buckets": {"enrol": {"burst": 1, "per_hour": 2}}, "rules": {"claim_member": "on"}, "archive": {"segments": 10, "bytes": 1000, "snapshot_bytes": 100, "wrapped_keys": 4}}`),
		write("x.toml", "listen = \"127.0.0.1:1\"\n[metrics]\ntoken_file = \""+tokenFile+"\"\n[pow]\noff = true\n[congestion]\ncpu_busy = 1.5\nrefuse_calls_at = \"busy\"\n[buckets.enrol]\nburst = 1\nper_hour = 2\n[rules]\nclaim_member = \"on\"\n[archive]\nsegments = 10\nbytes = 1000\nsnapshot_bytes = 100\nwrapped_keys = 4\n"),
	} {
		c, err := load(map[string]string{EnvConfig: path, EnvArchiveRetention: "7", EnvHome: "a1b2c3", EnvDatabase: "postgres://u:secret@h/d"})
		check(t, err)
		if c.Listen != "127.0.0.1:1" || c.MetricsToken != "0123456789abcdef0123" || !c.Work.Off || c.Congestion.CPUBusy != 1.5 || c.Congestion.RefuseCallsAt != server.Busy || c.Buckets["enrol"].PerHour != 2 ||
			c.Rules["claim_member"] != "on" || c.ArchiveRetentionDays != 7 || c.Archive != (server.ArchiveLimits{Segments: 10, Bytes: 1000, Snapshot: 100, Keys: 4}) || c.Home != "a1b2c3" || c.Database != "postgres://u:secret@h/d" || !strings.HasPrefix(c.Digest, "sha256:") {
			t.Errorf("%s: %+v", path, c)
		}
	}
	for name, want := range map[string]string{
		write("bad.json", "{\n\"listen\": \"a:1\",\n\"listen\" 5}"):                          "bad.json:3:",
		write("unknown.json", "{\n\"nobody\": 1}"):                                           "unknown.json:2:",
		write("type.json", "{\n\n\"listen\": 5}"):                                            "type.json:3:",
		write("level.json", "{\n\"congestion\": {\n\"refuse_calls_at\": \"maybe\"}}"):        "maybe",
		write("disk.json", `{"congestion": {"disk_free_busy": 1, "disk_free_critical": 2}}`): "disk.json:1: congestion.disk_free_congested:",
		write("bad.toml", "listen = \"a:1\"\nx y\n"):                                         "bad.toml:2:",
		write("unknown.toml", "\nnobody = 1\n"):                                              "nobody",
		filepath.Join(dir, "missing.json"):                                                   "missing.json",
		write("two.json", `{"metrics": {"token": "0123456789abcdef", "token_file": "x"}}`):   "one of",
		write("short.json", `{"metrics": {"token": "short"}}`):                               "at least 16",
	} {
		if _, err := load(map[string]string{EnvConfig: name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := load(map[string]string{EnvArchiveRetention: "soon"}); err == nil {
		t.Error("a retention that is no number passed")
	}
}

func TestBlobsLiveInOnePlace(t *testing.T) {
	n, stop := run(t, testConfig(t.TempDir()))
	now := time.Now()
	if err := claimLocation(t.Context(), n.store, "elsewhere", now); err == nil {
		t.Error("a second place was accepted beside a live one")
	}
	check(t, claimLocation(t.Context(), n.store, n.blobs.Location(), now))
	check(t, claimLocation(t.Context(), n.store, "elsewhere", now.Add(2*locationAlive)))
	stop()
}

func TestClientAddressBehindProxies(t *testing.T) {
	trusted, err := prefixes([]string{"10.0.0.0/8", "127.0.0.1"})
	check(t, err)
	address := clientAddress(trusted)
	for _, c := range []struct{ remote, forwarded, want string }{
		{"203.0.113.9:1", "1.2.3.4", "203.0.113.9"},
		{"127.0.0.1:1", "1.2.3.4", "1.2.3.4"},
		{"127.0.0.1:1", "6.6.6.6, 1.2.3.4, 10.1.1.1", "1.2.3.4"},
		{"127.0.0.1:1", "", "127.0.0.1"},
		{"10.0.0.1:1", "1.2.3.4:5678", "1.2.3.4"}, // some proxies name the port, too
		{"10.0.0.1:1", "[2001:db8::1]:5678", "2001:db8::1"},
		{"10.0.0.1:1", "2001:db8::1", "2001:db8::1"},
		{"10.0.0.1:1", "1.2.3.4, unknown", "10.0.0.1"},
	} {
		r := &http.Request{RemoteAddr: c.remote, Header: http.Header{}}
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}
		if got := address(r); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestDatabaseThatIsNotThereIsNamedWithoutItsPassword(t *testing.T) {
	c := testConfig(t.TempDir())
	c.Database = "postgres://compax:hunter2@127.0.0.1:1/compax?connect_timeout=2"
	_, err := New(t.Context(), c)
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}

// TestAStartNamesEverythingInItsWay: both ports and the folder, in one error.
func TestAStartNamesEverythingInItsWay(t *testing.T) {
	dir := t.TempDir()
	n, stop := run(t, testConfig(dir))
	c := testConfig(dir)
	c.Listen, c.MetricsListen = n.api.Addr().String(), n.metrics.Addr().String()
	_, err := New(t.Context(), c)
	if !errors.Is(err, ErrInUse) || !errors.Is(err, syscall.EADDRINUSE) {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{"listen for the API", "listen for metrics", "open the store"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in\n%v", want, err)
		}
	}
	stop()
}

func TestNewClosesWhatItOpened(t *testing.T) {
	dir := t.TempDir()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	c := testConfig(dir)
	c.Listen = taken.Addr().String()
	if _, err := New(t.Context(), c); err == nil {
		t.Fatal("listened where somebody else does")
	}
	check(t, taken.Close())
	n, err := New(t.Context(), testConfig(dir))
	check(t, err)
	if err := n.close(); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
