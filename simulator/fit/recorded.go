package fit

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"

	"github.com/tidefill/tidefill/internal/recording"
)

// RecordingReader makes observations of a daemon's recording. Streamed lines show the time of a
// runner's iterations. Readings show the number of requests that ran, of the tokens that they held,
// and of the prompt tokens that were computed meanwhile. So an observation is some seconds of
// iterations: their time is as accurate as that of one, what they computed is a mean.
type RecordingReader struct {
	runners map[int]*recordedRunner
	end     float64
	prompts float64 // computed tokens of our lines' prompts
	lines   int     // lines with computed prompt tokens
}

// recordedRunner is what a recording has about one runner, in order of time.
type recordedRunner struct {
	gaps     []recording.Gaps
	gapsAt   []float64
	readings []recordedReading
}

// recordedReading is a reading with all that an observation needs.
type recordedReading struct{ at, running, context, prefilled, kvTokens float64 }

const (
	// windowSeconds is the time that an observation spans, in seconds. Readings a second apart
	// locate a prompt to half a second, which is an eighth of it.
	windowSeconds = 4.0
	// maxReportGap is the longest time that a report of token gaps may cover, in seconds: the
	// daemon makes one a second.
	maxReportGap = 2.0
	// maxReadingGap is the longest time between readings for which it is known what came between,
	// in seconds.
	maxReadingGap = 3.0
)

// Add reads the next entry.
func (r *RecordingReader) Add(e recording.Entry) {
	if r.runners == nil {
		r.runners = map[int]*recordedRunner{}
	}
	r.end = e.At
	of := func(id int) *recordedRunner {
		if r.runners[id] == nil {
			r.runners[id] = &recordedRunner{}
		}
		return r.runners[id]
	}
	switch {
	case e.Line != nil && e.Line.Prompt > e.Line.Cached:
		r.prompts, r.lines = r.prompts+float64(e.Line.Prompt-e.Line.Cached), r.lines+1
	case e.Gaps != nil:
		x := of(e.Gaps.Runner)
		x.gaps, x.gapsAt = append(x.gaps, *e.Gaps), append(x.gapsAt, e.At)
	case e.Reading != nil && e.Reading.Source == "metrics" && e.Reading.Runner > 0:
		m := e.Reading
		if !m.Running.Known() || !m.KVUsed.Known() || !m.KVTokens.Known() ||
			!m.PromptTokens.Known() || !m.Age.Known() {
			return
		}
		prefilled := float64(m.PromptTokens)
		if m.CachedTokens.Known() {
			prefilled -= float64(m.CachedTokens)
		}
		x := of(m.Runner)
		at := e.At - float64(m.Age)
		if n := len(x.readings); n > 0 && at <= x.readings[n-1].at {
			return // it is stuck
		}
		x.readings = append(x.readings, recordedReading{at, float64(m.Running),
			float64(m.KVUsed) * float64(m.KVTokens), prefilled, float64(m.KVTokens)})
	}
}

// Observations returns the observations, or an error if they are not sufficient for a fit.
func (r *RecordingReader) Observations() (Observations, error) {
	obs := Observations{Ahead: AheadNone, Context: ContextRecorded}
	gaps := 0
	for _, id := range slices.Sorted(maps.Keys(r.runners)) {
		gaps += len(r.runners[id].gaps)
		r.observe(&obs, id, r.runners[id])
	}
	switch {
	case gaps == 0:
		return obs, errors.New(
			"the recording has no token gaps, so the time of iterations is not known: record " +
				"with a policy that streams lines, such as headroom")
	case len(obs.All) == 0:
		return obs, errors.New(
			"no reading of the recording has running requests, KV cache and prompt tokens while " +
				"lines were streamed; check the daemon's log for what it reads from the runners")
	}
	obs.thin()
	return obs, nil
}

// observe sums up reports of gaps until they span a window.
func (r *RecordingReader) observe(obs *Observations, id int, x *recordedRunner) {
	from, before, count, took := 0.0, -maxReportGap, 0, 0.0
	number := int64(0)
	for i, g := range x.gaps {
		at := x.gapsAt[i]
		if at-before > maxReportGap {
			from, count, took = at, 0, 0 // when its first gap began isn't known
		} else {
			count, took = count+g.Count, took+g.Took
		}
		before = at
		if at-from < windowSeconds {
			continue
		}
		if o, kv, running, ok := x.window(from, at, took/float64(max(1, count))); ok {
			number++
			if o.Work.Prefill > 0 {
				o.Work.Chunks = max(1, int(float64(o.Work.Prefill)/r.meanPrompt()+0.5))
			}
			o.Run, o.Number = fmt.Sprint(id), number
			o.At, o.Length = int64(from*1e6), int64(r.end*1e6)
			obs.All = append(obs.All, o)
			obs.Exact++
			obs.KVTokens = max(obs.KVTokens, int(kv))
			obs.MaxSeqs = max(obs.MaxSeqs, int(running))
		}
		from, count, took = at, 0, 0
	}
	if number > 0 {
		obs.Runs++
	}
}

// meanPrompt estimates the tokens of a prefill chunk from our own lines. Interactive prompts are
// not recorded one by one.
func (r *RecordingReader) meanPrompt() float64 {
	if r.lines == 0 {
		return 1000
	}
	return max(1, r.prompts/float64(r.lines))
}

// window returns the observation of a period in which iterations took mean seconds each.
func (x *recordedRunner) window(
	from, to, mean float64,
) (o Observation, kvTokens, running float64, ok bool) {
	first, last := x.at(from), x.at(to)
	// a restart resets the counter
	if mean <= 0 || first == nil || last == nil || last.prefilled < first.prefilled {
		return o, 0, 0, false
	}
	const points = 8
	held := 0.0
	for i := range points {
		r := x.at(from + (to-from)*(float64(i)+0.5)/points)
		if r == nil {
			return o, 0, 0, false
		}
		running, held = running+r.running/points, held+r.context/points
	}
	steps := int((to-from)/mean + 0.5)
	o = Observation{
		Steps: steps, Counted: true, Time: 1000 * mean * float64(steps),
		Work: Work{Decoding: int(running + 0.5), Context: held,
			Prefill: int(last.prefilled - first.prefilled + 0.5)},
	}
	return o, last.kvTokens, running, steps > 0 && o.Work.Decoding > 0
}

// at interpolates the readings at a time; nil: they are too far apart.
func (x *recordedRunner) at(at float64) *recordedReading {
	i := sort.Search(len(x.readings), func(i int) bool { return x.readings[i].at >= at })
	if i == 0 || i == len(x.readings) || x.readings[i].at-x.readings[i-1].at > maxReadingGap {
		return nil
	}
	a, b := x.readings[i-1], x.readings[i]
	share := (at - a.at) / (b.at - a.at)
	between := func(a, b float64) float64 { return a + share*(b-a) }
	if b.prefilled < a.prefilled {
		return nil
	}
	return &recordedReading{at, between(a.running, b.running), between(a.context, b.context),
		between(a.prefilled, b.prefilled), b.kvTokens}
}
