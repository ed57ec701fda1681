package randompools

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/simulator/lab/internal/yamltree"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// scenarioYAML returns a scenario as a file with the keys that differ from the defaults.
func scenarioYAML(s scenario.Scenario) ([]byte, error) {
	own, err := yamltree.Of(s)
	if err != nil {
		return nil, err
	}
	defaults, err := yamltree.Of(scenario.Default())
	if err != nil {
		return nil, err
	}
	changed := yamltree.Changes(own, defaults)
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
