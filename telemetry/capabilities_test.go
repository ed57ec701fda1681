package telemetry

import (
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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
	if samples, err := c.read(t.Context()); samples != nil || stateOf(err) != stateStarting {
		t.Errorf("at first: got %v, %v; want no sample and the state starting", samples, err)
	}
	status = http.StatusOK
	nan := math.NaN()
	for _, test := range []struct {
		body string
		want State
	}{
		{`{}`, State{Queue: nan, KVUsed: nan}},
		{`{"health":"healthy","queue":{"depth":3,"maxDepth":16},
			"resources":{"kvCacheUtilization":0.45},
			"models":{"loaded":[{"id":"a"}],"available":["a"]}}`,
			State{Queue: 3, MaxQueue: 16, KVUsed: 0.45}},
		{`{"health":"unhealthy","queue":{"depth":-1,"maxDepth":"x"}}`, State{}},
		{`{"health":"unhealthy","queue":{"depth":-1}}`,
			State{Unhealthy: true, Queue: nan, KVUsed: nan}},
		{`{"models":{"loaded":[{"id":"a"}],"loading":[{"id":"c"},{"id":"c"}],
			"available":["b","a",""]}}`,
			State{Queue: nan, KVUsed: nan, NotLoaded: []string{"b", "c"}}},
	} {
		body = test.body
		samples, err := c.read(t.Context())
		if cmp.Equal(test.want, State{}) {
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
	samples, err := c.read(t.Context())
	if len(samples) != 1 || !samples[0].State.Starting || samples[0].Reading != nil ||
		stateOf(err) != stateStarting {
		t.Errorf("later: got %v, %v; want that it starts or stops", samples, err)
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
