package node

import (
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/askucher/compax-core/delivery"
	"github.com/askucher/compax-core/delivery/policy"
	"github.com/askucher/compax-core/delivery/server"
	"github.com/askucher/compax-core/identity"
)

// Config says what a node serves and where it keeps it. Every zero value has a
// default; [Load] fills it from a file and the environment.
type Config struct {
	Dir           string // data directory; "compax-data"
	Listen        string // of the API; "127.0.0.1:8080"
	MetricsListen string // "127.0.0.1:9091"; "off" = none
	// MetricsToken guards the metrics, at least 16 bytes. Empty: made at the
	// first start and kept in Dir/metrics.token.
	MetricsToken string

	// Database is the URL of a PostgreSQL database, postgres://…; empty: a SQLite
	// file in Dir. It may hold a password and is never shown.
	Database string

	Home           string // label, six hex digits; empty: made at the first start and kept
	Domain         string // for mimi:// names; "localhost"
	Name           string // shown to people; "Compax"
	Version        string
	TrustedProxies []string // addresses or prefixes whose X-Forwarded-For counts

	RetentionDays        int   // of the log; 30, at most 36,500
	ArchiveRetentionDays int   // of sealed history; as RetentionDays
	MaxBlobBytes         int64 // 4 GiB
	MaxMembers           int   // participants that a room lists; 2,000, at most 10,000
	MaxDevices           int   // enrolled devices of one identity; 64, at most 256
	MaxRevocations       int   // of one identity, its enrolled devices included; 512, at most 4,096
	MaxConnections       int   // in all; 16,384
	MaxPerAddress        int   // of them from one address, or /64, that is no trusted proxy and not loopback; 1,024
	DrainSeconds         int   // how long sockets have to go when the node stops; 5, at most 3,600

	Buckets map[string]server.Bucket
	Work    server.WorkLimits
	// Congestion says when uploads are given up.
	Congestion server.CongestionLimits
	Archive    server.ArchiveLimits
	Rules      map[server.Rule]server.Mode

	HeadTime time.Duration    // for the head of a request to arrive; 10 s
	Log      *slog.Logger     // slog.Default
	Now      func() time.Time // time.Now
	Digest   string           // of the file that Load read
}

const minToken = 16

// A time.Duration ends after 106,751 days: what is kept for longer than that would be
// kept for less than no time, and be swept at once.
const (
	maxDays  = 36_500
	maxDrain = 3600 // seconds
)

