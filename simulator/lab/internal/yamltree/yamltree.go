// Package yamltree compares YAML documents as trees of keys.
package yamltree

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Read returns the tree of a document.
func Read(text []byte) (tree map[string]any, err error) {
	err = yaml.Unmarshal(text, &tree)
	return tree, err
}

// Of returns the tree of a value as it is written.
func Of(value any) (map[string]any, error) {
	text, err := yaml.Marshal(value)
	if err != nil {
		return nil, err
	}
	return Read(text)
}

// Changes returns the part of a tree that differs from another.
func Changes(own, other map[string]any) map[string]any {
	changed := map[string]any{}
	for key, value := range own {
		section, isSection := value.(map[string]any)
		otherSection, _ := other[key].(map[string]any)
		switch {
		case isSection:
			if more := Changes(section, otherSection); len(more) > 0 {
				changed[key] = more
			}
		case fmt.Sprint(value) != fmt.Sprint(other[key]):
			changed[key] = value
		}
	}
	return changed
}
