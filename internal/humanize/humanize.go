// Package humanize writes numbers, sizes and durations for people, and texts of others for their
// terminals.
package humanize

import (
	"fmt"
	"strconv"
	"time"
)

// Count returns a number with its noun: "1 line", "2 lines", "50,000 lines".
func Count[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Thousands(int64(n)) + " " + noun + "s"
}

// Thousands returns a number with its digits in groups: 50,000.
func Thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}

// Bytes returns a size in bytes, KiB, MiB or GiB.
func Bytes(n int64) string {
	switch {
	case n < 1<<10:
		return Count(n, "byte")
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// Duration returns a duration to the second: 12s, 3m05s, 2h07m, 3d4h.
func Duration(d time.Duration) string {
	d = d.Round(time.Second)
	hours, minutes, seconds := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60
	switch {
	case hours >= 48:
		return fmt.Sprintf("%dd%dh", hours/24, hours%24)
	case hours > 0:
		return fmt.Sprintf("%dh%02dm", hours, minutes)
	case minutes > 0:
		return fmt.Sprintf("%dm%02ds", minutes, seconds)
	}
	return fmt.Sprintf("%ds", seconds)
}

// Instant returns a Unix time in local time. Zero: "-".
func Instant(seconds int64) string {
	if seconds == 0 {
		return "-"
	}
	return time.Unix(seconds, 0).Format("2006-01-02 15:04:05")
}

// Relative returns a Unix time as seen from now, in its largest unit: "3m ago", "in 2h". Zero: "-".
func Relative(seconds int64, now time.Time) string {
	if seconds == 0 {
		return "-"
	}
	d := time.Unix(seconds, 0).Sub(now.Truncate(time.Second))
	text := fmt.Sprintf("%ds", int(d.Abs().Seconds()))
	switch of := d.Abs(); {
	case of >= 48*time.Hour:
		text = fmt.Sprintf("%dd", int(of.Hours())/24)
	case of >= 2*time.Hour:
		text = fmt.Sprintf("%dh", int(of.Hours()))
	case of >= 2*time.Minute:
		text = fmt.Sprintf("%dm", int(of.Minutes()))
	}
	if d > 0 {
		return "in " + text
	}
	return text + " ago"
}
