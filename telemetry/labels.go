package telemetry

import (
	"strings"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"
)

// Labels names labels of series, of which the first that is not empty is used.
type Labels []string

// UnmarshalYAML accepts a text as the name of one label; an empty text is none.
func (l *Labels) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind != yaml.ScalarNode {
		return node.Decode((*[]string)(l))
	}
	if *l = (Labels{node.Value}); node.Value == "" {
		*l = nil
	}
	return nil
}

// of returns the value for a series; empty: it has none of the labels.
func (l Labels) of(series model.Metric) string {
	for _, name := range l {
		if value := series[model.LabelName(name)]; value != "" {
			return string(value)
		}
	}
	return ""
}

// and returns the names with commas between them, to follow further ones in a PromQL list.
func (l Labels) and(further ...string) string {
	return strings.Join(append(further, l...), ", ")
}
