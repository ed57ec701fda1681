package telemetry

import (
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tidefill/tidefill/runner"
)

// What a runner says of itself is read as it is. 503 means that it is not up yet, or no longer.
func TestStatesOfRunners(t *testing.T) {
	status, body := http.StatusServiceUnavailable, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	defer server.Close()
	c := &capabilities{runner: Runner{Name: "r", Base: server.URL}, client: server.Client(),
		onDrop: func(drop) {}}
	starts := func(when string) {
		t.Helper()
		samples, err := c.read(t.Context())
		if len(samples) != 1 || !samples[0].State.Starting || samples[0].Reading != nil ||
			stateOf(err) != stateStarting {
			t.Errorf("%s: got %v, %v; want that it starts or stops", when, samples, err)
		}
	}
	starts("at first")
	status = http.StatusOK
	nan := math.NaN()
	for _, test := range []struct {
		body string
		want runner.State
	}{
		{`{}`, runner.State{Queue: nan, KVUsed: nan}},
		{`{"health":"healthy","queue":{"depth":3,"maxDepth":16},
			"resources":{"kvCacheUtilization":0.45},
			"models":{"loaded":[{"id":"a"}],"available":["a"]}}`,
			runner.State{Queue: 3, MaxQueue: 16, KVUsed: 0.45}},
		{`{"health":"unhealthy","queue":{"depth":-1,"maxDepth":"x"}}`, runner.State{}},
		{`{"health":"unhealthy","queue":{"depth":-1}}`,
			runner.State{Unhealthy: true, Queue: nan, KVUsed: nan}},
		{`{"health":"Unhealthy"}`, runner.State{Unhealthy: true, Queue: nan, KVUsed: nan}},
		{`{"models":{"loaded":[{"id":"a"}],"loading":[{"id":"c"},{"id":"c"}],
			"available":["b","a",""]}}`,
			runner.State{Queue: nan, KVUsed: nan, NotLoaded: []string{"b", "c"}}},
	} {
		body = test.body
		samples, err := c.read(t.Context())
		if cmp.Equal(test.want, runner.State{}) {
			if !errors.Is(err, errGarbled) {
				t.Errorf("%s: got %v, %v; want an error", body, samples, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if diff := cmp.Diff(test.want, *samples[0].State, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("%s: state (-want +got):\n%s", body, diff)
		}
	}
	status = http.StatusServiceUnavailable
	starts("later")
}

// Without an earlier answer, 503 is what a runner says of itself unless the server answers it to
// every path that it does not have. A server without capabilities is not stopped.
func TestServersWithoutCapabilitiesAreNotStopped(t *testing.T) {
	const other = "every other path"
	for _, test := range []struct {
		name   string
		status map[string]int // by path
		starts bool
		want   state
	}{
		{"a runner that lists models while it starts", map[string]int{
			runner.CapabilitiesPath: 503, "/v1/models": 200, other: 404}, true, stateStarting},
		{"a proxy whose runner starts", map[string]int{other: 503}, true, stateStarting},
		{"a proxy with paths of its own", map[string]int{"/v1/models": 200, other: 503}, false,
			stateNoPage},
		{"a server without the page", map[string]int{"/v1/models": 200, other: 404}, false,
			stateNoPage},
		{"a server that refuses", map[string]int{"/v1/models": 200, other: 403}, false,
			stateRefused},
		{"a server that fails", map[string]int{"/v1/models": 200, other: 500}, false,
			stateFailing},
		{"a server that has a page for everything", map[string]int{other: 200}, false,
			stateGarbled},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			status, known := test.status[r.URL.Path]
			if !known {
				status = test.status[other]
			}
			w.WriteHeader(status)
			io.WriteString(w, "<html>")
		}))
		c := &capabilities{runner: Runner{Name: "r", Base: server.URL}, client: server.Client(),
			onDrop: func(drop) {}}
		samples, err := c.read(t.Context())
		starts := len(samples) > 0 && samples[0].State.Starting
		if starts != test.starts || stateOf(err) != test.want {
			t.Errorf("%s: starts is %t, %v; want %t and the state %q", test.name, starts, err,
				test.starts, test.want)
		}
		if c.starts = c.starts.Add(-longestStart); test.starts {
			if samples, err := c.read(t.Context()); samples != nil || stateOf(err) != stateNoPage {
				t.Errorf("%s, for half an hour: got %v, %v; want no stop", test.name, samples, err)
			}
		}
		server.Close()
	}
}

// A connection that breaks is no other answer than 503.
func TestAConnectionThatBreaksDoesNotRestartTheHalfHour(t *testing.T) {
	var broken atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if broken.Load() {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	c := &capabilities{runner: Runner{Name: "r", Base: server.URL}, client: server.Client(),
		onDrop: func(drop) {}}
	for _, test := range []struct {
		passes time.Duration // before the read
		broken bool
		want   state
	}{
		{0, false, stateStarting}, {20 * time.Minute, true, stateAway},
		{time.Second, false, stateStarting}, {11 * time.Minute, false, stateNoPage},
	} {
		if broken.Store(test.broken); !c.starts.IsZero() {
			c.starts = c.starts.Add(-test.passes)
		}
		if samples, err := c.read(t.Context()); stateOf(err) != test.want {
			t.Errorf("%v later: got %v, %v, want %s", test.passes, samples, err, test.want)
		}
	}
}

func FuzzCapabilities(f *testing.F) {
	for _, seed := range []string{`{}`, `{"models":{"loading":[{"id":"c"}]},"queue":{"depth":1e400}}`,
		`{"queue":{"maxDepth":-1},"health":7}`, `[`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, body)
		}))
		defer server.Close()
		c := &capabilities{runner: Runner{Base: server.URL}, client: server.Client(),
			onDrop: func(drop) {}}
		samples, err := c.read(t.Context())
		if err == nil && (samples[0].State.Queue < 0 || samples[0].State.MaxQueue < 0) {
			t.Errorf("%q: %+v", body, samples[0].State)
		}
	})
}
