package telemetry

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

func TestPaceFollowsWhatReadsCost(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name           string
		fastest, every time.Duration
		reads          []time.Duration
		want           time.Duration
	}{
		{"cheap", 250 * ms, time.Second, []time.Duration{2 * ms}, 250 * ms},
		{"not so cheap", 250 * ms, time.Second, []time.Duration{10 * ms}, 500 * ms},
		{"expensive", 250 * ms, time.Second, []time.Duration{900 * ms}, time.Second},
		{"a single long read counts for some more", 250 * ms, time.Second,
			[]time.Duration{2 * ms, 12 * ms, 2 * ms}, 480 * ms},
		{"always every", 0, time.Second, []time.Duration{ms}, time.Second},
		{"every is short", 250 * ms, 100 * ms, []time.Duration{ms}, 100 * ms},
	} {
		p := pace{source: source{fastest: test.fastest, every: test.every}}
		for _, d := range test.reads {
			p.took(d)
		}
		if got := p.pause(); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// A page that costs little is read more often than one that takes its server long.
func TestCheapPagesAreReadMoreOften(t *testing.T) {
	var quickReads, slowReads atomic.Int64
	serve := func(n *atomic.Int64, takes time.Duration) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			n.Add(1)
			time.Sleep(takes)
			w.Write([]byte("vllm:num_requests_running 1\n"))
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	cfg := DefaultConfig()
	cfg.Every, cfg.Fastest = time.Second, time.Millisecond
	seen := newCollector()
	seen.run(t, cfg, func() bool {
		return slowReads.Load() >= 2 && quickReads.Load() > 5*slowReads.Load() &&
			len(seen.of(flowcontrol.Metrics)) > 10
	}, Runner{Name: "quick", Metrics: serve(&quickReads, 0)},
		Runner{Name: "slow", Metrics: serve(&slowReads, 100*time.Millisecond)})
}
