// Package faults collects what is wrong with a configuration, so that all of it is reported at
// once.
package faults

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// List collects faults, each with the path of its field. The zero value is empty.
type List []error

// Add reports a fault of the field at path.
func (l *List) Add(path, format string, args ...any) {
	*l = append(*l, fmt.Errorf("%s: "+format, append([]any{path}, args...)...))
}

// AddAll reports the faults that err joins, their paths below path.
func (l *List) AddAll(path string, err error) {
	if err == nil {
		return
	}
	all := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		all = joined.Unwrap()
	}
	for _, fault := range all {
		*l = append(*l, fmt.Errorf("%s.%w", path, fault))
	}
}

// AtLeast reports a number below least.
func (l *List) AtLeast(path string, got, least int) {
	if got < least {
		l.Add(path, "is %d, must be at least %d", got, least)
	}
}

// Within reports a number outside least and most, and one that is not finite.
func (l *List) Within(path string, got, least, most float64) {
	if !(got >= least && got <= most) || math.IsInf(got, 0) {
		l.Add(path, "is %v, must be from %v to %v", got, least, most)
	}
}

// Positive reports a duration of zero or less.
func (l *List) Positive(path string, got time.Duration) {
	if got <= 0 {
		l.Add(path, "is %v, must be positive", got)
	}
}

// NotNegative reports a duration below zero.
func (l *List) NotNegative(path string, got time.Duration) {
	if got < 0 {
		l.Add(path, "is %v, must not be negative", got)
	}
}

// Err joins the faults; nil if there are none.
func (l List) Err() error { return errors.Join(l...) }
