package humanize

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

var errPeriod = errors.New("it is no time such as 10m, 24h or 7d")

// ParsePeriod reads a time as Go writes durations, which may begin with a number of days: 90m, 24h,
// 7d, 1d12h.
func ParsePeriod(text string) (time.Duration, error) {
	rest, days := text, 0
	if before, after, found := strings.Cut(text, "d"); found {
		n, err := strconv.ParseUint(before, 10, 16)
		if err != nil {
			return 0, errPeriod
		}
		rest, days = after, int(n)
		if rest == "" {
			rest = "0"
		}
	}
	d, err := time.ParseDuration(rest)
	if err != nil {
		return 0, errPeriod
	}
	return time.Duration(days)*24*time.Hour + d, nil
}

// Period returns a time in words, in the largest unit that divides it: 7 days, 36 hours, 1 hour.
func Period(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		noun string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		if n := int(d / unit.of); n > 1 && d%unit.of == 0 || n == 1 && d == unit.of {
			if unit.noun == "day" && n == 1 {
				continue // 24 hours
			}
			return Count(n, unit.noun)
		}
	}
	return Count(int(d.Seconds()), "second")
}

// Short returns a number in three digits or so: 950, 12.4 k, 3.1 M.
func Short(n int64) string {
	units := []string{"k", "M", "G", "T"}
	if n < 1000 {
		return fmt.Sprint(n)
	}
	x, unit := float64(n)/1000, 0
	for x >= 999.95 && unit < len(units)-1 {
		x, unit = x/1000, unit+1
	}
	return fmt.Sprintf("%.1f %s", x, units[unit])
}
