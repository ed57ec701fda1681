package emulator

import "time"

// clock is emulated time: it starts with real time and runs speedup times as
// fast.
type clock struct {
	start   time.Time // real, with its monotonic reading
	speedup float64
}

func (c clock) now() time.Time {
	return c.start.Round(0).Add(time.Duration(float64(time.Since(c.start)) * c.speedup))
}

// until is the real time left to an emulated instant.
func (c clock) until(t time.Time) time.Duration { return c.real(t.Sub(c.now())) }

// real is how long an emulated duration really takes.
func (c clock) real(d time.Duration) time.Duration {
	return time.Duration(float64(d) / c.speedup)
}

// emulated is how long a real duration is in emulated time.
func (c clock) emulated(d time.Duration) time.Duration {
	return time.Duration(float64(d) * c.speedup)
}
