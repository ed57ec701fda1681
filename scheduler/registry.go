package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// registry holds the builders of one extension point by name. It is filled in init functions and
// only read afterwards.
type registry[T any] struct {
	noun     string // what is registered, as messages call it
	builders map[string]func(Config) (T, error)
}

// register panics on a name that is empty or taken: both are mistakes of the program, found at its
// start.
func (r *registry[T]) register(name string, build func(Config) (T, error)) {
	if name == "" || r.builders[name] != nil {
		panic(fmt.Sprintf("scheduler: %s %q is empty or registered twice", r.noun, name))
	}
	r.builders[name] = build
}

func (r *registry[T]) names() []string {
	return slices.Sorted(maps.Keys(r.builders))
}

func (r *registry[T]) build(name string, cfg Config) (T, error) {
	build := r.builders[name]
	if build == nil {
		var none T
		return none, fmt.Errorf("unknown %s %q: did you mean %q? there are %s",
			r.noun, name, nearest(name, r.names()), strings.Join(r.names(), ", "))
	}
	return build(cfg)
}

// nearest is the name with the fewest edits to it, the first such in order.
func nearest(name string, names []string) string {
	return slices.MinFunc(names, func(a, b string) int { return edits(name, a) - edits(name, b) })
}

// edits is the Levenshtein distance of two short names.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitute := diagonal
			if a[i] != b[j] {
				substitute++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitute, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
