package tables

import (
	"math"
	"time"
)

// Never is the value of a time column for objects that do not expire or have no deadline. It sorts
// after all times.
const Never = math.MaxInt64

// Micros returns the value of a time column.
func Micros(t time.Time) int64 { return t.UnixMicro() }

// MicrosOrNever is Micros for times whose zero value is never.
func MicrosOrNever(t time.Time) int64 {
	if t.IsZero() {
		return Never
	}
	return t.UnixMicro()
}

// MicrosOrZero is Micros for times whose zero value is none.
func MicrosOrZero(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// MicrosOrNull is Micros for times whose zero value is none.
func MicrosOrNull(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	at := t.UnixMicro()
	return &at
}

// Truncate rounds the times down to microseconds in UTC, as the contract requires.
func Truncate(times ...*time.Time) {
	for _, t := range times {
		if !t.IsZero() {
			*t = t.UTC().Truncate(time.Microsecond)
		}
	}
}
