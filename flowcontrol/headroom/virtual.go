package headroom

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// answerLengths holds a few lengths that stand for the answers of interactive requests, in tokens
// after the first. Each stands for the same share of them.
type answerLengths struct {
	lengths [virtualLengths]float64
	// fine are more of them, because the shortest answers are late first.
	fine [fineLengths]float64
}

const virtualLengths, fineLengths = 4, 20

// assumedAnswers stand for the answers while no histogram shows them: about those of chat.
func assumedAnswers() (a answerLengths) {
	a.lengths = [virtualLengths]float64{15, 50, 130, 350}
	for i := range a.fine {
		a.fine[i] = a.lengths[i*virtualLengths/fineLengths]
	}
	return a
}

// read takes over a histogram of the tokens of answers. All answers so far count.
func (a *answerLengths) read(buckets []flowcontrol.Bucket) {
	if len(buckets) < 2 {
		return
	}
	total := buckets[len(buckets)-1].Count
	if total < 20 {
		return
	}
	i, from, below := 0, 0.0, 0.0
	for k := range a.fine {
		rank := total * (float64(k) + 0.5) / fineLengths
		for i < len(buckets)-2 && buckets[i].Count < rank {
			from, below = buckets[i].Upper, buckets[i].Count
			i++
		}
		in := max(buckets[i].Count-below, 1e-9)
		part := min(1, (rank-below)/in)
		a.fine[k] = max(1, from+part*(buckets[i].Upper-from)-1)
	}
	const each = fineLengths / virtualLengths
	for k := range a.lengths {
		a.lengths[k] = max(2, a.fine[each*k+each/2])
	}
}

// virtualAnswers counts virtual requests on a runner: the mean time of consecutive iterations, as
// many as an answer has tokens.
type virtualAnswers struct {
	under [virtualLengths]struct{ iterations, time, alone float64 }
}

// add adds iterations that took ms on average, and would take alone without batch lines. It calls
// each for every answer that is complete.
func (v *virtualAnswers) add(
	n, ms, alone float64, lengths *[virtualLengths]float64,
	each func(mean, alone, share, length float64),
) {
	for i := range v.under {
		u := &v.under[i]
		u.iterations += n
		u.time += n * ms
		u.alone += n * alone
		if u.iterations < lengths[i] {
			continue
		}
		// All answers that end within these iterations felt the same.
		share := u.iterations / lengths[i]
		each(u.time/u.iterations, u.alone/u.iterations, share, lengths[i])
		*u = struct{ iterations, time, alone float64 }{}
	}
}

// virtualOutcomes counts virtual requests of the pool, and those of them that were late.
type virtualOutcomes struct {
	// Since the last update of levels: late because of batch lines, and late for other reasons.
	requests, late, innocent float64
	// quiet is the share that is late while there is no batch work.
	quiet  fadingShare
	excess excess

	// Shares of the last minutes.
	lateShare, innocentShare fadingShare
	// Share of real requests that were late.
	real fadingShare
	// Real requests since the last update of levels, and those that were late because of batch
	// lines.
	realRequests, realLate float64
	// mean number of interactive requests that run on a runner
	running spread
	usual   meanTime // of iterations, over the runners
}

const (
	// many is the least number of answers of a length in a reading for the differences between them
	// to count. longReading is the shortest time between readings for that where late answers are
	// counted: shorter ones show single bursts.
	many        = 1.5
	longReading = 8 * time.Second
	// fewVirtual are too few to show a distribution.
	fewVirtual    = 30
	virtualWindow = 10 * time.Minute
	realWindow    = 20 * time.Minute
	// realTrust is the weight of the virtual requests, in late requests. When so many real ones
	// that were expected to be late were in time, late virtual ones count half.
	realTrust = 4
)