// check fills the defaults and names every fault at once.
func (c *Config) check() error {
	def(&c.Dir, "compax-data")
	def(&c.Listen, "127.0.0.1:8080")
	def(&c.MetricsListen, "127.0.0.1:9091")
	def(&c.Domain, "localhost")
	def(&c.Name, "Compax")
	def(&c.RetentionDays, 30)
	def(&c.ArchiveRetentionDays, c.RetentionDays)
	def(&c.MaxBlobBytes, 4<<30)
	def(&c.MaxMembers, 2000)
	def(&c.MaxDevices, 64)
	def(&c.MaxRevocations, 512)
	def(&c.MaxConnections, 16_384)
	def(&c.MaxPerAddress, 1024)
	def(&c.DrainSeconds, 5)
	def(&c.HeadTime, 10*time.Second)
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	var faults Faults
	fault := func(setting, format string, args ...any) {
		faults = append(faults, Fault{Setting: setting, Text: fmt.Sprintf(format, args...)})
	}
	for _, a := range []struct {
		name, addr string
		off        bool // may be "off"
	}{{"listen", c.Listen, false}, {"metrics.bind", c.MetricsListen, true}} {
		if _, _, err := net.SplitHostPort(a.addr); err != nil && !(a.off && a.addr == "off") {
			fault(a.name, "%q is not host:port", a.addr)
		}
	}
	if c.Database != "" && !strings.HasPrefix(c.Database, "postgres://") && !strings.HasPrefix(c.Database, "postgresql://") {
		fault("database", "not a postgres:// URL")
	}
	if c.MetricsToken != "" && len(c.MetricsToken) < minToken {
		fault("metrics.token", "%d bytes, at least %d (openssl rand -hex 32 makes one)", len(c.MetricsToken), minToken)
	}
	if c.Home != "" {
		if b, err := hex.DecodeString(c.Home); err != nil || len(b) != len(identity.Home{}) || c.Home == "000000" {
			fault("home", "%q is not a label of six hex digits", c.Home)
		}
	}
	if strings.ContainsAny(c.Domain, "/ :?#@") {
		fault("domain", "%q is not a domain name", c.Domain)
	}
	for name, v := range map[string]int64{
		"retention_days": int64(c.RetentionDays), "archive_retention_days": int64(c.ArchiveRetentionDays),
		"max_blob_bytes": c.MaxBlobBytes, "max_members": int64(c.MaxMembers),
		"max_devices": int64(c.MaxDevices), "max_revocations": int64(c.MaxRevocations),
		"max_connections": int64(c.MaxConnections), "max_connections_per_address": int64(c.MaxPerAddress), "drain_seconds": int64(c.DrainSeconds),
		"pow.free_messages": int64(c.Work.FreeMessages), "pow.free_bytes": int64(c.Work.FreeBytes), "pow.step": int64(c.Work.Step), "pow.max_bits": int64(c.Work.MaxBits),
		"archive.segments": int64(c.Archive.Segments), "archive.bytes": c.Archive.Bytes, "archive.wrapped_keys": int64(c.Archive.Keys),
	} {
		if v < 0 || v > 1<<50 {
			fault(name, "%d is out of range", v)
		}
	}
	if n := c.MaxMembers; n > policy.MaxParticipants {
		fault("max_members", "%d is out of range, at most %d", n, policy.MaxParticipants)
	}
	for name, v := range map[string]struct{ n, most int }{
		"max_devices": {c.MaxDevices, 256}, "max_revocations": {c.MaxRevocations, 4096},
		"retention_days": {c.RetentionDays, maxDays}, "archive_retention_days": {c.ArchiveRetentionDays, maxDays}, "drain_seconds": {c.DrainSeconds, maxDrain},
	} {
		if v.n > v.most {
			fault(name, "%d is out of range, at most %d", v.n, v.most)
		}
	}
	if c.MaxRevocations < c.MaxDevices {
		fault("max_revocations", "%d is less than max_devices, %d: a device is enrolled only when there is room for its revocation", c.MaxRevocations, c.MaxDevices)
	}
	if n := c.Archive.Snapshot; n < 0 || n > delivery.MaxSnapshot {
		fault("archive.snapshot_bytes", "%d is out of range, at most %d", n, delivery.MaxSnapshot)
	}
	for name, b := range c.Buckets {
		if _, known := server.DefaultBuckets()[name]; !known {
			fault("buckets."+name, "there is no such bucket")
		}
		if b.Burst < 0 || b.PerHour < 0 {
			fault("buckets."+name, "a budget is not negative")
		}
	}
	for rule, mode := range c.Rules {
		if _, known := server.Rules()[rule]; !known {
			fault("rules."+string(rule), "there is no such rule")
		}
		if !slices.Contains([]server.Mode{server.ModeOff, server.ModeShadow, server.ModeOn}, mode) {
			fault("rules."+string(rule), "%q is not off, shadow or on", mode)
		}
	}
	for name, text := range c.Congestion.Faults() {
		fault("congestion."+name, "%s", text)
	}
	if _, err := prefixes(c.TrustedProxies); err != nil {
		fault("trusted_proxies", "%s", err)
	}
	return faults.err()
}

func def[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}

// prefixes reads addresses and prefixes.
func prefixes(list []string) ([]netip.Prefix, error) {
	out := make([]netip.Prefix, len(list))
	for i, text := range list {
		if a, err := netip.ParseAddr(text); err == nil {
			out[i] = netip.PrefixFrom(a, a.BitLen())
			continue
		}
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("%q is neither an address nor a prefix", text)
		}
		out[i] = p
	}
	return out, nil
}
