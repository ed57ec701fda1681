package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// Candidate is a policy that a Comparison tries.
type Candidate struct {
	Name string
	// Family groups candidates that differ only in settings: the flow-control policy's name or,
	// with Scaling, "scaling:" and the scaling policy's name.
	Family   string
	Settings []string // key=value, below the policy's section
	Baseline bool     // a published policy to compare with
	// Variant marks a baseline with settings that nobody published: they are tried on the first
	// seed, and run on the others while they may be its policy's best.
	Variant bool
	// Scaling marks a baseline that differs from the first candidate only in its scaling policy.
	Scaling bool
	Policy  simulator.Policy
}

// appliesTo reports whether the candidate differs from the others in this scenario: scaling
// policies need a pool that scales.
func (c Candidate) appliesTo(s *Scenario) bool {
	return !c.Scaling || s.Scenario.Pool.Max > 0 || slices.ContainsFunc(s.Scenario.BatchPools,
		func(p scenario.BatchPool) bool { return p.Max > 0 })
}

// Candidate builds a candidate from text: a flow-control policy, and settings of its own after
// commas, such as fixed,per_runner=16. Empty text is the policy of the configuration.
func (c Configuration) Candidate(text string) (Candidate, error) {
	policy, settings := splitPolicy(text)
	return c.candidate(policy, settings)
}

// splitPolicy splits a policy's name from the settings that follow it after commas.
func splitPolicy(text string) (name string, settings []string) {
	name, rest, more := strings.Cut(text, ",")
	if more {
		settings = strings.Split(rest, ",")
	}
	return name, settings
}

func (c Configuration) candidate(policy string, settings []string) (Candidate, error) {
	var all []string
	if policy != "" {
		all = append(all, "flowcontrol.policy="+policy)
	}
	for _, s := range settings {
		all = append(all, "flowcontrol."+policy+"."+s)
	}
	cfg, err := c.Load(all...)
	if err != nil {
		return Candidate{}, err
	}
	policy = cfg.FlowControl.Policy
	return Candidate{
		Name: strings.Join(append([]string{policy}, settings...), " "), Family: policy,
		Settings: settings, Policy: policyOf(cfg),
	}, nil
}

// scalingCandidate builds the first candidate with another scaling policy, which may have settings
// after commas.
func (c Configuration) scalingCandidate(first, scaling string) (Candidate, error) {
	policy, settings := splitPolicy(scaling)
	given := []string{"autoscale.policy=" + policy}
	for _, s := range settings {
		given = append(given, "autoscale."+policy+"."+s)
	}
	scaled, err := c.with(given...)
	if err != nil {
		return Candidate{}, err
	}
	made, err := scaled.Candidate(first)
	made.Family, made.Settings, made.Baseline, made.Scaling = "scaling:"+policy, given, true, true
	made.Name = strings.Join(append([]string{made.Family}, settings...), " ")
	return made, err
}

// Baselines appends the published policies that are not yet among the candidates: those of the
// daemon and more, with several settings each, and the policy first, as for Candidate, with other
// scaling policies.
func (c Configuration) Baselines(
	candidates []Candidate, first string, more ...Published,
) ([]Candidate, error) {
	for _, b := range slices.Concat(publishedPolicies, more) {
		for i, settings := range b.Settings {
			made, err := c.candidate(b.Policy, settings)
			if err != nil {
				return nil, fmt.Errorf("baseline %s: %w", b.Policy, err)
			}
			made.Baseline, made.Variant = true, i > 0
			if !containsName(candidates, made.Name) {
				candidates = append(candidates, made)
			}
		}
	}
	for _, b := range publishedScaling {
		made, err := c.scalingCandidate(first, b)
		if err != nil {
			return nil, fmt.Errorf("baseline %s: %w", b, err)
		}
		candidates = append(candidates, made)
	}
	return candidates, nil
}

func containsName(all []Candidate, name string) bool {
	return slices.ContainsFunc(all, func(c Candidate) bool { return c.Name == name })
}
