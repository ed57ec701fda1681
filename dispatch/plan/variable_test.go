package plan

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
)

// variable is a policy for tests that uses all features of the contract. It is the policy fixed,
// with at most as many lines as the last reading had running. It evicts lines above that unless the
// number is 1 more than a multiple of four. It limits prompts by Engine.MaxBatchedTokens and
// requests two streams.
type variable struct {
	flowcontrol.Controller
	prompt int
	grants map[string]int
	all    int // of runners without a reading of their own
}

func init() {
	flowcontrol.Register("variable", flowcontrol.Factory{
		Needs: flowcontrol.Needs{Readings: true, Streams: true},
		New: func(cfg flowcontrol.Config) (flowcontrol.Controller, error) {
			prompt := cfg.Engine.MaxBatchedTokens
			cfg.Policy = fixed.Name
			inner, err := flowcontrol.New(cfg)
			return &variable{Controller: inner, prompt: prompt, grants: map[string]int{}, all: 100},
				err
		},
	})
}

func (m *variable) Observe(now time.Time, o flowcontrol.Observation) bool {
	changed := m.Controller.Observe(now, o)
	switch o := o.(type) {
	case *flowcontrol.RunnerLeft:
		delete(m.grants, o.Runner)
	case *flowcontrol.Read:
		if o.Runner == "" {
			clear(m.grants)
			m.all = int(o.Reading.Running)
		} else {
			m.grants[o.Runner] = int(o.Reading.Running)
		}
	default:
		return changed
	}
	return true
}

func (m *variable) Allowance(now time.Time) flowcontrol.Allowance {
	a := m.Controller.Allowance(now)
	for i := range a.Runners {
		r := &a.Runners[i]
		setGrant, own := m.grants[r.Runner]
		if !own {
			setGrant = m.all
		}
		r.Lines, r.Prompt, r.Evict = min(r.Lines, setGrant), m.prompt, setGrant%4 != 1
	}
	a.Streams = 2
	return a
}
