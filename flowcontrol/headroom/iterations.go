package headroom

import (
	"time"
)

// iterations measures the iterations of a runner and accounts for the time that they take. Times
// are in milliseconds.
type iterations struct {
	seenAt time.Time // of the last token gaps; zero: none
	// all is the mean over Pace.Window, base the same without the prompts of batch lines.
	all, base   meanTime
	fromMetrics bool          // the gaps are those of all requests, as the engine counts them
	streamed    float64       // time of lines' gaps since the last reading of metrics
	rare        bool          // lines' gaps cover too little of the time; metrics show it all
	every       time.Duration // between two readings of them
	quietAt     time.Time     // of the last gaps without such a prompt
	promptAt    time.Time     // when a stream last showed that a prompt is computed

	// Measurements with and without prompts of batch lines that the fit has not used yet.
	quiet, busy measurement

	credit    float64 // time saved for prompts at seenAt
	accounted float64 // ownLoad.computed up to which prompts are accounted for
}

// measurement is some iterations, the time that they took together, and the prompt tokens of batch
// lines that were computed in them.
type measurement struct{ iterations, time, prompted float64 }

const (
	// rarely is the part of the time below which lines' gaps are not representative: lines of a few
	// tokens decode in between the prompts of others.
	rarely = 0.5
	// maxSilence is the time since the last token gaps for which iterations count as if they went
	// on as before. After that nothing decodes there, or the runner hangs.
	maxSilence = 2 * time.Second
	// fitAfter is the least time that a measurement of the fit covers. A prompt is known to be
	// computed a moment after its iterations were reported, so short times mistake what belongs
	// together.
	fitAfter = 5 * time.Second
)

// gaps adds n iterations that took ms milliseconds, as seen in token gaps, and returns the time
// that they account for; false if no time has passed. target is the iteration time to keep to. If
// several streams were counted, they saw the same iterations, which shows in more time than has
// passed.
func (it *iterations) gaps(
	now time.Time, n, ms, target float64, own *ownLoad, fit *costFit, cfg Pace,
) (period time.Duration, ok bool) {
	since := milliseconds(it.silence())
	if !it.seenAt.IsZero() {
		since = min(since, milliseconds(now.Sub(it.seenAt)))
	}
	if since <= 0 {
		return 0, false
	}
	elapsed := ms
	if ms > 1.5*since { // a report may include a gap or two from before the last
		n, ms, elapsed = n*since/ms, since, since
	} else if !it.seenAt.IsZero() && now.Sub(it.seenAt) <= it.silence() {
		elapsed = max(ms, since)
	}
	computed := own.computed - it.accounted
	if now.Sub(it.seenAt) > it.silence() {
		computed = 0 // in a time without gaps
	}
	covered := ms / elapsed
	if covered > 0.9 { // reports do not start where gaps do
		covered, elapsed = 1, ms
	}
	token := fit.perToken()
	quiet := computed == 0 && own.prefilling == 0
	if quiet {
		it.quietAt = now
	}
	// The base is measured while no prompt of a batch line is computed. If that has not happened
	// for a window, the cost of the prompts is subtracted, as the cost model has it. Always doing
	// so would let a wrong model confirm itself. A prompt is known to be computed only after its
	// time was reported, so a single rest may be negative.
	if quiet || now.Sub(it.quietAt) > cfg.Window {
		it.base.add(cfg.Window, fromMilliseconds(ms), n,
			ms-covered*token*computed)
	}
	// No batch line decoded in the rest of the period, so its iterations are estimated from the
	// base and from the prompts of batch lines.
	count := n + max(0, elapsed-ms-(1-covered)*token*computed)/it.atBase(fit)
	it.all.add(cfg.Window, fromMilliseconds(elapsed), count, elapsed)

	// The measurement replaces what prompts() has assumed since the last report.
	it.credit += count*target - elapsed
	most := milliseconds(cfg.MaxCredit)
	if it.promptsUnseen(now) { // what was saved may pay for those that are computed already
		most += float64(own.prefilling) * token * target / it.atBase(fit)
	}
	it.credit = min(max(it.credit, -milliseconds(cfg.MaxDebt)), most)
	it.seenAt, it.accounted = now, own.computed

	m := &it.busy
	if quiet {
		m = &it.quiet
	}
	m.iterations += count
	m.time += elapsed
	m.prompted += computed
	return fromMilliseconds(elapsed), true
}

