package upstream

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/tidefill/tidefill/internal/batchfile"
)

// Upstream is one model server, or a gateway in front of several.
type Upstream struct {
	// URL is the base of the server, with or without the trailing /v1. A server is listed once. An
	// address that leads to several, by the gateway's pool, the key, the headers or the models, may
	// have an entry for each, if all have a name.
	URL string `yaml:"url"`
	// Name identifies the upstream in metrics and logs. Default: host and port of the URL.
	Name string `yaml:"name"`
	// Pool names the entry of pools that the upstream is a replica of. Empty: the upstream belongs
	// to no pool that is scaled. Default: empty.
	Pool string `yaml:"pool"`
	// Mode is gateway if several engines are behind the address: a load balancer, an endpoint
	// picker, a Kubernetes Service. Empty: it is one engine. Default: empty.
	Mode string `yaml:"mode"`
	// Engines lists the engines behind a gateway, so that flow control knows how each of them does:
	// URLs of their metrics pages or, if telemetry.prometheus.runners.label is set, regular
	// expressions for the values of that label. Empty: flow control goes by the times of answers.
	Engines []string `yaml:"engines"`
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
	// Metrics is the URL of the server's Prometheus metrics; none: it has none. Not for gateways:
	// see engines. Default: /metrics of the server.
	Metrics string `yaml:"metrics"`

	// APIKeyFile names a file that holds the bearer token, which is read when the upstream is made.
	// It is no key: external templates have it.
	APIKeyFile string `yaml:"-"`
	// KeyState is the SHA-256 of the token when it was read, in hexadecimal. With another one,
	// another runner is made. Empty: the token does not change. It is no key.
	KeyState string `yaml:"-"`
	// Reserved says that only batches that name the pool are sent there. It is no key.
	Reserved bool `yaml:"-"`
	// Instead names the pool whose fallback the upstream is, as plan.RunnerUp. It is no key.
	Instead string `yaml:"-"`
	// Renamed has the server's names of Models; those that it lacks are the same. It is no key.
	Renamed map[string]string `yaml:"-"`
	// Queued says that requests go through a queue, from which a worker beside the server takes
	// them. It is no key: pools have it.
	Queued bool `yaml:"-"`

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
	switch {
	case u.Metrics == "none" || u.IsGateway():
		return ""
	case u.Metrics == "":
		return u.Base() + "/metrics"
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

// Validate reports what is wrong with the upstream's mode, headers and dialect, and with a URL that
// is none of a server.
func (u Upstream) Validate() error {
	if err := u.checkURL(); err != nil {
		return err
	}
	if err := u.checkMode(); err != nil {
		return err
	}
	if u.TenantHeader != "" && !isToken(u.TenantHeader) {
		return fmt.Errorf("tenant_header %q is no valid header name: use letters, digits and '-'",
			u.TenantHeader)
	}
	if err := u.CheckHeaders(); err != nil {
		return err
	}
	return u.Dialect.Validate()
}

// Named returns the server's name of a model; empty: it has the same.
func (u Upstream) Named(model string) string {
	if name := u.Renamed[model]; name != model {
		return name
	}
	return ""
}

// CheckHeaders reports headers that no request can have.
func (u Upstream) CheckHeaders() error {
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
	return nil
}

// checkURL reports what no request would carry, and the URL of an endpoint, to which paths of lines
// would be appended. It does not show the URL, which may have a password or a token.
func (u Upstream) checkURL() error {
	base, err := url.Parse(u.URL)
	if err != nil {
		return nil //nolint:nilerr // those who connect report it
	}
	if strings.ContainsAny(u.URL, "?#") {
		return errors.New("url: has a query or a fragment, which no request would carry; write " +
			"the base, such as http://host:port")
	}
	path := strings.TrimRight(base.Path, "/")
	for _, e := range batchfile.Endpoints() {
		// Without /v1, a path of one name, such as /rerank, may be a route of a gateway.
		short := strings.TrimPrefix(e.URL, "/v1")
		if strings.HasSuffix(path, e.URL) ||
			strings.Count(short, "/") > 1 && strings.HasSuffix(path, short) {
			return fmt.Errorf("url: ends in %s, an endpoint that lines name; write the base, such "+
				"as http://host:port", e.URL)
		}
	}
	return nil
}

func (u Upstream) checkMode() error {
	switch {
	case u.Mode != "" && !u.IsGateway():
		return fmt.Errorf("mode: is %q, want gateway, or nothing for a single engine", u.Mode)
	case len(u.Engines) > 0 && !u.IsGateway():
		return errors.New("engines: are given without mode: gateway; list engines that have " +
			"addresses of their own as upstreams")
	case u.IsGateway() && u.Metrics != "" && u.Metrics != "none":
		return errors.New("metrics: is the page of one engine, and a gateway has several; list " +
			"the pages of all in engines")
	}
	for i, engine := range u.Engines {
		if _, err := EngineName(engine); err != nil {
			return fmt.Errorf("engines[%d]: %w", i, err)
		}
	}
	return nil
}

// EngineName returns the name of an entry of Engines: the host, the port and an unusual path of a
// metrics page. It is empty for a regular expression.
func EngineName(entry string) (name string, err error) {
	if !strings.Contains(entry, "://") {
		if entry == "" {
			return "", errors.New("is empty; write the URL of a metrics page")
		}
		_, err := regexp.Compile(entry)
		if fault := (*syntax.Error)(nil); mayHoldSecret(entry) && errors.As(err, &fault) {
			err = fmt.Errorf("is not shown, because it may hold a secret, and is no regular "+
				"expression: %s", fault.Code)
		}
		return "", err
	}
	page, err := url.Parse(entry)
	if err != nil || page.Host == "" || page.Scheme != "http" && page.Scheme != "https" {
		if mayHoldSecret(entry) {
			return "", errors.New("is not shown, because it may hold a secret, and is no URL; " +
				"write http://host:port/metrics")
		}
		return "", fmt.Errorf("%q is no URL; write http://host:port/metrics", entry)
	}
	return page.Host + strings.TrimSuffix(strings.TrimSuffix(page.EscapedPath(), "/"), "/metrics"),
		nil
}

// mayHoldSecret reports whether the text of a URL with a mistake may hold a password or a token:
// where it would be is unknown.
func mayHoldSecret(text string) bool { return strings.ContainsAny(text, "@?") }

// isToken reports whether a name is a token, as header names are: RFC 9110, section 5.6.2.
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
			strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}

func (u Upstream) key() (string, error) {
	if u.APIKeyFile != "" {
		key, err := readKey(u.APIKeyFile)
		if err != nil {
			return "", fmt.Errorf("read the key of upstream %s: %w", u.Name, err)
		}
		return key, nil
	}
	if u.APIKeyEnv == "" {
		return "", nil
	}
	key := os.Getenv(u.APIKeyEnv)
	if key == "" {
		name, err := u.Runner() // the URL may have a password
		if err != nil {
			return "", err
		}
		return "", fmt.Errorf(
			"upstream %s: the environment variable %s, named by api_key_env, is empty", name,
			u.APIKeyEnv)
	}
	return key, nil
}

// maxKey limits the bytes of the file of a key.
const maxKey = 64 << 10

// readKey reads the key in a file. A pipe or a device might never end, so only regular files are
// read. No error shows the key.
func readKey(file string) (string, error) {
	switch info, err := os.Stat(file); {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular() || info.Size() > maxKey:
		return "", fmt.Errorf("%s is no regular file of at most %d bytes", file, maxKey)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	switch key := strings.TrimSpace(string(text)); {
	case key == "":
		return "", fmt.Errorf("%s is empty", file)
	case hasControl(key):
		return "", fmt.Errorf("%s contains a control character, such as a newline", file)
	default:
		return key, nil
	}
}
