package inline

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/scheduler/flows"
)

// Config sets whether interactive requests pass through Tidefill, and what is done with them. Start
// from DefaultConfig.
type Config struct {
	// Enabled serves interactive requests on the address of the API: /v1/chat/completions,
	// /v1/completions, /v1/responses, /v1/embeddings, /v1/rerank, /v1/score and /v1/moderations.
	// Default: false.
	Enabled bool `yaml:"enabled"`
	// MaxBodyBytes limits the body of a request; a larger one is answered 413. Default: 64 MiB.
	MaxBodyBytes int64 `yaml:"max_body_bytes"`
	// Memory limits the bytes of all bodies that are held at once. A body of up to 256 KiB is held
	// until its answer begins, a larger one until its model is known. Beyond the limit, of
	// which one tenant gets half, a request is answered 503. Default: 256 MiB.
	Memory int64 `yaml:"memory"`
	// RewriteModel shows users the model that they asked for where a target of another name has
	// answered. Off: answers stay byte for byte. Default: true.
	RewriteModel bool `yaml:"rewrite_model"`
	// CacheSalt keeps the prefix caches of tenants apart: requests of chat, completions and
	// responses get a `cache_salt` of their tenant, as vLLM has it, and one that a user sends is
	// put behind it. Default: false, since other engines refuse the member.
	CacheSalt bool `yaml:"cache_salt"`
	// MaxRunning limits the interactive requests in flight on a runner, before readings show a
	// lower limit. Default: 256.
	MaxRunning int `yaml:"max_running"`
	// MaxDeadline limits the time for which a request with service_tier flex may ask to wait, in
	// the header X-Tidefill-Deadline. Without it the max_wait of its class holds. Default: 1h.
	MaxDeadline time.Duration `yaml:"max_deadline"`

	// AdvertiseURL is where other processes of the store send the requests for pools that this one
	// leads. Empty: its address on the network and the port of listen.
	AdvertiseURL string `yaml:"advertise_url,omitempty"`

	flows.Config `yaml:",inline"`
}

// DefaultConfig does not serve interactive requests.
func DefaultConfig() Config {
	return Config{
		MaxBodyBytes: 64 << 20,
		Memory:       256 << 20,
		RewriteModel: true,
		MaxRunning:   plan.DefaultInline().MaxRunning,
		MaxDeadline:  time.Hour,
		Config:       flows.DefaultConfig(),
	}
}

// Validate reports every fault with the path of its field.
func (c Config) Validate() error {
	var found []error
	fault := func(ok bool, format string, args ...any) {
		if !ok {
			found = append(found, fmt.Errorf(format, args...))
		}
	}
	fault(c.MaxBodyBytes > 0, "max_body_bytes: is %d, must be above 0", c.MaxBodyBytes)
	fault(c.Memory >= holdBytes, "memory: is %d, must be at least %d (256 KiB), for one body",
		c.Memory, holdBytes)
	if u, err := url.Parse(c.AdvertiseURL); c.AdvertiseURL != "" {
		fault(err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https"),
			"advertise_url: is %q, must be a URL such as http://10.0.0.7:8080", c.AdvertiseURL)
	}
	fault(c.MaxRunning >= 1, "max_running: is %d, must be at least 1", c.MaxRunning)
	fault(c.MaxDeadline > 0, "max_deadline: is %v, must be above 0", c.MaxDeadline)
	return errors.Join(append(found, c.Config.Validate())...)
}
