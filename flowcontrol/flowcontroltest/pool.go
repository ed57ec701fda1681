package flowcontroltest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Pool feeds a controller in a test. Its time begins at Noon.
type Pool struct {
	flowcontrol.Controller
	Now time.Time
}

// NewPool returns a pool without runners under a new controller.
func NewPool(t testing.TB, cfg flowcontrol.Config) *Pool {
	t.Helper()
	c, err := flowcontrol.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &Pool{Controller: c, Now: Noon}
}

// Join adds runners.
func (p *Pool) Join(runners ...string) {
	for _, r := range runners {
		p.Observe(p.Now, &flowcontrol.RunnerJoined{Load: flowcontrol.Load{Runner: r}})
	}
}

// Answer reports n answers of a runner that carries as many lines as it may.
func (p *Pool) Answer(runner string, n int) {
	for range n {
		p.Observe(p.Now, &flowcontrol.Answered{Load: flowcontrol.Load{Runner: runner,
			InFlight: p.Of(runner).Lines - 1}})
	}
}

// Shed reports a refusal and lets its pause pass.
func (p *Pool) Shed(runner string) {
	p.Observe(p.Now, &flowcontrol.Shed{Load: flowcontrol.Load{Runner: runner}})
	p.Now = p.Now.Add(flowcontrol.LongestPause)
}

// Read reports a runner's metrics. It returns whether that changed the allowance.
func (p *Pool) Read(runner string, set func(*flowcontrol.Reading)) (changed bool) {
	r := flowcontrol.NoReading(flowcontrol.Metrics, p.Now)
	set(&r)
	return p.Observe(p.Now, &flowcontrol.Read{Runner: runner, Reading: &r})
}

// Of returns what a runner is granted now.
func (p *Pool) Of(runner string) flowcontrol.RunnerAllowance {
	a := p.Allowance(p.Now)
	i := slices.IndexFunc(a.Runners, func(r flowcontrol.RunnerAllowance) bool {
		return r.Runner == runner
	})
	return a.Runners[i]
}

// TestFaults checks that the defaults of a policy are valid and that each change to them is
// reported as a fault that begins with the change's key, the path of the field.
func TestFaults[C flowcontrol.PolicyConfig](t *testing.T, defaults C, spoil map[string]func(*C)) {
	t.Helper()
	if err := defaults.Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
	for field, change := range spoil {
		own := defaults
		change(&own)
		if err := own.Validate(); err == nil || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("got %v, want a fault of %s", err, field)
		}
	}
}
