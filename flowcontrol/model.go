package flowcontrol

import (
	"time"

	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/flowcontrol/internal/faults"
)

// model grants what the engine's law says fits beside the interactive load that metrics show, and
// looks at nothing that comes of it: the open loop that feedback is measured against. It sees the
// load as late as it is shown, and is as wrong as the law.
type model struct {
	cfg    ModelConfig
	law    costmodel.Model
	*probe // what it knows of the pool
	moved  bool
	grants []RunnerAllowance // in the order of members
}

// ModelConfig is that of the law without feedback. The KV and sequences that it leaves free are
// those of ProbeConfig.Reserve.
type ModelConfig struct {
	// Theta is the share of the SLO's TPOT that iterations shall take, above 0 and at most 2.
	// Default: 0.8, which leaves the prompts of others their part.
	Theta float64 `yaml:"theta"`
	// Prompt is how many prompt tokens of ours may wait on a runner when another line starts, at
	// least 1. Default: 1024, two chunks of a large model.
	Prompt int `yaml:"prompt"`
}

func DefaultModel() ModelConfig { return ModelConfig{Theta: 0.8, Prompt: 1024} }

// Validate reports every fault with the path of its field.
func (c ModelConfig) Validate() error {
	var all faults.List
	all.Within("theta", c.Theta, 0.01, 2)
	all.AtLeast("prompt", c.Prompt, 1)
	return all.Err()
}

func newModel(cfg Config) *model {
	return &model{cfg: OwnConfig[ModelConfig](cfg, "model"), law: cfg.Engine.CostModel, probe: newProbe(cfg)}
}

func (*model) Name() string { return "model" }

func (m *model) Observe(now time.Time, o Observation) (changed bool) {
	changed = m.probe.Observe(now, o)
	m.moved = m.moved || changed
	return changed
}

func (m *model) Allowance(now time.Time) Allowance {
	if m.pass(now) || m.moved {
		m.moved, m.grants = false, m.grants[:0]
		for _, of := range m.Members {
			m.grants = append(m.grants, m.grant(now, of))
		}
	}
	return m.instead(now, m.grants)
}

// grant works out a runner's part.
func (m *model) grant(now time.Time, of *Member[*probed]) RunnerAllowance {
	r := of.State
	g := RunnerAllowance{Runner: of.ID, Lines: m.probe.cfg.Start, Prompt: m.cfg.Prompt,
		Reason: ReasonLearning}
	if seen := !r.metricsAt.IsZero() && now.Sub(r.metricsAt) < m.probe.cfg.Doubt.Hard; seen {
		lines := m.law.Lines(r.load(m.probe), m.lineMix(), m.cfg.Theta*milliseconds(m.slo.TPOT))
		g.Lines, g.Reason = int(max(lines, 0)), ReasonTokenTime
	}
	if safe, why := r.safe(now, m.probe); safe < g.Lines {
		g.Lines, g.Reason = safe, why
	}
	if r.own.lines < g.Lines && r.own.prefilling >= g.Prompt {
		g.Reason = ReasonPrompt
	}
	return g
}

// instead is the allowance with other grants than probe's, but for runners that are to be left
// alone.
func (p *probe) instead(now time.Time, grants []RunnerAllowance) Allowance {
	a := p.Allowance(now)
	for i, of := range p.Members {
		if !of.Held(now) {
			a.Runners[i] = grants[i]
		}
	}
	if p.PerPool > 0 {
		shareOut(a.Runners, p.PerPool)
	}
	if len(a.Runners) > 0 {
		a.Reason = commonest(a.Runners)
	}
	return a
}
