// Package simflags holds the flags of simulations that tidefill and tidefill-lab share. Mistakes in
// them are errors of type compare.RequestError.
package simflags

import (
	"fmt"
	"slices"

	"github.com/spf13/pflag"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/simulator/compare"
)

// Policies are the flags that choose policies.
type Policies struct {
	Names    []string // each as for compare.Configuration.Candidate
	Config   string   // file of the daemon's configuration
	Settings []string // key=value
}

// Register adds the flags.
func (p *Policies) Register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&p.Names, "policy", nil,
		"try this flow-control `policy`, with settings of its own after commas "+
			"(fixed,per_runner=16); repeat it to compare (default: the configuration's)")
	flags.StringVar(&p.Config, "config", "",
		"read the policies' settings from this `file`, a configuration of the daemon "+
			"(default: the daemon's defaults)")
	flags.StringArrayVar(&p.Settings, "set", nil,
		"set one `key.path=value` of the configuration, in YAML's syntax; may be repeated")
}

// Configuration returns that of --config and --set.
func (p *Policies) Configuration() (compare.Configuration, error) {
	c := compare.Configuration{File: p.Config}
	for _, given := range p.Settings {
		setting, err := config.ParseSetting(given)
		if err != nil {
			return c, &compare.RequestError{Err: err}
		}
		c.Settings = append(c.Settings, setting)
	}
	return c, nil
}

// names returns those of --policy, or that of the configuration as an empty one.
func (p *Policies) names() []string {
	if len(p.Names) == 0 {
		return []string{""}
	}
	return p.Names
}

// Candidates returns the policies of --policy, or that of the configuration.
func (p *Policies) Candidates() ([]compare.Candidate, error) {
	cfg, err := p.Configuration()
	if err != nil {
		return nil, err
	}
	var all []compare.Candidate
	for _, text := range p.names() {
		candidate, err := cfg.Candidate(text)
		if err != nil && text != "" {
			err = fmt.Errorf("--policy %s: %w", text, err)
		}
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(c compare.Candidate) bool {
			return c.Name == candidate.Name
		}) {
			return nil, compare.RequestErrorf("--policy %s is given twice", candidate.Name)
		}
		all = append(all, candidate)
	}
	return all, nil
}
