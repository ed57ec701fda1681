package autoscale

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// PoolLearned is what was learned of a pool, for the fleet that takes the place of this one. It has
// a bounded size and is meant to be saved as JSON; whoever saves it adds a version. Times are
// before the pool was observed last.
type PoolLearned struct {
	Pool string `json:"pool"`
	// Age is the time since the pool was observed last.
	Age     time.Duration  `json:"age"`
	Traffic TrafficLearned `json:"traffic"`
	// Starts are the seconds that the last starts took.
	Starts []float64 `json:"starts,omitempty"`
	// Pending are the starts in progress.
	Pending []StartLearned `json:"pending,omitempty"`
	Harvest HarvestLearned `json:"harvest"`
	// Wanted are the numbers of replicas wanted lately, Since and Reduced when the first was and
	// when the pool last shrank. Nil: never.
	Wanted  []WantedLearned `json:"wanted,omitempty"`
	Since   *time.Duration  `json:"since,omitempty"`
	Reduced *time.Duration  `json:"reduced,omitempty"`
	// Infeasible lists the jobs reported as infeasible.
	Infeasible []string `json:"infeasible,omitempty"`
}

// TrafficLearned is what was learned of a pool's interactive requests. Rates are per second.
type TrafficLearned struct {
	Known bool    `json:"known"` // a rate was observed
	Level float64 `json:"level"` // smoothed rate
	// Sum of the rates of the present slot of ten minutes over Seconds.
	Sum     float64 `json:"sum"`
	Seconds float64 `json:"seconds"`
	// Usual is the usual day in slots from midnight, UTC; negative: not observed. Recent are the
	// means of the last day's slots, the oldest first.
	Usual  []float64 `json:"usual,omitempty"`
	Recent []float64 `json:"recent,omitempty"`
	// Near and Far are predictions of coming slots.
	Near []PredictionLearned `json:"near,omitempty"`
	Far  []PredictionLearned `json:"far,omitempty"`
	// Errors are the errors of past predictions. Overruns are the shares by which more came than
	// was predicted.
	Errors   []ErrorLearned `json:"errors,omitempty"`
	Overruns []float64      `json:"overruns,omitempty"`
}

// PredictionLearned is the rate predicted for a slot, counted from the present one.
type PredictionLearned struct {
	Slot     int     `json:"slot"`
	Seasonal float64 `json:"seasonal"`
	Current  float64 `json:"current"`
}

// ErrorLearned holds the absolute errors of a prediction.
type ErrorLearned struct {
	Seasonal float64 `json:"seasonal"`
	Current  float64 `json:"current"`
}

// StartLearned is a start in progress.
type StartLearned struct {
	Replica string        `json:"replica"`
	Since   time.Duration `json:"since"`
	GivenUp bool          `json:"given_up,omitempty"`
}

// HarvestLearned is what was learned of a pool's batch work.
type HarvestLearned struct {
	Share     float64 `json:"share"` // 0: nothing was measured
	Achieved  float64 `json:"achieved"`
	Predicted float64 `json:"predicted"`
	// Harvested is Pool.Harvested when the pool was observed last, Waiting the work left then.
	Harvested float64 `json:"harvested"`
	Waiting   float64 `json:"waiting"`
	// Misses are the logarithms of the errors of past predictions without a cost model, by the time
	// that they looked ahead.
	Misses [][]float64 `json:"misses,omitempty"`
}

// WantedLearned is a number of replicas that was wanted.
type WantedLearned struct {
	Ago      time.Duration `json:"ago"`
	Replicas int           `json:"replicas"`
}

const (
	// interruption is the longest time without an observation of a pool after which it goes on as
	// if nothing had happened. After a longer time the present load and numbers of replicas mean
	// nothing any more.
	interruption = 10 * time.Minute
	// maxAge is the age from which on nothing is taken over.
	maxAge = 7 * day
	// maxLearned bounds the lists whose length depends on the deployment.
	maxLearned = 1000
)

// recalled is what was learned of a pool, and when its age was that.
type recalled struct {
	PoolLearned
	at time.Time
}

