package telemetry

import "math"

// drop is a value that was not used.
type drop struct {
	signal string
	reason fault
}

// fault says why a value is not used.
type fault string

// The faults of values. A value with a fault is absent, and so is a sum that it belongs to: to add
// up the others would read it as zero.
const (
	faultNotFinite  fault = "not_finite" // NaN or infinite
	faultNegative   fault = "negative"
	faultIncomplete fault = "incomplete" // a histogram without its last, infinite bucket
	faultAbsent     fault = "absent"     // the source showed it before
)

// faultOf returns the fault of a value; empty: it has none.
func faultOf(value float64) fault {
	switch {
	case math.IsNaN(value) || math.IsInf(value, 0):
		return faultNotFinite
	case value < 0:
		return faultNegative
	}
	return ""
}
