package humanize

import (
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		400 * time.Millisecond: "0s", 59 * time.Second: "59s", 185 * time.Second: "3m05s",
		7620 * time.Second: "2h07m", 76 * time.Hour: "3d4h",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 lines", 1: "1 line", 999: "999 lines",
		1000: "1,000 lines", 1234567: "1,234,567 lines"} {
		if got := Count(n, "line"); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}
