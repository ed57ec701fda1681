package flowcontrol

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// builders is filled in init functions and only read afterwards.
var builders = map[string]func(Config) (Controller, error){
	"fixed": func(cfg Config) (Controller, error) { return newFixed(cfg.Fixed), nil },
	"aimd":  func(cfg Config) (Controller, error) { return newAIMD(cfg.AIMD), nil },
	"probe": func(cfg Config) (Controller, error) { return newProbe(cfg), nil },

	// What others do, to compare with and for those who want just that.
	"none":      func(Config) (Controller, error) { return newSame("none", 0), nil },
	"unlimited": func(Config) (Controller, error) { return newSame("unlimited", Unlimited), nil },
	"budget":    func(cfg Config) (Controller, error) { return newBudget(cfg.Budget), nil },
	"saturation": func(cfg Config) (Controller, error) {
		return newSaturation(cfg.Saturation), nil
	},
	"gradient": func(cfg Config) (Controller, error) { return newGradient(cfg.Gradient), nil },
	"model":    func(cfg Config) (Controller, error) { return newModel(cfg), nil },
	"schedule": func(cfg Config) (Controller, error) { return newSchedule(cfg), nil },
}

// Register makes a controller known to configurations by its name. Call it from an init function;
// it panics on a name that is empty or taken, which is a mistake of the program.
func Register(name string, build func(Config) (Controller, error)) {
	if name == "" || builders[name] != nil {
		panic(fmt.Sprintf("flowcontrol: policy %q is empty or registered twice", name))
	}
	builders[name] = build
}

// Policies are the registered names, sorted.
func Policies() []string { return slices.Sorted(maps.Keys(builders)) }

// New builds the controller that cfg names, for one pool. The error is that of cfg.Validate.
func New(cfg Config) (Controller, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("flowcontrol config: %w", err)
	}
	return builders[cfg.Policy](cfg)
}

// known is an error that lists the registered names and the nearest if name is none of them.
func known(name string) error {
	if builders[name] != nil {
		return nil
	}
	names := Policies()
	nearest := slices.MinFunc(names, func(a, b string) int {
		return edits(name, a) - edits(name, b)
	})
	return fmt.Errorf("unknown policy %q: did you mean %q? there are %s", name, nearest,
		strings.Join(names, ", "))
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
