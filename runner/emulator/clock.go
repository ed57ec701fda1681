package emulator

import "time"

// clock is emulated time: it starts with real time and runs speedup times as fast.
type clock struct {
	start   time.Time // real, with its monotonic reading
	speedup float64
}

func (c clock) now() time.Time {
	return c.start.Round(0).Add(time.Duration(float64(time.Since(c.start)) * c.speedup))
}

// until returns the real time left to an emulated time.
func (c clock) until(t time.Time) time.Duration { return c.real(t.Sub(c.now())) }

// real converts an emulated duration to a real one.
func (c clock) real(d time.Duration) time.Duration {
	return time.Duration(float64(d) / c.speedup)
}

// emulated converts a real duration to an emulated one.
func (c clock) emulated(d time.Duration) time.Duration {
	return time.Duration(float64(d) * c.speedup)
}
