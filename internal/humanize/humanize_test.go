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

func TestRelative(t *testing.T) {
	now := time.Unix(1_800_000_000, 500)
	for d, want := range map[time.Duration]string{
		0: "0s ago", -59 * time.Second: "59s ago", 119 * time.Second: "in 119s",
		-3*time.Minute - 20*time.Second: "3m ago", 47 * time.Hour: "in 47h",
		-5 * 24 * time.Hour: "5d ago",
	} {
		if got := Relative(now.Add(d).Unix(), now); got != want {
			t.Errorf("Relative(now + %v) = %q, want %q", d, got, want)
		}
	}
	if got := Relative(0, now); got != "-" {
		t.Errorf("Relative of no time is %q", got)
	}
}