// promptsUnseen reports whether only metrics show which prompts of lines are computed, not streams.
func (it *iterations) promptsUnseen(now time.Time) bool {
	return it.fromMetrics && (it.promptAt.IsZero() || now.Sub(it.promptAt) > it.silence())
}

// silence is the time since the last gaps for which iterations count as if they went on as before.
func (it *iterations) silence() time.Duration {
	return max(maxSilence, it.every*5/2)
}

// useMetrics reports whether a reading of an engine's token gaps is to be used, which covers a
// period, in place of those of lines.
func (it *iterations) useMetrics(now time.Time, period time.Duration) bool {
	it.rare = it.streamed < rarely*milliseconds(period)
	it.streamed = 0
	return it.rare || it.fromMetrics || now.Sub(it.seenAt) > maxSilence
}

// measured returns a measurement for the fit once it covers enough time. Times with prompts of
// batch lines and times without are measured apart: pacing keeps the mean of both at the target,
// whatever a prompt costs, so that mean shows nothing about the cost.
func (it *iterations) measured() (m measurement, ok bool) {
	for _, of := range []*measurement{&it.quiet, &it.busy} {
		if fromMilliseconds(of.time) >= fitAfter {
			m, *of = *of, measurement{}
			return m, true
		}
	}
	return m, false
}

// unstreamed adds an iteration time that was estimated without token gaps. It counts half, because
// it is late and inexact.
func (it *iterations) unstreamed(ms float64, period time.Duration, cfg Pace) {
	count := milliseconds(period) / ms / 2
	time := count * ms
	it.all.add(cfg.Window, period/2, count, time)
	it.base.add(cfg.Window, period/2, count, time)
}

// atBase returns the time of an iteration without prompts of batch lines, in milliseconds.
func (it *iterations) atBase(fit *costFit) float64 {
	if base := it.base.mean(); base > 0 {
		return max(base, fit.perIteration()/2)
	}
	return max(1, fit.perIteration())
}

// prompts returns the number of waiting prompt tokens below which another line may start, at most
// limit, and when that number grows. It keeps iterations at the target on average: iterations
// shorter than the target add credit, and prompts use it. So prompts are spread evenly over time,
// and none starts until there is credit for it. chunk is the greatest number of tokens that an
// iteration computes; 0: unknown.
func (it *iterations) prompts(
	now time.Time, limit, unseen, target, chunk float64, own *ownLoad, fit *costFit, cfg Pace,
) (tokens float64, more time.Time) {
	base, token := it.atBase(fit), fit.perToken()
	silence := now.Sub(it.seenAt)
	if it.seenAt.IsZero() || silence > it.silence() {
		// without recent measurements only the number of tokens is limited
		return limit + unseen, time.Time{}
	}
	if chunk > 0 && base+token*chunk <= target {
		if it.promptsUnseen(now) {
			limit += unseen
		}
		return limit, time.Time{} // no prompt can make iterations too long
	}
	// price is the credit that a token uses: its time, and the credit not earned in that time.
	price := token * target / base
	earn := target/base - 1 // per millisecond
	since := milliseconds(silence) * earn
	credit := it.credit + since - (own.computed-it.accounted)*price
	owed, most := float64(own.prefilling)*price, milliseconds(cfg.MaxCredit)
	if it.promptsUnseen(now) { // some may be computed already
		if credit = min(credit, owed+most); credit > owed {
			return min(credit/price, limit+since/price), time.Time{}
		}
	} else if credit = min(credit, most); credit > owed {
		return min(credit/price, limit), time.Time{}
	}
	end := it.seenAt.Add(it.silence() + 1)
	if earn > 0 {
		if wait := fromMilliseconds((owed - credit) / earn); wait < end.Sub(now) {
			end = now.Add(max(wait, 5*time.Millisecond))
		}
	}
	return max(0, credit/price), end
}
