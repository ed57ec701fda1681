package dispatch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/internal/batchfile"
)

// Config holds the constants of dispatching.
type Config struct {
	// Plan configures retries, breakers and look-ahead.
	Plan plan.Config `yaml:"plan"`
	// ChunkLines is how many lines are claimed together at most, fewer in batches that are created
	// while many others run. Default 1024.
	ChunkLines int `yaml:"chunk_lines"`
	// ChunkBytes is how many bytes of input lines are claimed (and held in memory) together at
	// most; a longer line is a chunk of its own. Default 2 MiB.
	ChunkBytes int64 `yaml:"chunk_bytes"`
	// LeaseTTL is how long after its last sign of life a dispatcher's claims are free for others.
	// Default 15s.
	LeaseTTL time.Duration `yaml:"lease_ttl"`
	// RequestTimeout bounds one request, from sending to the last byte. Default 30m.
	RequestTimeout time.Duration `yaml:"request_timeout"`
	// DialTimeout bounds the making of a connection. Default 10s.
	DialTimeout time.Duration `yaml:"dial_timeout"`
	// Memory bounds the bytes of lines, answers and results that are held in memory: a third for
	// lines that were read ahead or are under way, a third for answers while they are read, a third
	// for results that are not durable yet. Beyond, lines are read from their file when they are
	// sent, answers go to temporary files in the data directory, and results wait for the disk.
	// Default 24 MiB.
	Memory int64 `yaml:"memory"`
	// MaxAnswerBytes bounds the body of an answer; a longer one fails its line. Default 16 MiB.
	MaxAnswerBytes int64 `yaml:"max_answer_bytes"`
	// MaxAnswerBytesOf is the same for some endpoints, by URL. Default 64 MiB for /v1/embeddings.
	MaxAnswerBytesOf map[string]int64 `yaml:"max_answer_bytes_of"`
	// CancelGrace is how long lines under way may finish after their batch was cancelled or
	// stopped. Default 30s.
	CancelGrace time.Duration `yaml:"cancel_grace"`
	// Drain is how long lines under way may finish at shutdown. Default 30s. The daemon has one
	// drain time for all its parts.
	Drain time.Duration `yaml:"-"`
	// MaxModels is how many models an upstream may list, by names of up to 256 bytes; further ones
	// are not used. Those named by upstreams[].models don't count. Default 1000.
	MaxModels int `yaml:"max_models"`
	// ModelsEvery is how often upstreams are asked which models they serve. Default 10s.
	ModelsEvery time.Duration `yaml:"models_every"`
	// PollEvery is how often the store is asked for changes that nobody announced. Default 1s.
	PollEvery time.Duration `yaml:"poll_every"`
	// ProgressEvery is how often progress is posted for the API to show. Default 250ms.
	ProgressEvery time.Duration `yaml:"progress_every"`
}

// DefaultConfig returns the documented defaults.
func DefaultConfig() Config {
	return Config{
		Plan:             plan.DefaultConfig(),
		ChunkLines:       1024,
		ChunkBytes:       2 << 20,
		LeaseTTL:         15 * time.Second,
		RequestTimeout:   30 * time.Minute,
		DialTimeout:      10 * time.Second,
		Memory:           24 << 20,
		MaxAnswerBytes:   16 << 20,
		MaxAnswerBytesOf: map[string]int64{"/v1/embeddings": 64 << 20},
		CancelGrace:      30 * time.Second,
		Drain:            30 * time.Second,
		MaxModels:        1000,
		ModelsEvery:      10 * time.Second,
		PollEvery:        time.Second,
		ProgressEvery:    250 * time.Millisecond,
	}
}

// Validate reports every value that makes no sense.
func (c Config) Validate() error {
	var faults []error
	if err := c.Plan.Validate(); err != nil {
		faults = append(faults, fmt.Errorf("plan.%w", err))
	}
	positive := func(name string, ok bool) {
		if !ok {
			faults = append(faults, fmt.Errorf("%s: must be positive", name))
		}
	}
	positive("chunk_lines", c.ChunkLines > 0)
	positive("chunk_bytes", c.ChunkBytes > 0)
	positive("request_timeout", c.RequestTimeout > 0)
	positive("dial_timeout", c.DialTimeout > 0)
	faults = append(faults, c.checkMemory()...)
	positive("max_models", c.MaxModels > 0)
	positive("models_every", c.ModelsEvery > 0)
	positive("poll_every", c.PollEvery > 0)
	positive("progress_every", c.ProgressEvery > 0)
	if c.LeaseTTL < 3*time.Second {
		faults = append(faults, fmt.Errorf(
			"lease_ttl: is %v, must be at least 3s so that one slow write doesn't lose the lease",
			c.LeaseTTL))
	}
	if c.CancelGrace < 0 || c.Drain < 0 {
		faults = append(faults, errors.New("cancel_grace and drain: must not be negative"))
	}
	return errors.Join(faults...)
}

const (
	leastMemory = 3 << 20
	mostAnswer  = 255 << 20 // what a journal's record may hold, less what a result line has besides
)

func (c Config) checkMemory() (faults []error) {
	if c.Memory < leastMemory {
		faults = append(faults, fmt.Errorf(
			"memory: is %d, must be at least %d (3 MiB) for lines to be sent at speed", c.Memory,
			leastMemory))
	}
	answer := func(name string, bytes int64) {
		if bytes <= 0 || bytes > mostAnswer {
			faults = append(faults, fmt.Errorf("%s: is %d, must be from 1 to %d (255 MiB)", name,
				bytes, mostAnswer))
		}
	}
	answer("max_answer_bytes", c.MaxAnswerBytes)
	for _, url := range slices.Sorted(maps.Keys(c.MaxAnswerBytesOf)) {
		answer("max_answer_bytes_of."+url, c.MaxAnswerBytesOf[url])
		if _, known := batchfile.LookupEndpoint(url); !known {
			faults = append(faults, fmt.Errorf(
				"max_answer_bytes_of: %q is no endpoint of batch lines, such as /v1/embeddings",
				url))
		}
	}
	return faults
}

// Upstream is one model server, or a gateway in front of several.
type Upstream struct {
	// URL is the base, with or without the trailing /v1.
	URL string `yaml:"url"`
	// Name in metrics and logs; default: host and port of the URL.
	Name string `yaml:"name"`
	// APIKeyEnv names the environment variable that holds the bearer token; empty: none is sent.
	APIKeyEnv string `yaml:"api_key_env"`
	// Models overrides what GET /v1/models would say.
	Models []string `yaml:"models"`
	// Headers are added to every request, besides the default X-Priority: low. An empty value
	// removes a default.
	Headers map[string]string `yaml:"headers"`
	// TenantHeader names a header that carries the name of a line's tenant, X-Tenant-Id for
	// instance; empty: upstreams don't learn whose lines they get.
	TenantHeader string `yaml:"tenant_header"`
	// Metrics is the URL of the page where the server shows its metrics; none: it has none, as
	// gateways do. Default: /metrics.
	Metrics string `yaml:"metrics"`
}
