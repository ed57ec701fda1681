package autoscale

import (
	"math"
	"slices"
	"time"
)

// The usual day is stored in slots.
const (
	slot  = 10 * time.Minute
	day   = 24 * time.Hour
	slots = int(day / slot)
)

// forecast predicts the rate of interactive requests. It follows the usual day (seasonal) or the
// mean of the last day (current), whichever has predicted better lately. Both are corrected by
// their difference from the rate now, and the correction fades with the time ahead.
type forecast struct {
	cfg ForecastConfig

	last     time.Time // of observe; zero: none yet
	informed bool      // a rate was observed
	guessed  bool      // level is what an earlier forecast expects, until a rate is observed
	level    float64   // smoothed requests per second now
	slot     slotMean  // of the present slot
	begun    time.Time // of the present slot

	usual    [slots]float64 // by time of day
	observed [slots]bool    // which of them are known
	seen     int            // their number
	recent   []float64      // means of the slots of the last day, the oldest first
	near     []prediction   // of coming slots, made one slot before
	far      []prediction   // of coming slots, made compareAhead slots before
	errors   []errorPair    // of the far predictions, within ForecastConfig.Judge
	overruns []float64      // actual over near prediction, less one, of a day
}

// compareAhead is the number of slots ahead for which the two predictions are compared. It is small
// enough to notice a change soon, and large enough for them to differ.
const compareAhead = 6

// slotMean is the mean over the observed part of a slot.
type slotMean struct{ sum, seconds float64 }

// prediction is the rate predicted for a slot.
type prediction struct {
	at                time.Time // begin of the slot
	seasonal, current float64
}

// errorPair holds the absolute errors of a prediction.
type errorPair struct{ seasonal, current float64 }

// observe adds the rate since its last call. NaN: unknown.
func (f *forecast) observe(now time.Time, rate float64) {
	if f.last.IsZero() {
		f.last, f.begun = now, now.Truncate(slot)
		if rate >= 0 {
			f.level, f.informed = rate, true
		}
		return
	}
	for end := f.begun.Add(slot); !now.Before(end); end = f.begun.Add(slot) {
		f.add(end.Sub(f.last), rate)
		f.last = end
		f.close()
	}
	f.add(now.Sub(f.last), rate)
	f.last = now
}

func (f *forecast) add(length time.Duration, rate float64) {
	if length <= 0 || !(rate >= 0) || math.IsInf(rate, 1) {
		return
	}
	seconds := length.Seconds()
	if !f.informed {
		f.level, f.informed = rate, true
	}
	f.level += (rate - f.level) * seconds / (seconds + f.cfg.Smooth.Seconds())
	f.slot.sum += rate * seconds
	f.slot.seconds += seconds
}

// close ends the present slot: it compares the predictions with the mean of the slot and updates
// the usual day.
func (f *forecast) close() {
	at, c := f.begun, f.slot
	f.begun, f.slot = at.Add(slot), slotMean{}
	if c.seconds > 0 {
		f.update(at, c.sum/c.seconds)
	}
	f.near = append(f.near, prediction{at: f.begun, current: f.at(f.begun.Add(slot / 2))})
	if f.seen < slots {
		return
	}
	ahead := f.begun.Add((compareAhead - 1) * slot)
	f.far = append(f.far, prediction{at: ahead, seasonal: f.seasonal(ahead.Add(slot / 2)),
		current: f.current(ahead.Add(slot / 2))})
}

func (f *forecast) update(at time.Time, mean float64) {
	if g, ok := take(&f.near, at); ok && g.current > 0 {
		f.overruns = lastOf(append(f.overruns, mean/g.current-1), slots)
	}
	if g, ok := take(&f.far, at); ok {
		f.errors = lastOf(append(f.errors, errorPair{math.Abs(g.seasonal - mean),
			math.Abs(g.current - mean)}), int(f.cfg.Judge/slot))
	}
	f.recent = lastOf(append(f.recent, mean), slots)
	i := slotOf(at)
	if !f.observed[i] {
		f.usual[i], f.observed[i] = mean, true
		f.seen++
		return
	}
	f.usual[i] += (mean - f.usual[i]) * f.cfg.Learn
}

