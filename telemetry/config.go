package telemetry

import (
	"errors"
	"fmt"
	"net/url"
	"time"
)

// Config says where to look and how often. Start from DefaultConfig.
type Config struct {
	// Every is how often the metrics page of each runner is read, if the policy of flow control
	// heeds it. 0: never. Default: 1s.
	Every time.Duration `yaml:"every"`
	// Timeout bounds one look at a runner. Default: 2s.
	Timeout time.Duration `yaml:"timeout"`
	// Jitter is the share of the time between two looks by which they vary, so that several daemons
	// don't ask in step, 0 to 1. Default: 0.1.
	Jitter float64 `yaml:"jitter"`
	// CapabilitiesEvery is how often runners are asked for GET /v1/capabilities (Model Runner API).
	// 0: never. Default: 5s, as long as runners keep an answer. One that doesn't know it is asked
	// again once in a while only.
	CapabilitiesEvery time.Duration `yaml:"capabilities_every"`
	// Signals is a file that says how engines call their metrics, instead of the built-in one
	// (telemetry/signals.yaml).
	Signals string `yaml:"signals"`
	// Prometheus knows how long interactive requests take.
	Prometheus Prometheus `yaml:"prometheus"`
}

// Prometheus is a server of its query API. What it must know are histograms of interactive requests
// alone: those of the gateway by priority or route. Engines' own mix them with batch lines and are
// no use here.
type Prometheus struct {
	// URL is its base, such as http://prometheus:9090. Empty: none is asked.
	URL string `yaml:"url"`
	// TokenEnv names the environment variable that holds a bearer token; empty: none is sent.
	TokenEnv string `yaml:"token_env"`
	// Every is how often it is asked. Default: 5s; more often than it scrapes brings nothing.
	Every time.Duration `yaml:"every"`
	// Timeout bounds one query. Default: 5s.
	Timeout time.Duration `yaml:"timeout"`
	// TTFT chooses the histogram of the time to the first token, in seconds, by name without
	// _bucket and by labels. The first that knows any request counts. Default: that of llm-d's
	// endpoint picker, of requests whose priority is not negative, by its new and its old name.
	TTFT []string `yaml:"ttft"`
	// TPOT chooses the histogram of a request's mean time between further tokens likewise.
	TPOT []string `yaml:"tpot"`
	// ModelLabel is the label that names the model, as lines do; empty: all pools are told the sum.
	// Default: model_name.
	ModelLabel string `yaml:"model_label"`
}

// DefaultConfig reads runners' metrics and no Prometheus.
func DefaultConfig() Config {
	interactive := `{priority!~"-.*"}`
	return Config{
		Every: time.Second, Timeout: 2 * time.Second, Jitter: 0.1,
		CapabilitiesEvery: 5 * time.Second,
		Prometheus: Prometheus{
			Every: 5 * time.Second, Timeout: 5 * time.Second, ModelLabel: "model_name",
			TTFT: []string{"llm_d_epp_request_ttft_seconds" + interactive,
				"inference_objective_request_ttft_seconds" + interactive},
			TPOT: []string{"llm_d_epp_request_streaming_tpot_seconds" + interactive,
				"inference_objective_request_streaming_tpot_seconds" + interactive},
		},
	}
}

// Validate reports every fault with the path of its field.
func (c Config) Validate() error {
	var faults []error
	refuse := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf(format, args...))
	}
	if c.Every < 0 || c.CapabilitiesEvery < 0 {
		refuse("every: %v and capabilities_every: %v must not be negative", c.Every,
			c.CapabilitiesEvery)
	}
	if c.Timeout <= 0 {
		refuse("timeout: is %v, must be positive", c.Timeout)
	}
	if !(c.Jitter >= 0 && c.Jitter <= 1) {
		refuse("jitter: is %v, must be from 0 to 1", c.Jitter)
	}
	p := c.Prometheus
	if p.URL == "" {
		return errors.Join(faults...)
	}
	if parsed, err := url.Parse(p.URL); err != nil || parsed.Host == "" ||
		parsed.Scheme != "http" && parsed.Scheme != "https" {
		refuse("prometheus.url: %q is no URL; write http://host:port", p.URL)
	}
	if p.Every <= 0 || p.Timeout <= 0 {
		refuse("prometheus.every: %v and prometheus.timeout: %v must be positive", p.Every,
			p.Timeout)
	}
	if len(p.TTFT)+len(p.TPOT) == 0 {
		refuse("prometheus.ttft: is empty and so is tpot; there is nothing to ask for")
	}
	for i, text := range p.TTFT {
		if _, err := parseSelector(text); err != nil {
			refuse("prometheus.ttft[%d]: %w", i, err)
		}
	}
	for i, text := range p.TPOT {
		if _, err := parseSelector(text); err != nil {
			refuse("prometheus.tpot[%d]: %w", i, err)
		}
	}
	if p.ModelLabel != "" && !isName(p.ModelLabel) {
		refuse("prometheus.model_label: %q is no label's name", p.ModelLabel)
	}
	return errors.Join(faults...)
}
