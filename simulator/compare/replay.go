package compare

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
	"github.com/tidefill/tidefill/simulator/oracle"
	"github.com/tidefill/tidefill/simulator/report"
)

// WriteReplays writes the configurations that reach the bounds of oracle G into a directory, one
// file for each scenario and seed, with the command that runs it.
func (c *Comparison) WriteReplays(dir string, result report.Report) error {
	for i := range c.Scenarios {
		s := &c.Scenarios[i]
		for n, seed := range c.Seeds {
			for _, b := range result.Scenarios[i].Seeds[n].Oracles {
				if len(b.Config) == 0 {
					continue
				}
				if err := s.writeReplay(dir, seed, b); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (s *Scenario) writeReplay(dir string, seed uint64, b oracle.Bound) error {
	text, err := yaml.Marshal(b.Config)
	if err != nil {
		return err
	}
	name := filepath.Join(dir, s.runName(seed)+"-"+strings.ToLower(b.Name)+".yaml")
	head := fmt.Sprintf("# Oracle %s of %s, seed %d: %.0f useful tokens at %.3f points of loss "+
		"(%s).\n# tidefill simulate %s --seed %d --config %s\n",
		b.Name, s.Scenario.Name, seed, b.Useful, b.Loss, b.Note, shellword.Of(s.File), seed,
		shellword.Of(name))
	return errors.Join(os.MkdirAll(dir, 0o777),
		os.WriteFile(name, append([]byte(head), text...), 0o666))
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
	return changes(own, defaults), nil
}

func settingsTree(cfg config.Config) (tree map[string]any, err error) {
	text, err := cfg.YAML()
	if err == nil {
		err = yaml.Unmarshal(text, &tree)
	}
	return tree, err
}

// changes returns the part of a tree that differs from another.
func changes(own, defaults map[string]any) map[string]any {
	changed := map[string]any{}
	for key, value := range own {
		section, isSection := value.(map[string]any)
		other, _ := defaults[key].(map[string]any)
		switch {
		case isSection:
			if more := changes(section, other); len(more) > 0 {
				changed[key] = more
			}
		case fmt.Sprint(value) != fmt.Sprint(defaults[key]):
			changed[key] = value
		}
	}
	return changed
}
