package experiment

import (
	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/simulator/scenario"
)

// ScenarioYAML returns a scenario as a file with the keys that differ from the defaults.
func ScenarioYAML(s scenario.Scenario) ([]byte, error) {
	own, err := yamlTree(s)
	if err != nil {
		return nil, err
	}
	defaults, err := yamlTree(scenario.Default())
	if err != nil {
		return nil, err
	}
	return yaml.Marshal(changes(own, defaults))
}

func yamlTree(value any) (tree map[string]any, err error) {
	text, err := yaml.Marshal(value)
	if err == nil {
		err = yaml.Unmarshal(text, &tree)
	}
	return tree, err
}
