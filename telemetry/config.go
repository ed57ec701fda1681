package telemetry

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Config sets which metrics are read, and how often. Start from DefaultConfig.
type Config struct {
	// Every sets the interval at which the metrics of each runner are read, if a policy of flow
	// control uses them, or every 250ms where that is cheap. 0: never. Default: 1s.
	Every time.Duration `yaml:"every"`
	// Signals names a file that maps the metrics of engines, in place of the built-in
	// telemetry/signals.yaml. Set it for an engine whose metrics have other names. Default: empty,
	// the built-in one.
	Signals string `yaml:"signals"`
	// Prometheus is the server that is queried for the latency of interactive requests.
	Prometheus Prometheus `yaml:"prometheus"`

	// The following are no keys: tests set them.

	// Fastest is the shortest interval at which the metrics of a runner are read. It is used where
	// reading takes at most a fiftieth of it, and a longer one, up to Every, where reading takes
	// longer. 0: always Every.
	Fastest time.Duration `yaml:"-"`
	// Jitter varies the intervals at random by up to this share, from 0 to 1.
	Jitter float64 `yaml:"-"`
	// CapabilitiesEvery is the interval at which runners are asked for GET /v1/capabilities (Model
	// Runner API), under every policy: runners that say that they take no lines get none. A runner
	// that does not have it is asked less often. 0: never.
	CapabilitiesEvery time.Duration `yaml:"-"`
}

const (
	// readTimeout limits one request to a runner for its metrics. A page that takes longer is older
	// than what policies need.
	readTimeout = 2 * time.Second
	// fastest shows policies soon what a line costs.
	fastest = 250 * time.Millisecond
	// jitter is large enough for several daemons not to read at the same moments.
	jitter = 0.1
	// capabilitiesEvery is how long runners keep an answer.
	capabilitiesEvery = 5 * time.Second
	// frozenAfter is how long a metrics page may show requests while no counter and no KV usage
	// moves. After that its requests and KV usage count as unknown: engines keep their last gauges
	// when all requests are aborted. It is longer than any prompt takes.
	frozenAfter = time.Minute
)

// Prometheus is a server with the query API of Prometheus. It must have histograms of interactive
// requests alone, such as those of a gateway by priority or route. The engines' own do not serve:
// they include batch lines.
type Prometheus struct {
	// URL is the base of the server, such as http://prometheus:9090. Empty: none is queried.
	URL string `yaml:"url"`
	// TokenEnv names the environment variable that holds a bearer token. Empty: none is sent.
	TokenEnv string `yaml:"token_env"`
	// TokenFile names a file that holds a bearer token, in place of token_env. It is read for every
	// query, so the token can be rotated.
	TokenFile string `yaml:"token_file"`
	// BasicAuth is sent in place of a token.
	BasicAuth BasicAuth `yaml:"basic_auth"`
	// Headers are added to every query, for instance a tenant as X-Scope-OrgID. They are shown by
	// check, so secrets do not belong here. Empty: none.
	Headers map[string]string `yaml:"headers"`
	// TLS applies to a URL with https.
	TLS TLS `yaml:"tls"`
	// TTFT selects the histogram of the time to the first token, in seconds, by its name without
	// _bucket and by labels. The first that has counted a request is used. Default: the histogram
	// of llm-d's endpoint picker, by its new and its old name, for requests whose priority is not
	// negative, and that of Dynamo's frontend.
	TTFT []string `yaml:"ttft"`
	// TPOT selects in the same way the histogram of a request's mean time per output token after
	// the first. Dynamo's frontend has the times between tokens only.
	TPOT []string `yaml:"tpot"`
	// PromptLengths selects in the same way the histogram of the prompt tokens of interactive
	// requests, AnswerLengths that of their output tokens. Empty: they are not read. Default: the
	// histograms of llm-d's endpoint picker and of Dynamo's frontend.
	PromptLengths []string `yaml:"prompt_lengths"`
	// AnswerLengths selects the histogram of output tokens; see prompt_lengths.
	AnswerLengths []string `yaml:"answer_lengths"`
	// ModelLabel names the label that holds the model, with the name that lines use, or a list of
	// labels, of which the first that is not empty is used. Empty: all pools use the sum over all
	// models. Default: model_name (llm-d) and model (Dynamo).
	ModelLabel Labels `yaml:"model_label"`
	// Runners reads the metrics of engines from Prometheus, for runners whose page it alone
	// reaches.
	Runners PrometheusRunners `yaml:"runners"`

	PrometheusTuning `yaml:"tuning"`
}