func (r recalled) age(now time.Time) time.Duration { return r.Age + max(0, now.Sub(r.at)) }

// Learned returns what was learned of the pools so far, in the order of their names. It changes no
// later decision.
func (f *Fleet) Learned(now time.Time) []PoolLearned {
	var all []PoolLearned
	for id, x := range f.tracker.pools {
		l := x.learned()
		l.Pool, l.Age = id, max(0, now.Sub(x.observed))
		all = append(all, l)
	}
	for _, r := range f.tracker.recalled {
		l := r.PoolLearned
		l.Age = r.age(now)
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b PoolLearned) int { return strings.Compare(a.Pool, b.Pool) })
	return all
}

// Recall takes over what was learned of a pool, age before now, when the pool is first observed.
// What changes within minutes counts only if it is not older. The error says why nothing is taken
// over, such as damaged values; the fleet is then as if Recall had not been called.
func (f *Fleet) Recall(now time.Time, l PoolLearned, age time.Duration) error {
	l.Age += max(0, age)
	if err := l.validate(); err != nil {
		return fmt.Errorf("what was learned of the pool %.63q is not used: %w", l.Pool, err)
	}
	if f.tracker.pools[l.Pool] != nil {
		return fmt.Errorf("what was learned of the pool %q is not used: it comes too late, the "+
			"pool was observed already", l.Pool)
	}
	f.tracker.recalled[l.Pool] = recalled{l, now}
	return nil
}

func (x *trackedPool) learned() PoolLearned {
	last := x.observed
	l := PoolLearned{
		Traffic: x.forecast.learned(),
		Starts:  slices.Clone(x.starts.took[:min(len(x.starts.took), maxLearned)]),
		Harvest: HarvestLearned{Share: x.harvest.share, Achieved: x.harvest.achieved,
			Predicted: x.harvest.predicted, Harvested: x.harvest.harvested,
			Waiting: x.harvest.waiting, Misses: x.harvest.misses.learned()},
		Infeasible: slices.Clone(x.infeasible[:min(len(x.infeasible), maxLearned)]),
	}
	for _, id := range slices.Sorted(maps.Keys(x.starts.pending)) {
		if p := x.starts.pending[id]; len(l.Pending) < maxLearned {
			l.Pending = append(l.Pending, StartLearned{id, max(0, last.Sub(p.since)),
				p.givenUp})
		}
	}
	for _, w := range x.stabilizer.wanted {
		l.Wanted = append(l.Wanted, WantedLearned{last.Sub(w.at), w.replicas})
	}
	l.Wanted = l.Wanted[:min(len(l.Wanted), maxLearned)] // the highest are first
	l.Since, l.Reduced = before(last, x.stabilizer.begun), before(last, x.stabilizer.reduced)
	return l
}

func (m *misses) learned() (all [][]float64) {
	for i := range m.ahead {
		all = append(all, slices.Clone(m.ahead[i].ratios))
	}
	if !slices.ContainsFunc(all, func(ratios []float64) bool { return len(ratios) > 0 }) {
		return nil
	}
	return all
}

// before returns the time from at to last; nil: it never was.
func before(last, at time.Time) *time.Duration {
	if at.IsZero() {
		return nil
	}
	d := max(0, last.Sub(at))
	return &d
}

func (f *forecast) learned() TrafficLearned {
	l := TrafficLearned{Known: f.known(), Level: f.level, Sum: f.slot.sum, Seconds: f.slot.seconds,
		Recent: slices.Clone(f.recent), Overruns: slices.Clone(f.overruns)}
	if f.seen > 0 {
		l.Usual = make([]float64, slots)
		for i, rate := range f.usual {
			if l.Usual[i] = rate; !f.observed[i] {
				l.Usual[i] = -1
			}
		}
	}
	l.Near, l.Far = f.predictions(f.near), f.predictions(f.far)
	for _, e := range f.errors {
		l.Errors = append(l.Errors, ErrorLearned{e.seasonal, e.current})
	}
	return l
}

