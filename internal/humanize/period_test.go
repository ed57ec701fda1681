package humanize

import "testing"

func TestPeriods(t *testing.T) {
	for text, want := range map[string]string{"7d": "7 days", "1d": "24 hours", "24h": "24 hours",
		"1d12h": "36 hours", "1h": "1 hour", "90m": "90 minutes", "2d0h": "2 days",
		"1m": "1 minute", "90s": "90 seconds", "168h": "7 days"} {
		d, err := ParsePeriod(text)
		if err != nil || Period(d) != want {
			t.Errorf("%s is %s (%v), want %s", text, Period(d), err, want)
		}
	}
	for _, text := range []string{"", "d", "7", "week", "-3d", "1.5d", "7d7d", "99999999d", "3d4"} {
		if d, err := ParsePeriod(text); err == nil {
			t.Errorf("%q is %v, want an error", text, d)
		}
	}
}

func TestShort(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1.0 k", 12_400_000: "12.4 M",
		999_960: "1.0 M", 1 << 50: "1125.9 T"} {
		if got := Short(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}
