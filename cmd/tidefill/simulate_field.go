package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// contestant is a policy that is tried.
type contestant struct {
	name     string
	law      string   // of flow control
	settings []string // key=value below flowcontrol.LAW
	baseline bool
	scaling  bool // differs in how replicas are asked for, and in nothing else
	policy   simulator.Policy
}

// actsIn reports whether the contestant would be another one than those before it in a story.
func (c contestant) actsIn(s *story) bool {
	return !c.scaling || s.Scenario.Pool.Max > 0 || slices.ContainsFunc(s.Scenario.BatchPools,
		func(p scenario.BatchPool) bool { return p.Max > 0 })
}

// policyOf is the part of the daemon's configuration that a simulation takes.
func policyOf(cfg config.Simulation) simulator.Policy {
	return simulator.Policy{
		Scheduler: cfg.Scheduler, Flow: cfg.FlowControl, Plan: cfg.Dispatch.PlanConfig(),
		ChunkLines: cfg.Dispatch.ChunkLines,
		Scale:      cfg.Autoscale,
	}
}

// configured builds configurations that differ from the given one in a few settings.
type configured struct {
	file  string
	given []config.Setting
}

func (c configured) load(more ...string) (config.Simulation, error) {
	all := slices.Clone(c.given)
	for _, text := range more {
		s, err := config.ParseSetting(text)
		if err != nil {
			return config.Simulation{}, err
		}
		all = append(all, s)
	}
	return config.LoadSimulation(c.file, all...)
}

// knowing loads a configuration for a simulation, where policies are told the scenario's law unless
// the operator gives one of his own: a policy that can't do without a law is then no fault.
func (c configured) knowing(more []string) (config.Simulation, error) {
	given, err := c.load("flowcontrol.policy=fixed")
	if err != nil || given.FlowControl.Engine.CostModel.Known() {
		return c.load(more...)
	}
	cfg, err := c.load(append(more, "flowcontrol.engine.cost_model={c0: 1}")...)
	cfg.FlowControl.Engine.CostModel = costmodel.Model{}
	return cfg, err
}

// contestant builds one. An empty law is that of the configuration.
func (c configured) contestant(law string, settings []string, baseline bool) (contestant, error) {
	var more []string
	if law != "" {
		more = append(more, "flowcontrol.policy="+law)
	}
	for _, s := range settings {
		more = append(more, "flowcontrol."+law+"."+s)
	}
	cfg, err := c.knowing(more)
	if err != nil {
		return contestant{}, err
	}
	law = cfg.FlowControl.Policy
	return contestant{
		name: strings.Join(append([]string{law}, settings...), " "), law: law, settings: settings,
		baseline: baseline, policy: policyOf(cfg),
	}, nil
}

// named reads what --policy says: a law, and settings of its own after commas.
func (c configured) named(text string) (contestant, error) {
	law, rest, more := strings.Cut(text, ",")
	var settings []string
	if more {
		settings = strings.Split(rest, ",")
	}
	made, err := c.contestant(law, settings, false)
	if err != nil {
		return contestant{}, fmt.Errorf("--policy %s: %w", text, err)
	}
	return made, nil
}

// field is the policies that were asked for, then the baselines that are not among them.
func (c configured) field(asked []string, baselines bool) ([]contestant, error) {
	if len(asked) == 0 {
		asked = []string{""}
	}
	var all []contestant
	for _, text := range asked {
		made, err := c.named(text)
		if err != nil {
			return nil, err
		}
		if known(all, made.name) {
			return nil, usageFault("--policy %s is given twice", made.name)
		}
		all = append(all, made)
	}
	if !baselines {
		return all, nil
	}
	for _, b := range published {
		for _, settings := range b.settings {
			made, err := c.contestant(b.law, settings, true)
			if err != nil {
				return nil, fmt.Errorf("baseline %s: %w", b.law, err)
			}
			if !known(all, made.name) {
				all = append(all, made)
			}
		}
	}
	for _, b := range publishedScaling {
		made, err := c.scaling(asked[0], b)
		if err != nil {
			return nil, fmt.Errorf("baseline %s: %w", b, err)
		}
		all = append(all, made)
	}
	return all, nil
}

// scaling is the first policy that was asked for, with replicas asked for by another law, which may
// have settings after commas.
func (c configured) scaling(asked, by string) (contestant, error) {
	law, rest, more := strings.Cut(by, ",")
	given := []string{"autoscale.policy=" + law}
	if more {
		for s := range strings.SplitSeq(rest, ",") {
			given = append(given, "autoscale."+law+"."+s)
		}
	}
	with := configured{c.file, slices.Clone(c.given)}
	for _, text := range given {
		s, err := config.ParseSetting(text)
		if err != nil {
			return contestant{}, err
		}
		with.given = append(with.given, s)
	}
	made, err := with.named(asked)
	made.law, made.settings, made.baseline, made.scaling = "scaling:"+law, given, true, true
	made.name = strings.Join(append([]string{made.law}, strings.FieldsFunc(rest, func(r rune) bool {
		return r == ','
	})...), " ")
	return made, err
}

func known(all []contestant, name string) bool {
	return slices.ContainsFunc(all, func(c contestant) bool { return c.name == name })
}

// published are the laws that policies are measured against, each with its published settings
// first. What they do and where they come from, docs/policies.md says. The policy unlimited is not
// among them: against a pool that sheds it asks again thousands of times a second, and fixed with
// 128 lines shows what becomes of users.
var published = []struct {
	law      string
	settings [][]string
}{
	{"none", [][]string{{}}},
	{"fixed", each("per_runner", 1, 2, 4, 8, 12, 16, 20, 24, 32, 48, 64, 128)},
	{"aimd", with(each("decrease", 0.5, 0.7, 0.9), "start=5", "least=5")},
	// Beyond the published setting without the 64 workers, which would bound the pool before the
	// law does.
	{"budget", slices.Concat([][]string{{}},
		with(each("max_concurrency", 15, 20, 25, 50, 100), "baseline=0.1", "per_pool=0"),
		with(each("max_concurrency", 15, 20, 25, 50, 100), "baseline=0.1", "per_pool=0",
			"load=running"))},
	{"saturation", append(each("threshold", 0.8, 0.5), with(each("threshold", 0.8, 0.5),
		"per_pool=0")...)},
	{"gradient", each("tolerance", 1.5, 2)},
	{"model", append([][]string{{}}, each("theta", 0.5, 0.6, 0.7, 0.9, 1.0)...)},
}

// publishedScaling are the laws that slack is measured against.
var publishedScaling = []string{
	"interactive", "queue_length,lines_per_replica=2000", "queue_length,lines_per_replica=10000",
	"separate", "static",
}

// each is a setting at several values.
func each[N int | float64](key string, values ...N) [][]string {
	var all [][]string
	for _, v := range values {
		all = append(all, []string{fmt.Sprintf("%s=%v", key, v)})
	}
	return all
}

// with adds the same settings to each.
func with(all [][]string, more ...string) [][]string {
	for i := range all {
		all[i] = append(all[i], more...)
	}
	return all
}
