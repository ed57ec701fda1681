package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/runner"
)

// errUnknownPage says that a server doesn't have what it was asked for.
var errUnknownPage = errors.New("the server has no such page")

// largestPage bounds a metrics page, in bytes. vLLM's has some 100 KB.
const largestPage = 16 << 20

// get asks for a page. taken is the middle of the time in which the server may have put it
// together.
func get(
	ctx context.Context, client *http.Client, url string, header http.Header, accept string,
) (body []byte, answer *http.Response, taken time.Time, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, nil, time.Time{}, err
	}
	maps.Copy(request.Header, header)
	request.Header.Set("Accept", accept)
	asked := time.Now()
	answer, err = client.Do(request)
	if err != nil {
		return nil, nil, time.Time{}, err
	}
	defer answer.Body.Close()
	taken = asked.Add(time.Since(asked) / 2)
	body, err = io.ReadAll(io.LimitReader(answer.Body, largestPage+1))
	switch {
	case err != nil:
		return nil, nil, taken, fmt.Errorf("read %s: %w", url, err)
	case len(body) > largestPage:
		return nil, nil, taken, fmt.Errorf("read %s: over %d bytes", url, largestPage)
	case answer.StatusCode == http.StatusNotFound ||
		answer.StatusCode == http.StatusMethodNotAllowed ||
		answer.StatusCode == http.StatusNotImplemented:
		return nil, nil, taken, fmt.Errorf("get %s: status %d: %w", url, answer.StatusCode,
			errUnknownPage)
	case answer.StatusCode != http.StatusOK:
		return nil, nil, taken, fmt.Errorf("get %s: status %d: %.200s", url, answer.StatusCode,
			body)
	}
	return body, answer, taken, nil
}

// metrics looks at a runner's metrics page.
type metrics struct {
	runner  Runner
	client  *http.Client
	signals signalMap
	log     *slog.Logger
	resolve func(resolved)
	known   *resolved // as of the last look; nil: none yet
}

func (m *metrics) look(ctx context.Context) ([]Look, error) {
	header := m.runner.Header
	if !strings.HasPrefix(m.runner.Metrics, m.runner.Base+"/") {
		header = nil // the key is for the runner, and this is somebody else
	}
	body, answer, taken, err := get(ctx, m.client, m.runner.Metrics, header,
		"text/plain;version=0.0.4")
	if err != nil {
		return nil, err
	}
	p, err := parsePage(body, answer.Header)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", m.runner.Metrics, err)
	}
	r, found := m.signals.read(p, taken)
	m.tell(ctx, found)
	if found.engine == "" {
		return nil, fmt.Errorf("read %s: of no engine in the signal map (readings.signals): %w",
			m.runner.Metrics, errUnknownPage)
	}
	look := Look{Runner: m.runner.Name, Reading: &r}
	look.TTFT, look.TPOT = m.signals.latencies(p, found)
	return []Look{look}, nil
}

// tell logs under which names signals are read when those differ from before.
func (m *metrics) tell(ctx context.Context, found resolved) {
	if m.known != nil && m.known.engine == found.engine && maps.Equal(m.known.names, found.names) {
		return
	}
	m.known = &found
	m.resolve(found)
	if found.engine == "" {
		return
	}
	words := []any{"runner", m.runner.Name, "engine", found.engine}
	var missing []string
	for _, s := range signals {
		if name := found.names[s.name]; name != "" {
			words = append(words, s.name, name)
		} else {
			missing = append(missing, s.name)
		}
	}
	if len(missing) > 0 {
		words = append(words, "missing", missing)
	}
	m.log.InfoContext(ctx, "reading a runner's metrics", words...)
}

// parsePage reads a metrics page. Samples without a time have time 0.
func parsePage(body []byte, header http.Header) (page, error) {
	p := page{}
	d := expfmt.NewDecoder(bytes.NewReader(body), expfmt.ResponseFormat(header))
	samples := expfmt.SampleDecoder{Dec: d, Opts: &expfmt.DecodeOptions{}}
	for {
		var family model.Vector
		if err := samples.Decode(&family); errors.Is(err, io.EOF) {
			return p, nil
		} else if err != nil {
			return nil, err
		}
		for _, sample := range family {
			name := sample.Metric[model.MetricNameLabel]
			p[name] = append(p[name], sample)
		}
	}
}

// capabilities asks a runner for its own word on itself.
type capabilities struct {
	runner Runner
	client *http.Client
}

func (c *capabilities) look(ctx context.Context) ([]Look, error) {
	url := c.runner.Base + runner.CapabilitiesPath
	body, answer, taken, err := get(ctx, c.client, url, c.runner.Header, "application/json")
	if err != nil {
		return nil, err
	}
	// What the answer leaves out is absent, not zero.
	var told struct {
		Queue struct {
			Depth *float64 `json:"depth"`
		} `json:"queue"`
		Resources struct {
			KVCacheUtilization *float64 `json:"kvCacheUtilization"`
		} `json:"resources"`
	}
	if err := json.Unmarshal(body, &told); err != nil {
		return nil, fmt.Errorf("get %s: the answer tells no capabilities: %w", url, err)
	}
	if age, err := strconv.ParseFloat(answer.Header.Get("Age"), 64); err == nil && age > 0 &&
		age < 86_400 {
		taken = taken.Add(-time.Duration(age * float64(time.Second)))
	}
	r := flowcontrol.NoReading(flowcontrol.Capabilities, taken)
	if d := told.Queue.Depth; d != nil && *d >= 0 {
		r.Waiting = *d
	}
	if u := told.Resources.KVCacheUtilization; u != nil && *u >= 0 {
		r.KVUsed = *u
	}
	return []Look{{Runner: c.runner.Name, Reading: &r}}, nil
}