// take removes and returns the prediction for a slot. It removes those for earlier slots too.
func take(list *[]prediction, at time.Time) (prediction, bool) {
	for len(*list) > 0 {
		p := (*list)[0]
		if p.at.After(at) {
			break
		}
		*list = (*list)[1:]
		if p.at.Equal(at) {
			return p, true
		}
	}
	return prediction{}, false
}

// lastOf returns the last n elements of a list, in its memory.
func lastOf[T any](list []T, n int) []T {
	if len(list) > n {
		copy(list, list[len(list)-n:])
		list = list[:n]
	}
	return list
}

func slotOf(t time.Time) int {
	return int(t.Sub(t.Truncate(day)) / slot)
}

// known reports whether a rate was observed, or is expected from an earlier day.
func (f *forecast) known() bool { return f.informed || f.guessed }

// useSeasonal reports whether the seasonal prediction has been the better one.
func (f *forecast) useSeasonal() bool {
	if f.seen < slots {
		return false
	}
	var seasonal, current float64
	for _, e := range f.errors {
		seasonal += e.seasonal
		current += e.current
	}
	return seasonal <= current
}

// at returns the rate predicted for an instant.
func (f *forecast) at(t time.Time) float64 {
	if f.useSeasonal() {
		return f.seasonal(t)
	}
	return f.current(t)
}

// seasonal returns the rate of the usual day, corrected by its difference from the rate now.
func (f *forecast) seasonal(t time.Time) float64 {
	usual, now := f.usualAt(t), f.usualAt(f.last)
	if now <= 0 {
		return usual
	}
	return usual * (1 + f.fade(t)*(f.level/now-1))
}

// current returns the mean rate of the last day, corrected by its difference from the rate now.
func (f *forecast) current(t time.Time) float64 {
	if len(f.recent) < slots/4 {
		return f.level // too little of the day is known for a mean
	}
	sum := 0.0
	for _, r := range f.recent {
		sum += r
	}
	mean := sum / float64(len(f.recent))
	return mean + (f.level-mean)*f.fade(t)
}

// fade returns the weight of a correction: 1 now, and nearly exp(-t/Memory) at a time ahead.
func (f *forecast) fade(t time.Time) float64 {
	x := max(0, t.Sub(f.last).Seconds()/f.cfg.Memory.Seconds())
	square := x * x
	return 1 / (1 + x + square/2 + square*x/6)
}

// usualAt returns the rate of the usual day, averaged over three slots and linear between their
// middles.
func (f *forecast) usualAt(t time.Time) float64 {
	t = t.Add(-slot / 2)
	i := slotOf(t)
	share := float64(t.Sub(t.Truncate(slot))) / float64(slot)
	smooth := func(i int) float64 {
		return (f.usual[(i+slots-1)%slots] + f.usual[i%slots] + f.usual[(i+1)%slots]) / 3
	}
	a, b := smooth(i), smooth(i+1)
	return a + (b-a)*share
}

// band returns the share to add to a near forecast so that it is rarely too low.
func (f *forecast) band() float64 {
	const enough = 12 // two hours
	if len(f.overruns) < enough {
		return f.cfg.Band
	}
	return max(f.cfg.MinBand, quantile(f.overruns, 0.95))
}

// quantile returns the least value that the given share of the list does not exceed.
func quantile(list []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}

// highest returns the highest rate predicted between two instants, without the band.
func (f *forecast) highest(from, to time.Time) float64 {
	top := f.at(to)
	for t := from; t.Before(to); t = t.Add(slot / 5) {
		top = max(top, f.at(t))
	}
	return top
}
