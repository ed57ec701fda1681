package compare

import (
	"slices"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/costmodel"
	"github.com/tidefill/tidefill/simulator"
)

// Configuration is the daemon's configuration that policies are taken from. The zero value is the
// default configuration.
type Configuration struct {
	File     string // empty: the defaults
	Settings []config.Setting
}

// with returns the configuration with further settings of the form key=value.
func (c Configuration) with(texts ...string) (Configuration, error) {
	c.Settings = slices.Clone(c.Settings)
	for _, text := range texts {
		s, err := config.ParseSetting(text)
		if err != nil {
			return Configuration{}, err
		}
		c.Settings = append(c.Settings, s)
	}
	return c, nil
}

func (c Configuration) loadExactly(settings ...string) (config.Config, error) {
	all, err := c.with(settings...)
	if err != nil {
		return config.Config{}, err
	}
	return config.Load(all.File, all.Settings...)
}

// Load reads the configuration with further settings. The simulator gives policies the cost model
// of the scenario unless the configuration has one, so a policy that requires a cost model is valid
// without one here.
func (c Configuration) Load(settings ...string) (config.Config, error) {
	given, err := c.loadExactly("flowcontrol.policy=fixed")
	if err != nil || given.FlowControl.Engine.CostModel.Known() {
		return c.loadExactly(settings...)
	}
	cfg, err := c.loadExactly(append(settings, "flowcontrol.engine.cost_model={c0: 1}")...)
	cfg.FlowControl.Engine.CostModel = costmodel.Model{}
	for name, own := range cfg.FlowControl.Pools { // they have inherited it
		own.Engine.CostModel = given.FlowControl.Pools[name].Engine.CostModel
		cfg.FlowControl.Pools[name] = own
	}
	return cfg, err
}

// Policy returns the policies of the configuration with further settings.
func (c Configuration) Policy(settings ...string) (simulator.Policy, error) {
	cfg, err := c.Load(settings...)
	return policyOf(cfg), err
}

// policyOf returns the part of a configuration that the simulator uses.
func policyOf(cfg config.Config) simulator.Policy {
	return simulator.Policy{
		Scheduler: cfg.Scheduler, Flow: cfg.FlowControl, Plan: cfg.Dispatch.PlanConfig(),
		ChunkLines: cfg.Dispatch.ChunkLines,
		Scale:      cfg.Autoscale,
	}
}
