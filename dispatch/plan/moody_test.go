package plan

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
)

// moody is the policy fixed in changing moods: no more lines than the last reading said were
// running, those above recalled unless that was 1 more than a multiple of four, prompts bounded by
// Engine.MaxBatchedTokens, two streams. It asks for everything that a planner must be able to do,
// and makes no sense.
type moody struct {
	flowcontrol.Controller
	prompt int
	moods  map[string]int
	all    int // the mood of those without one of their own
}

func init() {
	flowcontrol.Register("moody", flowcontrol.Factory{
		Needs: flowcontrol.Needs{Readings: true, Streams: true},
		New: func(cfg flowcontrol.Config) (flowcontrol.Controller, error) {
			prompt := cfg.Engine.MaxBatchedTokens
			cfg.Policy = fixed.Name
			inner, err := flowcontrol.New(cfg)
			return &moody{Controller: inner, prompt: prompt, moods: map[string]int{}, all: 100}, err
		},
	})
}

func (m *moody) Observe(now time.Time, o flowcontrol.Observation) bool {
	changed := m.Controller.Observe(now, o)
	switch {
	case o.Kind == flowcontrol.RunnerLeft:
		delete(m.moods, o.Runner)
	case o.Kind != flowcontrol.Read:
		return changed
	case o.Runner == "":
		clear(m.moods)
		m.all = int(o.Reading.Running)
	default:
		m.moods[o.Runner] = int(o.Reading.Running)
	}
	return true
}

func (m *moody) Allowance(now time.Time) flowcontrol.Allowance {
	a := m.Controller.Allowance(now)
	for i := range a.Runners {
		r := &a.Runners[i]
		mood, own := m.moods[r.Runner]
		if !own {
			mood = m.all
		}
		r.Lines, r.Prompt, r.Evict = min(r.Lines, mood), m.prompt, mood%4 != 1
	}
	a.Streams = 2
	return a
}
