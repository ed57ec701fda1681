package compare

import (
	"fmt"

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
	changed := changes(own, defaults)
	for _, value := range changed {
		removeZeros(value)
	}
	return yaml.Marshal(changed)
}

// removeZeros removes the keys of list entries that have no value, which is their default.
func removeZeros(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, section := range value {
			removeZeros(section)
		}
	case []any:
		for _, entry := range value {
			if keys, ok := entry.(map[string]any); ok {
				removeZeroKeys(keys)
			}
		}
	}
}

func removeZeroKeys(keys map[string]any) {
	for key, value := range keys {
		switch value := value.(type) {
		case map[string]any:
			if removeZeroKeys(value); len(value) == 0 {
				delete(keys, key)
			}
		case []any:
			if len(value) == 0 {
				delete(keys, key)
			}
		default:
			if text := fmt.Sprint(value); text == "" || text == "0" || text == "0s" ||
				text == "false" {
				delete(keys, key)
			}
		}
	}
}

func yamlTree(value any) (tree map[string]any, err error) {
	text, err := yaml.Marshal(value)
	if err == nil {
		err = yaml.Unmarshal(text, &tree)
	}
	return tree, err
}
