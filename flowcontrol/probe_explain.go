package flowcontrol

import (
	"math"
	"time"
)

// Explain tells what the allowance follows from, the pool's terms first.
func (p *probe) Explain(now time.Time) []Term {
	law, mix := p.fit.fitted(), p.lineMix()
	terms := []Term{
		{Name: "theta", Value: p.theta.value()},
		{Name: "theta at rest", Value: p.theta.rest()},
		{Name: "theta of prompts", Value: p.theta.prompts.value()},
		{Name: "theta of lines", Value: p.theta.lines.value()},
		{Name: "prompts' part", Value: p.theta.part.mean},
		{Name: "late TPOT", Value: p.theta.prompts.share()},
		{Name: "target", Value: p.target(), Unit: "ms"},
		{Name: "prompt level", Value: p.prompt.value(), Unit: "tokens"},
		{Name: "lines by feedback", Value: p.lines, Unit: "lines"},
		{Name: "lines by the law", Value: p.foreseen(), Unit: "lines"},
		{Name: "lines by deadlines", Value: p.pressed, Unit: "lines"},
		{Name: "own share", Value: p.ownShare.mean},
		{Name: "line prompt", Value: mix.Prompt, Unit: "tokens"},
		{Name: "line expected", Value: p.mix.expected, Unit: "tokens"},
		{Name: "line output", Value: mix.Output, Unit: "tokens"},
		{Name: "line context", Value: mix.Context, Unit: "tokens"},
		{Name: "fitted c0", Value: law.C0, Unit: "ms"},
		{Name: "fitted sequence", Value: p.fit.perSequence(), Unit: "ms"},
		{Name: "fitted prompt token", Value: p.fit.perToken(), Unit: "ms"},
		{Name: "wasted", Value: p.wasted / max(p.answered, 1)},
	}
	for _, m := range p.Members {
		r := m.State
		add := func(name string, value float64, unit string) {
			terms = append(terms, Term{Runner: m.ID, Name: name, Value: value, Unit: unit})
		}
		safe, _ := r.safe(now, p)
		tokens, _ := r.prompts(now, p)
		add("iteration", r.tempo.mean(), "ms")
		add("without our prompts", r.base.mean(), "ms")
		add("seen ago", age(now, r.gapsAt), "s")
		add("credit", r.credit, "ms")
		add("prompt tokens earned", tokens, "tokens")
		add("lines by feedback", p.part(r), "lines")
		add("safe lines", float64(safe), "lines")
		add("lines left by doubt", r.doubt.ceiling, "lines")
		add("knowledge", float64(r.doubt.state), "state")
		add("own context", r.own.context, "tokens")
		add("metrics ago", age(now, r.metricsAt), "s")
		add("interactive running", r.running.mean, "requests")
		add("interactive context", r.context.mean, "tokens")
		add("interactive prompts", r.promptRate.mean, "tokens/s")
		add("interactive waiting", r.waiting, "requests")
	}
	return terms
}

// foreseen is what the law alone would let run.
func (p *probe) foreseen() float64 {
	l, _ := p.load()
	return p.fit.fitted().Lines(l, p.lineMix(), p.target())
}

// age is infinite for what has never been.
func age(now, at time.Time) float64 {
	if at.IsZero() {
		return math.Inf(1)
	}
	return now.Sub(at).Seconds()
}
