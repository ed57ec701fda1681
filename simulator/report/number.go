package report

import (
	"math"
	"strconv"
	"time"

	"github.com/tidefill/tidefill/internal/humanize"
)

// fixed formats a number with a number of digits after the point; a dash if it is not known.
func fixed(v float64, digits int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	if digits == 0 {
		return humanize.Thousands(int64(math.Round(v)))
	}
	text := strconv.FormatFloat(v, 'f', digits, 64)
	if text[0] == '-' && isZero(text[1:]) {
		return text[1:]
	}
	return text
}

func isZero(text string) bool {
	for _, c := range text {
		if c != '0' && c != '.' {
			return false
		}
	}
	return true
}

// text is the mean and, in parentheses, the worst; for a single seed, the mean alone.
func (f Figure) text(digits, seeds int) string {
	mean := fixed(float64(f.Mean), digits)
	if seeds == 1 {
		return mean
	}
	return mean + " (" + fixed(float64(f.Worst), digits) + ")"
}

func (f Figure) times(factor float64) Figure {
	return Figure{f.Mean * Number(factor), f.Worst * Number(factor)}
}

func percent(share float64) string { return fixed(100*share, 1) + " %" }

// moment formats a time of a run in seconds; a dash for 0.
func moment(seconds float64) string {
	if seconds == 0 {
		return "–"
	}
	return humanize.Duration(time.Duration(seconds * float64(time.Second)))
}

// hours formats the length of a run.
func hours(n float64) string {
	return humanize.Duration(time.Duration(n * float64(time.Hour)))
}

// Figure is the mean and the worst value over seeds.
type Figure struct {
	Mean  Number `json:"mean"`
	Worst Number `json:"worst"`
}

// Number may be unknown: NaN, which is null in JSON.
type Number float64

// Known reports whether the number is known.
func (n Number) Known() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.Known() {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(n), 'g', 10, 64), nil
}
