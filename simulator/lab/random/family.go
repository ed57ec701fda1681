package random

import (
	"fmt"
	"slices"
	"strings"
)

// Families returns all families, the mixture of everything first.
func Families() []Family { return slices.Clone(families) }

// LookupFamily returns the family of a name; any for the empty name.
func LookupFamily(name string) (Family, error) {
	if name == "" {
		return families[0], nil
	}
	var names []string
	for _, f := range families {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return Family{}, fmt.Errorf("unknown family %q, want one of %s", name, strings.Join(names,
		", "))
}
