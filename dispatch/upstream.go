package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidefill/tidefill/dispatch/openai"
)

// upstream is one model server with its client and what it was last known to serve.
type upstream struct {
	Upstream
	name    string
	client  *openai.Client
	streams streams

	mu     sync.Mutex
	models []string
	since  map[string]time.Time // when each model was first seen
	silent bool                 // the last question went unanswered
	cut    bool                 // it lists more models than are taken, which was logged
}

func newUpstream(cfg Config, u Upstream, spool Spool) (*upstream, error) {
	name, err := u.Runner()
	if err != nil {
		return nil, err
	}
	key, err := u.key()
	if err != nil {
		return nil, err
	}
	if err := u.CheckHeaders(); err != nil {
		return nil, fmt.Errorf("upstream %s: %w", name, err)
	}
	client, err := openai.New(openai.Config{
		URL: u.URL, APIKey: key, Header: u.header(http.Header{"X-Priority": {"low"}}),
		TenantHeader: u.TenantHeader,
		MaxAnswer:    cfg.MaxAnswerBytes, MaxAnswerOf: cfg.MaxAnswerBytesOf,
		DialTimeout: cfg.DialTimeout,
		Spool:       func(ctx context.Context) (openai.File, error) { return spool.Temporary(ctx) },
	})
	if err != nil {
		return nil, err
	}
	return &upstream{Upstream: u, name: name, client: client, models: slices.Clone(u.Models),
		since: map[string]time.Time{}}, nil
}

// Runner is what the upstream is called everywhere: its name, or else where it is.
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

// MetricsURL is where the upstream shows its metrics; empty: nowhere.
func (u Upstream) MetricsURL() string {
	switch u.Metrics {
	case "":
		return u.Base() + "/metrics"
	case "none":
		return ""
	}
	return u.Metrics
}

// Base is the URL without /v1.
func (u Upstream) Base() string {
	base, _, _ := strings.Cut(u.URL, "?")
	return strings.TrimSuffix(strings.TrimSuffix(base, "/"), "/v1")
}

// AskHeader is what goes along when the upstream is asked about itself: its key, and the headers
// that were configured.
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

// header changes the defaults as configured.
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

// CheckHeaders reports what of the headers can't be sent.
func (u Upstream) CheckHeaders() error {
	if u.TenantHeader != "" && !isToken(u.TenantHeader) {
		return fmt.Errorf("tenant_header %q can't be a header's name: use letters, digits and '-'",
			u.TenantHeader)
	}
	for key, value := range u.Headers {
		if !isToken(key) {
			return fmt.Errorf("headers: %q can't be a header's name: use letters, digits and '-'",
				key)
		}
		if strings.ContainsFunc(value, func(r rune) bool {
			return r < ' ' && r != '\t' || r == 0x7F
		}) {
			return fmt.Errorf(
				"headers: the value of %s holds a control character, such as a line break", key)
		}
	}
	return nil
}

// isToken reports whether a name can be a header's, see RFC 9110, section 5.6.2.
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

// setModels sets the models that the upstream serves.
func (u *upstream) setModels(models []string, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	since := make(map[string]time.Time, len(models))
	for _, m := range models {
		since[m] = now
		if before, known := u.since[m]; known {
			since[m] = before
		}
	}
	u.models, u.since = models, since
	u.streams.forget(since)
}

// watchModels asks the upstream again and again which models it serves, and reports each answer.
// After a failure it keeps the models that it had: the breaker decides whether it is used.
func (u *upstream) watchModels(
	ctx context.Context, cfg Config, log *slog.Logger, report func(u *upstream, models []string),
) {
	if len(u.Models) > 0 {
		u.setModels(u.Models, time.Now())
		report(u, u.Models)
		return
	}
	for {
		wait := cfg.ModelsEvery
		models, ok := u.askModels(ctx, cfg, log)
		if report(u, models); !ok {
			wait = min(wait, time.Second)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

func (u *upstream) askModels(
	ctx context.Context, cfg Config, log *slog.Logger,
) (models []string, ok bool) {
	asking, cancel := context.WithTimeout(ctx, cfg.DialTimeout)
	defer cancel()
	list, err := u.client.Models(asking, cfg.MaxModels)
	u.mu.Lock()
	was, wasCut := u.silent, u.cut
	u.silent, u.cut = err != nil, u.cut || list.Cut
	u.mu.Unlock()
	if err != nil {
		if !was && ctx.Err() == nil {
			log.WarnContext(ctx, "could not list the models of an upstream, trying again",
				"runner", u.name, "error", err)
		}
		return nil, false
	}
	if was {
		log.InfoContext(ctx, "an upstream lists its models again", "runner", u.name)
	}
	if list.Cut && !wasCut {
		log.WarnContext(ctx, "an upstream lists more models than are used, or longer names; name "+
			"those to use in upstreams[].models, or raise dispatch.tuning.max_models",
			"runner", u.name, "max_models", cfg.MaxModels, "max_name_bytes", openai.MostModelName)
	}
	u.setModels(list.Names, time.Now())
	return list.Names, true
}

func modelsOf(upstreams map[string]*upstream) []ModelInfo {
	byID := map[string]*ModelInfo{}
	for _, u := range upstreams {
		u.mu.Lock()
		for _, m := range u.models {
			info := byID[m]
			if info == nil {
				info = &ModelInfo{ID: m, Since: u.since[m]}
				byID[m] = info
			}
			info.Runners = append(info.Runners, u.name)
			if since := u.since[m]; since.Before(info.Since) {
				info.Since = since
			}
		}
		u.mu.Unlock()
	}
	all := make([]ModelInfo, 0, len(byID))
	for _, info := range byID {
		slices.Sort(info.Runners)
		all = append(all, *info)
	}
	slices.SortFunc(all, func(a, b ModelInfo) int { return cmp.Compare(a.ID, b.ID) })
	return all
}
