package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// metrics reads the metrics page of a runner.
type metrics struct {
	runner   Runner
	client   *http.Client
	signals  signalMap
	wanted   map[string]bool // names of the metrics that signals are read from
	log      *slog.Logger
	onChange func(usedMetrics)
	onDrop   func(drop)
	known    *usedMetrics    // by the last read; nil: none yet
	shown    map[string]bool // signals that the runner has shown
	frozen   frozen
	mixed    mixed
	reads    int // of its own page
}

func (m *metrics) read(ctx context.Context) ([]Sample, error) {
	header := m.runner.Header
	if !strings.HasPrefix(m.runner.Metrics, m.runner.Base+"/") {
		header = nil // the API key must not reach another server
	}
	m.reads++
	var p page
	taken, err := fetch(ctx, m.client, request{url: m.runner.Metrics, header: header,
		accept: "text/plain;version=0.0.4", limit: largestPage, last: m.reads%freshEvery == 0},
		func(_ http.Header, body io.Reader) (err error) {
			p, err = parsePage(body, m.wanted)
			return err
		})
	if err != nil {
		return nil, err
	}
	return m.sample(ctx, p, taken, shownURL(m.runner.Metrics))
}

// sample returns the sample of a page from a place, which is for errors.
func (m *metrics) sample(
	ctx context.Context, p page, taken time.Time, place string,
) ([]Sample, error) {
	r, found := m.signals.read(p, taken)
	m.countDrops(found)
	m.logChange(ctx, found)
	if found.engine == "" {
		return nil, fmt.Errorf(
			"read %s: it has the metrics of no engine in the signal map (telemetry.signals): %w",
			place, errUnknownPage)
	}
	if err := m.mixed.check(&r); err != nil {
		return nil, fmt.Errorf("read %s: its counters jump back and forth: %w, so its readings "+
			"are not used; list the engines as upstreams, or set upstreams[].mode: gateway and "+
			"list their pages in upstreams[].engines", place, err)
	}
	sample := Sample{Runner: m.runner.Name, Reading: &r}
	sample.TTFT, sample.TPOT = m.signals.latencies(p, found)
	if err := m.frozen.check(&r); err != nil {
		return []Sample{sample}, fmt.Errorf("read %s: %w for %v; its requests count as unknown, "+
			"and a line shows whether the engine works", place, err, m.frozen.after)
	}
	return []Sample{sample}, nil
}

// countDrops counts the values that were not used, and the signals that the runner no longer shows.
func (m *metrics) countDrops(found usedMetrics) {
	for _, d := range found.dropped {
		m.onDrop(d)
	}
	for signal, name := range found.names {
		if name != "" {
			m.shown[signal] = true
		}
	}
	for signal := range m.shown {
		if found.names[signal] == "" {
			m.onDrop(drop{signal, faultAbsent})
		}
	}
}

// logChange logs the metrics that signals are read from, and calls onChange, if they have changed
// since the last read.
func (m *metrics) logChange(ctx context.Context, found usedMetrics) {
	if m.known != nil && m.known.engine == found.engine && maps.Equal(m.known.names, found.names) {
		return
	}
	m.known = &found
	m.onChange(found)
	if found.engine == "" {
		return
	}
	about := []any{"runner", m.runner.Name, "engine", found.engine}
	names := slices.Clone(about)
	var missing []string
	add := func(signal string) {
		if name := found.names[signal]; name != "" {
			names = append(names, signal, name)
		} else {
			missing = append(missing, signal)
		}
	}
	for _, s := range signals {
		add(s.name)
	}
	for _, h := range histograms {
		add(h.name)
	}
	if len(missing) > 0 {
		about = append(about, "missing", missing)
	}
	m.log.InfoContext(ctx, "reading a runner's metrics", about...)
	m.log.DebugContext(ctx, "names of a runner's metrics", names...)
}
