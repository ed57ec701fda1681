package config

import (
	"errors"

	"github.com/tidefill/tidefill/autoscale"
)

// Simulation is the configuration of the commands simulate and tune. It is the daemon's, so that
// one file can serve both, and what only simulations act on.
type Simulation struct {
	Config `yaml:",inline"`

	// Autoscale decides how many replicas the simulated pools have.
	Autoscale autoscale.Config `yaml:"autoscale"`
}

// simulationOnly explains why the daemon refuses a key of Simulation.
const simulationOnly = "only simulate and tune use it; keep it in a file that you give to them"

// DefaultSimulation returns the daemon's defaults and those of autoscaling.
func DefaultSimulation() Simulation {
	return Simulation{Config: Default(), Autoscale: autoscale.DefaultConfig()}
}

// LoadSimulation is Load for the configuration of simulations.
func LoadSimulation(path string, settings ...Setting) (Simulation, error) {
	return load(path, DefaultSimulation(), settings)
}

// Validate reports every fault, each beginning with the path of its key.
func (s Simulation) Validate() error {
	return errors.Join(s.Config.Validate(), section("autoscale", s.Autoscale.Validate()))
}

// YAML writes every key with its value, as a file that LoadSimulation reads back to the same.
func (s Simulation) YAML() ([]byte, error) { return writeYAML(s) }
