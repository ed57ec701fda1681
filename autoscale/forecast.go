package autoscale

import (
	"math"
	"slices"
	"time"

	"github.com/tidefill/tidefill/internal/portable"
)

// The usual day is kept in slots.
const (
	slot  = 10 * time.Minute
	day   = 24 * time.Hour
	slots = int(day / slot)
)

// forecast expects interactive traffic to come as on the usual day, drawn towards what comes now.
// Where the usual day has been the worse guide lately, it expects the mean of a day, drawn towards
// what comes now.
type forecast struct {
	cfg ForecastConfig

	last     time.Time // of observe; zero: none yet
	informed bool      // a rate was seen
	level    float64   // requests a second now
	current  slotMean
	begun    time.Time // of the current slot

	usual    [slots]float64 // by time of day
	seen     int            // slots that have been seen at all
	recent   []float64      // means of the last day's slots, the oldest first
	near     []guess        // what was said of the slots to come, a slot before
	far      []guess        // what each guide said of them, guideAhead slots before
	misses   []miss         // of the far guesses, within Judge
	overruns []float64      // actual over near guess, less one, of a day
}

// guideAhead is how many slots ahead the guides are compared: near enough to know soon, far enough
// for them to differ.
const guideAhead = 6

// slotMean is the mean over the part of a slot that was seen.
type slotMean struct{ sum, seconds float64 }

type guess struct {
	at                time.Time // the slot's begin
	seasonal, present float64
}

type miss struct{ seasonal, present float64 }

// observe takes the rate since it was last called.
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
	f.level += portable.Rounded((rate - f.level) * seconds / (seconds + f.cfg.Smooth.Seconds()))
	f.current.sum += portable.Rounded(rate * seconds)
	f.current.seconds += seconds
}

// close ends a slot: the guesses are judged and the usual day learns.
func (f *forecast) close() {
	at, c := f.begun, f.current
	f.begun, f.current = at.Add(slot), slotMean{}
	if c.seconds > 0 {
		f.learn(at, c.sum/c.seconds)
	}
	f.near = append(f.near, guess{at: f.begun, present: f.at(f.begun.Add(slot / 2))})
	if f.seen < slots {
		return
	}
	ahead := f.begun.Add((guideAhead - 1) * slot)
	f.far = append(f.far, guess{at: ahead, seasonal: f.seasonal(ahead.Add(slot / 2)),
		present: f.present(ahead.Add(slot / 2))})
}

func (f *forecast) learn(at time.Time, mean float64) {
	if g, ok := take(&f.near, at); ok && g.present > 0 {
		f.overruns = keep(append(f.overruns, mean/g.present-1), slots)
	}
	if g, ok := take(&f.far, at); ok {
		f.misses = keep(append(f.misses, miss{math.Abs(g.seasonal - mean), math.Abs(
			g.present - mean)}), int(f.cfg.Judge/slot))
	}
	f.recent = keep(append(f.recent, mean), slots)
	i := slotOf(at)
	if f.seen < slots {
		f.usual[i] = mean
		f.seen++
		return
	}
	f.usual[i] += portable.Rounded((mean - f.usual[i]) * f.cfg.Learn)
}

// take removes the guess about a slot, and those about earlier ones.
func take(guesses *[]guess, at time.Time) (guess, bool) {
	for len(*guesses) > 0 {
		g := (*guesses)[0]
		if g.at.After(at) {
			break
		}
		*guesses = (*guesses)[1:]
		if g.at.Equal(at) {
			return g, true
		}
	}
	return guess{}, false
}

func keep[T any](list []T, most int) []T {
	if len(list) > most {
		copy(list, list[len(list)-most:])
		list = list[:most]
	}
	return list
}

func slotOf(t time.Time) int {
	return int(t.Sub(t.Truncate(day)) / slot)
}

// known says whether any rate was ever seen.
func (f *forecast) known() bool { return f.informed }

// useSeason says whether the usual day is the better guide.
func (f *forecast) useSeason() bool {
	if f.seen < slots {
		return false
	}
	var seasonal, present float64
	for _, m := range f.misses {
		seasonal += m.seasonal
		present += m.present
	}
	return seasonal <= present
}

// at is the rate expected at an instant.
func (f *forecast) at(t time.Time) float64 {
	if f.useSeason() {
		return f.seasonal(t)
	}
	return f.present(t)
}

// seasonal is the usual day, drawn to the present by as much as it is off now.
func (f *forecast) seasonal(t time.Time) float64 {
	usual, now := f.usually(t), f.usually(f.last)
	if now <= 0 {
		return usual
	}
	return usual * (1 + portable.Rounded(f.fade(t)*(f.level/now-1)))
}

// present is the mean of a day, drawn to the present by as much as it is off now.
func (f *forecast) present(t time.Time) float64 {
	if len(f.recent) < slots/4 {
		return f.level // too little is known of the day to expect anything else
	}
	sum := 0.0
	for _, r := range f.recent {
		sum += r
	}
	mean := sum / float64(len(f.recent))
	return mean + portable.Rounded((f.level-mean)*f.fade(t))
}

// fade is 1 now and falls with the time from now, close to exponentially.
func (f *forecast) fade(t time.Time) float64 {
	x := max(0, t.Sub(f.last).Seconds()/f.cfg.Memory.Seconds())
	square := portable.Rounded(x * x)
	return 1 / (1 + x + portable.Rounded(square/2) + portable.Rounded(square*x/6))
}

// usually is the usual day's rate, over three slots and linear between their middles.
func (f *forecast) usually(t time.Time) float64 {
	t = t.Add(-slot / 2)
	i := slotOf(t)
	share := float64(t.Sub(t.Truncate(slot))) / float64(slot)
	smooth := func(i int) float64 {
		return (f.usual[(i+slots-1)%slots] + f.usual[i%slots] + f.usual[(i+1)%slots]) / 3
	}
	a, b := smooth(i), smooth(i+1)
	return a + portable.Rounded((b-a)*share)
}

// band is the share to be added to the forecast of the near future for it to be too low only now
// and then.
func (f *forecast) band() float64 {
	const enough = 12 // two hours
	if len(f.overruns) < enough {
		return f.cfg.Band
	}
	return max(f.cfg.BandLeast, quantile(f.overruns, 0.95))
}

// quantile is the least value that the given share of the list does not exceed.
func quantile(list []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[max(0, int(math.Ceil(share*float64(len(sorted))))-1)]
}

// most is the highest rate expected from one instant to another, without the band.
func (f *forecast) most(from, to time.Time) float64 {
	top := f.at(to)
	for t := from; t.Before(to); t = t.Add(slot / 5) {
		top = max(top, f.at(t))
	}
	return top
}
