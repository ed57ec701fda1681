package dispatch

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// Upstream is one model server, or a gateway in front of several.
type Upstream struct {
	// URL is the base of the server, with or without the trailing /v1.
	URL string `yaml:"url"`
	// Name identifies the upstream in metrics and logs. Default: host and port of the URL.
	Name string `yaml:"name"`
	// APIKeyEnv names the environment variable that holds the bearer token. Empty: none is sent.
	APIKeyEnv string `yaml:"api_key_env"`
	// Models lists the models that the upstream serves. Empty: it is asked, by GET /v1/models. If
	// it has no such list (404, 405 or 501), it is sent the lines of every model that no other
	// upstream lists, once all others have answered.
	Models []string `yaml:"models"`
	// Headers are added to every request, besides the default X-Priority: low. An empty value
	// removes a default.
	Headers map[string]string `yaml:"headers"`
	// TenantHeader names a header that carries the name of a line's tenant, such as X-Tenant-Id.
	// Empty: upstreams do not learn whose lines they receive.
	TenantHeader string `yaml:"tenant_header"`
	// Metrics is the URL of the server's Prometheus metrics; none: it has none, as gateways do not.
	// Default: /metrics of the server.
	Metrics string `yaml:"metrics"`

	// Dialect holds what some servers understand and others do not.
	Dialect Dialect `yaml:"tuning"`
}

// Runner returns the name of the upstream in metrics, logs and the API.
func (u Upstream) Runner() (string, error) {
	if u.Name != "" {
		return u.Name, nil
	}
	parsed, err := url.Parse(u.URL)
	if err != nil {
		return "", fmt.Errorf("upstream url: %w", err)
	}
	return parsed.Host + parsed.EscapedPath(), nil
}

// MetricsURL returns the URL of the metrics; empty: there are none.
func (u Upstream) MetricsURL() string {
	switch u.Metrics {
	case "":
		return u.Base() + "/metrics"
	case "none":
		return ""
	}
	return u.Metrics
}

// Base returns the URL without /v1.
func (u Upstream) Base() string {
	base, _, _ := strings.Cut(u.URL, "?")
	return strings.TrimSuffix(strings.TrimSuffix(base, "/"), "/v1")
}

// AskHeader returns the header of requests for metrics and models: the key, and the configured
// headers.
func (u Upstream) AskHeader() (http.Header, error) {
	key, err := u.key()
	if err != nil {
		return nil, err
	}
	header := u.header(http.Header{})
	if key != "" {
		header.Set("Authorization", "Bearer "+key)
	}
	return header, nil
}

// header applies the configured headers to the defaults.
func (u Upstream) header(header http.Header) http.Header {
	for key, value := range u.Headers {
		if value == "" {
			header.Del(key)
		} else {
			header.Set(key, value)
		}
	}
	return header
}

// Validate reports what is wrong with the upstream's headers and dialect.
func (u Upstream) Validate() error {
	if u.TenantHeader != "" && !isToken(u.TenantHeader) {
		return fmt.Errorf("tenant_header %q is no valid header name: use letters, digits and '-'",
			u.TenantHeader)
	}
	for key, value := range u.Headers {
		if !isToken(key) {
			return fmt.Errorf("headers: %q is no valid header name: use letters, digits and '-'",
				key)
		}
		if hasControl(value) {
			return fmt.Errorf(
				"headers: the value of %s contains a control character, such as a newline", key)
		}
	}
	return u.Dialect.Validate()
}

// isToken reports whether a name is a token, as header names are: RFC 9110, section 5.6.2.
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
			strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}

func (u Upstream) key() (string, error) {
	if u.APIKeyEnv == "" {
		return "", nil
	}
	key := os.Getenv(u.APIKeyEnv)
	if key == "" {
		return "", fmt.Errorf(
			"upstream %s: the environment variable %s, named by api_key_env, is empty", u.URL,
			u.APIKeyEnv)
	}
	return key, nil
}
