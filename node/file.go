package node

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/askucher/compax-core/delivery/server"
)

// file is the configuration file: JSON, or TOML when its name ends so. Every
// field is optional.
type file struct {
	Dir                  string                      `json:"dir" toml:"dir"`
	Listen               string                      `json:"listen" toml:"listen"`
	Database             string                      `json:"database" toml:"database"`
	Home                 string                      `json:"home" toml:"home"`
	Domain               string                      `json:"domain" toml:"domain"`
	Name                 string                      `json:"name" toml:"name"`
	TrustedProxies       []string                    `json:"trusted_proxies" toml:"trusted_proxies"`
	RetentionDays        int                         `json:"retention_days" toml:"retention_days"`
	ArchiveRetentionDays int                         `json:"archive_retention_days" toml:"archive_retention_days"`
	MaxBlobBytes         int64                       `json:"max_blob_bytes" toml:"max_blob_bytes"`
	DrainSeconds         int                         `json:"drain_seconds" toml:"drain_seconds"`
	Metrics              metricsSection              `json:"metrics" toml:"metrics"`
	Pow                  powSection                  `json:"pow" toml:"pow"`
	Archive              archiveSection              `json:"archive" toml:"archive"`
	Congestion           congestionSection           `json:"congestion" toml:"congestion"`
	Buckets              map[string]bucketSection    `json:"buckets" toml:"buckets"`
	Rules                map[server.Rule]server.Mode `json:"rules" toml:"rules"`
}

type metricsSection struct {
	Bind      string `json:"bind" toml:"bind"`
	Token     string `json:"token" toml:"token"`
	TokenFile string `json:"token_file" toml:"token_file"`
}

type powSection struct {
	Off          bool `json:"off" toml:"off"`
	FreeMessages int  `json:"free_messages" toml:"free_messages"`
	FreeBytes    int  `json:"free_bytes" toml:"free_bytes"`
	Step         int  `json:"step" toml:"step"`
	MaxBits      int  `json:"max_bits" toml:"max_bits"`
}

// archiveSection bounds what one account keeps sealed for itself.
type archiveSection struct {
	Segments int   `json:"segments" toml:"segments"`
	Bytes    int64 `json:"bytes" toml:"bytes"`
	Snapshot int   `json:"snapshot_bytes" toml:"snapshot_bytes"`
	Keys     int   `json:"wrapped_keys" toml:"wrapped_keys"` // to each device
}

type congestionSection struct {
	Off                bool         `json:"off" toml:"off"`
	CPUBusy            float64      `json:"cpu_busy" toml:"cpu_busy"`
	CPUCongested       float64      `json:"cpu_congested" toml:"cpu_congested"`
	CPUCritical        float64      `json:"cpu_critical" toml:"cpu_critical"`
	DiskFreeBusy       int64        `json:"disk_free_busy" toml:"disk_free_busy"`
	DiskFreeCongested  int64        `json:"disk_free_congested" toml:"disk_free_congested"`
	DiskFreeCritical   int64        `json:"disk_free_critical" toml:"disk_free_critical"`
	MovedBusy          int64        `json:"moved_busy" toml:"moved_busy"`
	MovedCongested     int64        `json:"moved_congested" toml:"moved_congested"`
	MovedCritical      int64        `json:"moved_critical" toml:"moved_critical"`
	MaxUploadBusy      int64        `json:"max_upload_busy" toml:"max_upload_busy"`
	MaxUploadCongested int64        `json:"max_upload_congested" toml:"max_upload_congested"`
	RefuseCallsAt      server.Level `json:"refuse_calls_at" toml:"refuse_calls_at"`
	RefuseVoiceAt      server.Level `json:"refuse_voice_at" toml:"refuse_voice_at"`
	CalmAfterSeconds   int64        `json:"calm_after_seconds" toml:"calm_after_seconds"`
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
	Burst   float64 `json:"burst" toml:"burst"`
	PerHour float64 `json:"per_hour" toml:"per_hour"`
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
// ./server.json if it is there, and what the environment says itself. A file
// that cannot be parsed is an error with its name and line. getenv is os.Getenv
// outside tests.
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
	if raw != nil {
		if err := parse(path, raw, &f); err != nil {
			return Config{}, err
		}
	}
	c := f.config()
	if raw != nil {
		sum := sha256.Sum256(raw)
		c.Digest = "sha256:" + hex.EncodeToString(sum[:8])
	}
	var faults []error
	if c.MetricsToken, err = f.Metrics.token(getenv(EnvMetricsToken)); err != nil {
		faults = append(faults, err)
	}
	if url := getenv(EnvDatabase); url != "" {
		c.Database = url
	}
	if home := getenv(EnvHome); home != "" {
		c.Home = home
	}
	if days := getenv(EnvArchiveRetention); days != "" {
		if c.ArchiveRetentionDays, err = strconv.Atoi(days); err != nil {
			faults = append(faults, fmt.Errorf("%s: %q is not a number of days", EnvArchiveRetention, days))
		}
	}
	checked := c // check fills defaults, which are New's to fill
	if err := checked.check(); err != nil {
		faults = append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return Config{}, fmt.Errorf("configuration:\n%w", err)
	}
	return c, nil
}

func (f *file) config() Config {
	c := Config{
		Dir: f.Dir, Listen: f.Listen, MetricsListen: f.Metrics.Bind, Database: f.Database, Home: f.Home, Domain: f.Domain, Name: f.Name,
		TrustedProxies: f.TrustedProxies, RetentionDays: f.RetentionDays, ArchiveRetentionDays: f.ArchiveRetentionDays,
		MaxBlobBytes: f.MaxBlobBytes, DrainSeconds: f.DrainSeconds, Work: server.WorkLimits(f.Pow), Archive: server.ArchiveLimits(f.Archive),
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
		return "", fmt.Errorf("metrics: the token comes from one of token, token_file and %s, not from %d of them", EnvMetricsToken, given)
	}
	if m.TokenFile != "" {
		b, err := os.ReadFile(m.TokenFile)
		if err != nil {
			return "", fmt.Errorf("metrics.token_file: %w", err)
		}
		t := strings.TrimSpace(string(b))
		if t == "" {
			return "", fmt.Errorf("metrics.token_file: %s is empty", m.TokenFile)
		}
		return t, nil
	}
	return m.Token + env, nil
}

// parse reads a file by its name and says where it is wrong.
func parse(path string, raw []byte, f *file) error {
	if strings.EqualFold(filepath.Ext(path), ".toml") {
		meta, err := toml.Decode(string(raw), f)
		var at toml.ParseError
		if errors.As(err, &at) {
			return fmt.Errorf("configuration: %s:%d: %s", path, at.Position.Line, at.Message)
		}
		if err != nil {
			return fmt.Errorf("configuration: %s: %w", path, err)
		}
		if unknown := meta.Undecoded(); len(unknown) > 0 {
			return fmt.Errorf("configuration: %s: %q is not a setting", path, unknown[0].String())
		}
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(f)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		err = errors.New("something follows the object")
	}
	offset := d.InputOffset()
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
	}
	line := 1 + bytes.Count(raw[:min(offset, int64(len(raw)))], []byte("\n"))
	return fmt.Errorf("configuration: %s:%d: %w", path, line, err)
}
