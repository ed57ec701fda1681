// Package closing closes what was opened, in the reverse order.
package closing

import (
	"errors"
	"fmt"
	"slices"
)

// List is what has been opened.
type List struct {
	opened []object
}

type object struct {
	name  string
	close func() error
}

// Add adds something that was opened after all the others.
func (l *List) Add(name string, close func() error) {
	l.opened = append(l.opened, object{name, close})
}

// Close closes everything, what was opened last first, and returns all errors.
func (l *List) Close() error {
	var errs []error
	for _, o := range slices.Backward(l.opened) {
		if err := o.close(); err != nil {
			errs = append(errs, fmt.Errorf("close %s: %w", o.name, err))
		}
	}
	l.opened = nil
	return errors.Join(errs...)
}
