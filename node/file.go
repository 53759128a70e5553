package node

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/askucher/compax-core/delivery/server"
)

// file is the configuration file: JSON, or TOML when its name ends so. Every
// field is optional.
type file struct {
	Dir                  string                      `json:"dir"`
	Listen               string                      `json:"listen"`
	Database             string                      `json:"database"`
	Home                 string                      `json:"home"`
	Domain               string                      `json:"domain"`
	Name                 string                      `json:"name"`
	TrustedProxies       []string                    `json:"trusted_proxies"`
	RetentionDays        int                         `json:"retention_days"`
	ArchiveRetentionDays int                         `json:"archive_retention_days"`
	MaxMembers           int                         `json:"max_members"`
	MaxDevices           int                         `json:"max_devices"`
	MaxRevocations       int                         `json:"max_revocations"`
	MaxBlobBytes         int64                       `json:"max_blob_bytes"`
	MaxConnections       int                         `json:"max_connections"`
	MaxPerAddress        int                         `json:"max_connections_per_address"`
	DrainSeconds         int                         `json:"drain_seconds"`
	Metrics              metricsSection              `json:"metrics"`
	Pow                  powSection                  `json:"pow"`
	Archive              archiveSection              `json:"archive"`
	Congestion           congestionSection           `json:"congestion"`
	Buckets              map[string]bucketSection    `json:"buckets"`
	Rules                map[server.Rule]server.Mode `json:"rules"`
}

type metricsSection struct {
	Bind      string `json:"bind"`
	Token     string `json:"token"`
	TokenFile string `json:"token_file"`
}

type powSection struct {
	Off          bool `json:"off"`
	FreeMessages int  `json:"free_messages"`
	FreeBytes    int  `json:"free_bytes"`
	Step         int  `json:"step"`
	MaxBits      int  `json:"max_bits"`
}

// archiveSection bounds what one account keeps sealed for itself.
type archiveSection struct {
	Segments int   `json:"segments"`
	Bytes    int64 `json:"bytes"`
	Snapshot int   `json:"snapshot_bytes"`
	Keys     int   `json:"wrapped_keys"` // to each device
}

type congestionSection struct {
	Off                bool         `json:"off"`
	CPUBusy            float64      `json:"cpu_busy"`
	CPUCongested       float64      `json:"cpu_congested"`
	CPUCritical        float64      `json:"cpu_critical"`
	DiskFreeBusy       int64        `json:"disk_free_busy"`
	DiskFreeCongested  int64        `json:"disk_free_congested"`
	DiskFreeCritical   int64        `json:"disk_free_critical"`
	MovedBusy          int64        `json:"moved_busy"`
	MovedCongested     int64        `json:"moved_congested"`
	MovedCritical      int64        `json:"moved_critical"`
	MaxUploadBusy      int64        `json:"max_upload_busy"`
	MaxUploadCongested int64        `json:"max_upload_congested"`
	RefuseCallsAt      server.Level `json:"refuse_calls_at"`
	RefuseVoiceAt      server.Level `json:"refuse_voice_at"`
	CalmAfterSeconds   int64        `json:"calm_after_seconds"`
}

func (s congestionSection) limits() server.CongestionLimits {
	return server.CongestionLimits{
		Off: s.Off, CPUBusy: s.CPUBusy, CPUCongested: s.CPUCongested, CPUCritical: s.CPUCritical,
		DiskBusy: s.DiskFreeBusy, DiskCongested: s.DiskFreeCongested, DiskCritical: s.DiskFreeCritical,
		MovedBusy: s.MovedBusy, MovedCongested: s.MovedCongested, MovedCritical: s.MovedCritical,
		MaxUploadBusy: s.MaxUploadBusy, MaxUploadCongested: s.MaxUploadCongested,
		RefuseCallsAt: s.RefuseCallsAt, RefuseVoiceAt: s.RefuseVoiceAt, CalmAfter: time.Duration(s.CalmAfterSeconds) * time.Second,
	}
}

type bucketSection struct {
	Burst   float64 `json:"burst"`
	PerHour float64 `json:"per_hour"`
}

