package bounds

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/shellword"
	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/compare"
	"github.com/tidefill/tidefill/simulator/lab/internal/yamltree"
	"github.com/tidefill/tidefill/simulator/lab/oracle"
)

// WriteReplays writes the configurations that reach the bounds of oracle G into a directory, one
// file for each scenario and seed, with the command that runs it.
func (c *Comparison) WriteReplays(dir string, result *Report) error {
	for i := range c.Scenarios {
		for _, seed := range result.Bounds[i].Seeds {
			for _, b := range seed.Oracles {
				if len(b.Config) == 0 {
					continue
				}
				if err := writeReplay(dir, &c.Scenarios[i], seed.Seed, b); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func writeReplay(dir string, s *compare.Scenario, seed uint64, b oracle.Bound) error {
	text, err := yaml.Marshal(b.Config)
	if err != nil {
		return err
	}
	name := filepath.Join(dir, runName(s, seed)+"-"+strings.ToLower(b.Name)+".yaml")
	head := fmt.Sprintf("# Oracle %s of %s, seed %d: %.0f useful tokens at %.3f points of loss "+
		"(%s).\n# tidefill simulate %s --seed %d --config %s\n",
		b.Name, s.Scenario.Name, seed, b.Useful, b.Loss, b.Note, shellword.Of(s.File), seed,
		shellword.Of(name))
	return errors.Join(os.MkdirAll(dir, 0o777),
		os.WriteFile(name, append([]byte(head), text...), 0o666))
}

// runName names the scenario with a seed, for the names of files.
func runName(s *compare.Scenario, seed uint64) string {
	return fmt.Sprintf("%s-seed%d", s.Name, seed)
}

// changedSettings returns the configuration keys by which a policy differs from the defaults; nil
// for no policy.
func changedSettings(p *simulator.Policy) (map[string]any, error) {
	if p == nil {
		return nil, nil
	}
	cfg := config.Default()
	cfg.Scheduler, cfg.FlowControl, cfg.Autoscale = p.Scheduler, p.Flow, p.Scale
	cfg.Dispatch.Retry, cfg.Dispatch.Plan = p.Plan.Retry, p.Plan.Tuning
	cfg.Dispatch.ChunkLines = p.ChunkLines
	defaults, err := settingsTree(config.Default())
	if err != nil {
		return nil, err
	}
	own, err := settingsTree(cfg)
	if err != nil {
		return nil, err
	}
	return yamltree.Changes(own, defaults), nil
}

func settingsTree(cfg config.Config) (map[string]any, error) {
	text, err := cfg.YAML()
	if err != nil {
		return nil, err
	}
	return yamltree.Read(text)
}