// countVirtual adds iterations of a runner to its virtual answers. ms is what they took on average.
func (c *Controller) countVirtual(now time.Time, r *runner, n, ms, computed float64) {
	own := float64(r.own.lines)*c.fit.perSequence() +
		c.fit.perToken()*computed/n
	alone := max(min(ms, c.fit.perIteration()), ms-own)
	weight := 1.0
	if in := &r.interactive; c.recent(now, in.seenAt) && c.virtual.running.mean > 0 {
		weight = in.running.mean / min(1, c.virtual.running.mean)
	}
	o := &c.virtual
	took := n * ms
	o.usual.add(virtualWindow, fromMilliseconds(took/float64(len(c.roster.Members))), n, took)
	r.virtual.add(n, ms, alone, &c.answers.lengths, func(mean, alone, share, length float64) {
		// Requests come at any time, so more of them meet long iterations.
		w := min(share, 3) * weight / virtualLengths
		w = w * (mean / o.usual.mean())
		c.answersAlone.addAnswers(alone, r.gapVariance*share/max(n, 1),
			milliseconds(c.slo.TPOT), w)
		late, innocent := c.lateOf(r, n/share, share, mean, alone)
		c.judgeVirtual(now, r, share*length, late, innocent)
		late, innocent = w*late, w*innocent
		o.requests += w
		o.late += late
		o.innocent += innocent
		if c.withoutUs(now) {
			o.quiet.add(now, quietMemory, w, innocent)
		}
		o.lateShare.add(now, virtualWindow, w, late)
		o.innocentShare.add(now, virtualWindow, w, innocent)
	})
}

// lateOf returns which share of some answers of a length is late because of batch lines, and which
// anyway: those whose tokens took mean, and would have taken alone.
func (c *Controller) lateOf(
	r *runner, length, answers, mean, alone float64,
) (late, innocent float64) {
	objective, short := c.objectiveTime(), r.iterations.every < longReading
	switch {
	case answers > many && r.gapVariance > 0 && !(short && c.virtual.real.all > 0):
		// The mean hides that some met more prompts than others.
		if short {
			length *= together // it shows bursts, though
		}
		innocent = lateOfMany(length, alone, r.gapVariance, objective)
		late = lateOfMany(length, mean, r.gapVariance, objective)
		if mean > objective {
			late = 1
		}
		return max(0, late-innocent), innocent
	case alone > objective:
		return 0, 1
	case mean > objective:
		return 1, 0
	}
	return 0, 0
}

// addAnswers counts answers without batch lines whose tokens take so long on average, by the
// objective. The answers of a long reading differ by a variance.
func (s *shares) addAnswers(ms, variance, objective, weight float64) {
	deviation := math.Sqrt(together * variance)
	for _, part := range []struct{ deviations, share float64 }{
		{0, 0.84}, {1.5, 0.135}, {2.4, 0.025},
	} {
		s.add((ms+part.deviations*deviation)/max(objective, 1),
			part.share*weight)
	}
}

// updateTarget moves the target share by the virtual requests since the last call, corrected by
// the real ones.
func (c *Controller) updateTarget(now time.Time) {
	o := &c.virtual
	n, late := o.requests, o.late
	if o.real.all == 0 && !c.withoutUs(now) {
		// A router may send more to a runner because others carry batch lines.
		late += o.excess.add(o.innocent, n*innocent(&o.quiet))
	}
	o.requests, o.late, o.innocent = 0, 0, 0
	if n <= 0 || c.slo.TPOT == 0 {
		return
	}
	if all := o.real.all; all > 0 {
		real, expected := max(0, o.real.share()-c.quiet.tpot()), o.lateShare.share()
		if real < expected { // they come in bursts, from which a share can't be subtracted
			late *= (realTrust + real*all) /
				(realTrust + expected*all)
		} else {
			enough := 1 / c.slo.Late
			late += min(1, all/enough) * n * (real - expected)
		}
	}
	// Real requests count at least as much as virtual ones.
	n, late = max(n, o.realRequests), max(late, o.realLate)
	o.realRequests, o.realLate = 0, 0
	c.target.update(now, n, late)
	c.invalidate()
}

// mean returns the mean length.
func (a *answerLengths) mean() float64 {
	sum := 0.0
	for _, n := range a.lengths {
		sum += n
	}
	return sum / virtualLengths
}
