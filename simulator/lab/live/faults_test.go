package live

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/runner/emulator"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// Faults of a runner may overlap: the end of one leaves the others.
func TestFaultsOfARunnerOverlap(t *testing.T) {
	faults := ""
	runner := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		faults = string(body)
	}))
	defer runner.Close()
	tr := &trial{daemon: &daemon{}, runners: &runners{
		address: []string{strings.TrimPrefix(runner.URL, "http://")},
		process: []*process{{ended: make(chan struct{})}}, faults: make([]emulator.Faults, 1)}}
	minute := time.Minute
	tr.setup.Scenario.Faults = []scenario.Fault{
		{At: 2 * minute, Kind: scenario.Slow, Factor: 2, For: minute}}
	tr.setup.Scenario.Metrics.Faults = []scenario.MetricsFault{
		{Kind: scenario.Absent, Source: scenario.CapabilitiesSource, From: minute, To: 4 * minute}}
	events, err := tr.events()
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now().Add(-5 * minute) // all at once
	for i, want := range []string{
		`{"no_capabilities":true}`, `{"slow":2,"no_capabilities":true}`,
		`{"no_capabilities":true}`, `{}`,
	} {
		if err := happen(t.Context(), begun, sorted(events)[i:i+1], t.Logf); err != nil {
			t.Fatal(err)
		}
		if faults != want {
			t.Errorf("event %d leaves the faults %s, want %s", i, faults, want)
		}
	}
}

// A fault that only simulations have is refused before anything starts.
func TestFaultsThatCannotHappenAreRefused(t *testing.T) {
	for _, f := range []scenario.MetricsFault{
		{Kind: scenario.Frozen, Source: scenario.EngineSource},
		{Kind: scenario.Frozen},
		{Kind: scenario.Reset},
		{Kind: scenario.Restamped}, // of capabilities too
		{Kind: scenario.Restamped, Source: scenario.CapabilitiesSource},
		{Kind: scenario.Absent, Replicas: []int{1}},
	} {
		if canHappen(f, scenario.Metrics{Capabilities: time.Second}) == nil {
			t.Errorf("%+v is accepted", f)
		}
	}
	for _, f := range []scenario.MetricsFault{
		{Kind: scenario.Absent, Source: scenario.GatewaySource}, {Kind: scenario.Absent},
	} {
		if canHappen(f, scenario.Metrics{Gateway: scenario.GatewayOff}) == nil {
			t.Errorf("%+v is accepted without a gateway", f)
		}
	}
	for _, f := range []scenario.MetricsFault{
		{Kind: scenario.Frozen, Source: scenario.GatewaySource},
		{Kind: scenario.Restamped, Source: scenario.EngineSource},
		{Kind: scenario.Absent}, {Kind: scenario.Reset, Source: scenario.GatewaySource},
	} {
		if err := canHappen(f, scenario.Metrics{Capabilities: time.Second}); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
	}
}
