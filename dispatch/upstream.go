package dispatch

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
)

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

// CheckHeaders reports the first header that can't be sent.
func (u Upstream) CheckHeaders() error {
	if u.TenantHeader != "" && !isToken(u.TenantHeader) {
		return fmt.Errorf("tenant_header %q is no valid header name: use letters, digits and '-'",
			u.TenantHeader)
	}
	for key, value := range u.Headers {
		if !isToken(key) {
			return fmt.Errorf("headers: %q is no valid header name: use letters, digits and '-'",
				key)
		}
		if strings.ContainsFunc(value, func(r rune) bool {
			return r < ' ' && r != '\t' || r == 0x7F
		}) {
			return fmt.Errorf(
				"headers: the value of %s contains a control character, such as a newline", key)
		}
	}
	return nil
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