// The environment.
const (
	EnvConfig           = "CHAT_SERVER_CONFIG" // path of the file; ./server.json when unset
	EnvMetricsToken     = "METRICS_TOKEN"
	EnvHome             = "HOME_LABEL"
	EnvDatabase         = "DATABASE_URL"
	EnvArchiveRetention = "ARCHIVE_RETENTION_DAYS"
)

const defaultFile = "server.json"

// Load reads the configuration file that the environment names, else
// ./server.json if it is there, and what the environment says itself. What is
// wrong is a [Faults] of everything at once, with file and line. getenv is
// os.Getenv outside tests.
func Load(getenv func(string) string) (Config, error) {
	path, named := getenv(EnvConfig), true
	if path == "" {
		path, named = defaultFile, false
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		raw, err = nil, nil
	}
	if err != nil {
		return Config{}, fmt.Errorf("configuration: %w", err)
	}
	var f file
	var faults Faults
	where := lines{}
	if raw != nil {
		if where, faults = parse(path, raw, &f); where == nil {
			return Config{}, faults.err()
		}
	}
	c := f.config()
	if raw != nil {
		sum := sha256.Sum256(raw)
		c.Digest = "sha256:" + hex.EncodeToString(sum[:8])
	}
	if c.MetricsToken, err = f.Metrics.token(getenv(EnvMetricsToken)); err != nil {
		faults = append(faults, Fault{Setting: "metrics", Text: err.Error()})
	}
	if url := getenv(EnvDatabase); url != "" {
		c.Database = url
		delete(where, "database")
	}
	if home := getenv(EnvHome); home != "" {
		c.Home = home
		delete(where, "home")
	}
	if days := getenv(EnvArchiveRetention); days != "" {
		delete(where, "archive_retention_days")
		if c.ArchiveRetentionDays, err = strconv.Atoi(days); err != nil {
			faults = append(faults, Fault{Setting: EnvArchiveRetention, Text: fmt.Sprintf("%q is not a number of days", days)})
		}
	}
	checked := c // check fills defaults, which are New's to fill
	var more Faults
	if errors.As(checked.check(), &more) {
		faults = append(faults, more...)
	}
	for i := range faults {
		if line, known := where.of(faults[i].Setting); known && faults[i].Line == 0 {
			faults[i].File, faults[i].Line = path, line
		}
	}
	if err := faults.err(); err != nil {
		return Config{}, err
	}
	return c, nil
}

func (f *file) config() Config {
	c := Config{
		Dir: f.Dir, Listen: f.Listen, MetricsListen: f.Metrics.Bind, Database: f.Database, Home: f.Home, Domain: f.Domain, Name: f.Name,
		TrustedProxies: f.TrustedProxies, RetentionDays: f.RetentionDays, ArchiveRetentionDays: f.ArchiveRetentionDays, MaxMembers: f.MaxMembers,
		MaxDevices: f.MaxDevices, MaxRevocations: f.MaxRevocations,
		MaxBlobBytes: f.MaxBlobBytes, DrainSeconds: f.DrainSeconds, MaxConnections: f.MaxConnections, MaxPerAddress: f.MaxPerAddress, Work: server.WorkLimits(f.Pow), Archive: server.ArchiveLimits(f.Archive),
		Congestion: f.Congestion.limits(), Rules: f.Rules,
	}
	for name, b := range f.Buckets {
		if c.Buckets == nil {
			c.Buckets = map[string]server.Bucket{}
		}
		c.Buckets[name] = server.Bucket(b)
	}
	return c
}

// token comes from exactly one of three places.
func (m metricsSection) token(env string) (string, error) {
	given := 0
	for _, v := range []string{m.Token, m.TokenFile, env} {
		if v != "" {
			given++
		}
	}
	if given > 1 {
		return "", fmt.Errorf("the token comes from one of token, token_file and %s, not from %d of them", EnvMetricsToken, given)
	}
	if m.TokenFile != "" {
		b, err := os.ReadFile(m.TokenFile)
		if err != nil {
			return "", fmt.Errorf("token_file: %w", err)
		}
		t := strings.TrimSpace(string(b))
		if t == "" {
			return "", fmt.Errorf("token_file: %s is empty", m.TokenFile)
		}
		return t, nil
	}
	return m.Token + env, nil
}
