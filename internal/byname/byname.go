// Package byname holds the implementations of an extension point by name.
package byname

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/internal/suggest"
)

// Table holds the implementations of one extension point. It is filled while packages
// initialize and only read afterwards, so it needs no lock.
type Table[T any] struct {
	noun   string
	byName map[string]T
}

// New returns an empty table. Messages call what it holds by the noun, such as "policy".
func New[T any](noun string) *Table[T] {
	return &Table[T]{noun: noun, byName: map[string]T{}}
}

// Register adds an implementation. It panics if the name is empty or taken, since both are mistakes
// of the program and show when it starts.
func (r *Table[T]) Register(name string, implementation T) {
	if _, taken := r.byName[name]; taken || name == "" {
		panic(fmt.Sprintf("register %s %q: the name is empty or registered twice", r.noun, name))
	}
	r.byName[name] = implementation
}

// Get returns the implementation of that name. The error of an unknown name lists the known ones
// and suggests the nearest.
func (r *Table[T]) Get(name string) (T, error) {
	found, ok := r.byName[name]
	if ok {
		return found, nil
	}
	names := r.Names()
	meant := ";"
	if near := suggest.Nearest(name, names); near != "" {
		meant = fmt.Sprintf(": did you mean %q?", near)
	}
	return found, fmt.Errorf("unknown %s %q%s there are %s", r.noun, name, meant,
		strings.Join(names, ", "))
}

// Names returns the registered names, sorted.
func (r *Table[T]) Names() []string { return slices.Sorted(maps.Keys(r.byName)) }