// predictions returns those of the present slot and of later ones.
func (f *forecast) predictions(list []prediction) (learned []PredictionLearned) {
	for _, p := range list {
		if !p.at.Before(f.begun) { // an earlier one is not looked at any more
			learned = append(learned, PredictionLearned{int(p.at.Sub(f.begun) / slot), p.seasonal,
				p.current})
		}
	}
	return learned
}

// takeOver begins the history of a pool with what was learned of it before.
func (x *trackedPool) takeOver(now time.Time, p *PoolState, l PoolLearned, age time.Duration) {
	if age > maxAge {
		return
	}
	last := now.Add(-age)
	x.forecast.takeOver(now, l.Traffic, age)
	x.starts.took = lastOf(slices.Clone(l.Starts), x.starts.cfg.Starts)
	x.harvest.takeOver(p, l.Harvest, age)
	if age > interruption {
		return
	}
	if l.Age == 0 { // no step is missing
		x.harvest.last = last
	}
	x.starts.pending = map[string]pendingStart{}
	for _, p := range l.Pending {
		x.starts.pending[p.Replica] = pendingStart{last.Add(-p.Since), p.GivenUp}
	}
	for _, w := range l.Wanted {
		x.stabilizer.wanted = append(x.stabilizer.wanted, wantedAt{last.Add(-w.Ago), w.Replicas})
	}
	x.stabilizer.begun, x.stabilizer.reduced = after(last, l.Since), after(last, l.Reduced)
	x.infeasible = slices.Clone(l.Infeasible)
}

// after undoes before.
func after(last time.Time, ago *time.Duration) time.Time {
	if ago == nil {
		return time.Time{}
	}
	return last.Add(-*ago)
}

// takeOver goes on after a short interruption. After a long one it keeps the days, and expects now
// what it predicts until a rate is observed.
func (f *forecast) takeOver(now time.Time, l TrafficLearned, age time.Duration) {
	if !l.Known {
		return
	}
	f.last = now.Add(-age)
	f.begun = f.last.Truncate(slot)
	f.level, f.informed = l.Level, true
	for i, rate := range l.Usual {
		if rate >= 0 {
			f.usual[i], f.observed[i] = rate, true
			f.seen++
		}
	}
	f.recent = lastOf(slices.Clone(l.Recent), slots)
	f.overruns = lastOf(slices.Clone(l.Overruns), slots)
	for _, e := range l.Errors {
		f.errors = append(f.errors, errorPair{e.Seasonal, e.Current})
	}
	f.errors = lastOf(f.errors, int(f.cfg.Judge/slot))
	f.near, f.far = f.predicted(l.Near), f.predicted(l.Far)
	f.slot = slotMean{l.Sum, l.Seconds}
	if age <= interruption {
		return
	}
	f.level, f.guessed, f.informed = f.at(now), true, false
	f.slot, f.near, f.far = slotMean{}, nil, nil
	f.last = time.Time{}
	if age > f.cfg.Judge {
		f.errors = nil
	}
}

func (f *forecast) predicted(learned []PredictionLearned) (list []prediction) {
	for _, p := range learned {
		list = append(list, prediction{f.begun.Add(time.Duration(p.Slot) * slot), p.Seasonal,
			p.Current})
	}
	return list
}

// takeOver keeps what was measured, less the older it is, or all of it if nothing else is known of
// the engine. The time of an interruption is not measured, because nobody may have sent lines.
func (h *harvest) takeOver(p *PoolState, l HarvestLearned, age time.Duration) {
	if l.Share == 0 {
		return
	}
	h.share, h.achieved, h.predicted = l.Share, l.Achieved, l.Predicted
	h.harvested, h.waiting = l.Harvested, l.Waiting
	for i := range min(len(l.Misses), len(missAhead)) {
		h.misses.ahead[i].ratios = lastOf(slices.Clone(l.Misses[i]), missesKept)
	}
	if age <= interruption || !p.Engine.CostModel.Known() {
		return
	}
	fade := h.cfg.Memory.Seconds() / (h.cfg.Memory.Seconds() + age.Seconds())
	h.achieved, h.predicted = h.achieved*fade, h.predicted*fade
	kept := h.share * fade
	h.share = kept + h.cfg.Share*(1-fade)
}
