package bench

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"
)

// figure is a row of the table: one number, measured in several runs.
type figure struct {
	Benchmark string    `json:"benchmark"`
	What      string    `json:"what"`
	Unit      string    `json:"unit"` // empty: a ratio
	Values    []float64 `json:"values"`
	Goal      *goal     `json:"goal,omitempty"` // nil: only reported
	// Detail adds information, such as the two sides of a ratio.
	Detail string `json:"detail,omitempty"`
}

// goal is a bound on a figure's median.
type goal struct {
	Bound   float64 `json:"bound"`
	AtLeast bool    `json:"at_least"` // else at most
}

func atLeast(bound float64) *goal { return &goal{Bound: bound, AtLeast: true} }
func atMost(bound float64) *goal  { return &goal{Bound: bound} }

func (f figure) missed() bool {
	if f.Goal == nil {
		return false
	}
	if f.Goal.AtLeast {
		return median(f.Values) < f.Goal.Bound
	}
	return median(f.Values) > f.Goal.Bound
}

// median returns the middle value, or the mean of the two middle values.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// percentile returns the smallest value that at least the share p of all values do not exceed.
func percentile(values []float64, p float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, int(math.Ceil(p*float64(len(sorted))))-1)]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
func mebibytes(bytes int64) float64        { return float64(bytes) / (1 << 20) }

// grouped formats n with commas between thousands.
func grouped(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// number formats v with three significant digits, or with all digits before the point.
func number(v float64) string {
	switch size := math.Abs(v); {
	case size >= 100:
		return fmt.Sprintf("%.0f", v)
	case size >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}