// PrometheusRunners sets which series in Prometheus belong to which runner. It applies to runners
// without a page of their own: upstreams[].metrics is none.
type PrometheusRunners struct {
	// Label names the label that identifies the runner, such as instance or pod. Empty: no runner
	// is read from Prometheus.
	Label string `yaml:"label"`
	// Values gives the value of the label for runners by name, where it is not the name of the
	// runner: by default the host and port of the upstream.
	Values map[string]string `yaml:"values"`
}

// BasicAuth is a user name and a password (RFC 7617).
type BasicAuth struct {
	// Username is the name. Empty: none is sent.
	Username string `yaml:"username"`
	// PasswordEnv names the environment variable that holds the password.
	PasswordEnv string `yaml:"password_env"`
	// PasswordFile names a file that holds the password, in place of password_env. It is read for
	// every query.
	PasswordFile string `yaml:"password_file"`
}

// PrometheusTuning sets how often is asked.
type PrometheusTuning struct {
	// Every sets the interval of the queries. An interval below that of Prometheus's scrapes gives
	// no newer values. Default: 5s.
	Every time.Duration `yaml:"every"`
	// Timeout limits one query. It is no key: tests set it.
	Timeout time.Duration `yaml:"-"`
}

// queryTimeout is as long as the default interval of the queries: a later answer is as old as the
// next.
const queryTimeout = 5 * time.Second

// DefaultConfig reads runners' metrics and no Prometheus.
func DefaultConfig() Config {
	interactive := `{priority!~"-.*"}`
	return Config{
		Every: time.Second, Fastest: fastest, Jitter: jitter, CapabilitiesEvery: capabilitiesEvery,
		Prometheus: Prometheus{
			PrometheusTuning: PrometheusTuning{Every: 5 * time.Second, Timeout: queryTimeout},
			ModelLabel:       Labels{"model_name", "model"},
			TTFT: []string{"llm_d_epp_request_ttft_seconds" + interactive,
				"inference_objective_request_ttft_seconds" + interactive,
				"dynamo_frontend_time_to_first_token_seconds"},
			TPOT: []string{"llm_d_epp_request_streaming_tpot_seconds" + interactive,
				"inference_objective_request_tpot_seconds" + interactive,
				"dynamo_frontend_inter_token_latency_seconds"},
			PromptLengths: []string{"llm_d_epp_request_input_tokens" + interactive,
				"inference_objective_input_tokens" + interactive,
				"dynamo_frontend_input_sequence_tokens"},
			AnswerLengths: []string{"llm_d_epp_request_output_tokens" + interactive,
				"inference_objective_output_tokens" + interactive,
				"dynamo_frontend_output_sequence_tokens"},
		},
	}
}

// Validate reports every fault with the path of its field.
func (c Config) Validate() error {
	var faults []error
	refuse := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf(format, args...))
	}
	if c.Every < 0 {
		refuse("every: is %v, must not be negative", c.Every)
	}
	p := c.Prometheus
	for _, list := range []struct {
		key       string
		selectors []string
	}{
		{"ttft", p.TTFT}, {"tpot", p.TPOT}, {"prompt_lengths", p.PromptLengths},
		{"answer_lengths", p.AnswerLengths},
	} {
		for i, text := range list.selectors {
			if _, err := parseSelector(text); err != nil {
				refuse("prometheus.%s[%d]: %w", list.key, i, err)
			}
		}
	}
	for _, label := range p.ModelLabel {
		if !isName(label) {
			refuse("prometheus.model_label: %q is no label's name", label)
		}
	}
	if p.URL == "" {
		return errors.Join(faults...)
	}
	if err := p.validateAccess(); err != nil {
		faults = append(faults, err)
	}
	if p.Every <= 0 {
		refuse("prometheus.tuning.every: is %v, must be positive", p.Every)
	}
	if len(p.TTFT)+len(p.TPOT) == 0 && p.Runners.Label == "" {
		refuse("prometheus.ttft: is empty and so are tpot and runners.label, so nothing would be " +
			"read; name a histogram in one of them")
	}
	if p.Runners.Label != "" && (!isName(p.Runners.Label) ||
		strings.Contains(p.Runners.Label, ":")) {
		refuse("prometheus.runners.label: %q is no label's name", p.Runners.Label)
	}
	if p.Runners.Label == "" && len(p.Runners.Values) > 0 {
		refuse("prometheus.runners.values: are given without a label; set runners.label")
	}
	return errors.Join(faults...)
}
