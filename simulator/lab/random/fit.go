package random

import (
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/scenario"
)

const (
	// maxLowered is the number of times that the rate of a scenario is lowered before another is
	// drawn. lowered is the share of the rate that remains each time.
	maxLowered = 6
	lowered    = 0.75
	// loosened is the factor by which objectives are loosened, once at each rate, before it is
	// lowered.
	loosened = 1.15
)

// fit sets objectives that the pool attains without batch work, and lowers the rate where it does
// not. It fills in the pool; ok is false if the scenario remains invalid.
func (d *draft) fit(pool *Pool) (ok bool, err error) {
	chosen := false
	for range maxLowered {
		if !chosen && d.objectives != Standard {
			alone, ok, err := d.alone(pool)
			if err != nil {
				return false, err
			}
			if !ok {
				if !d.lower() {
					return false, nil
				}
				continue
			}
			d.setObjectives(alone)
			chosen = true
		}
		for _, again := range []bool{false, true} {
			if again {
				if d.objectives == Standard {
					break
				}
				d.loosen()
			}
			if ok, err = d.attains(pool); ok || err != nil {
				// Bursts may have brought less than the mean, all in their pauses.
				return ok && pool.NoBatch.Interactive.Requests >= minRequests/2, err
			}
		}
		if !d.lower() {
			return false, nil
		}
	}
	return false, nil
}

// fill completes the pool from the draft.
func (d *draft) fill(pool *Pool) {
	pool.Scenario, pool.Trace, pool.Dimensions = d.scenario, d.trace, d.dimensions()
	pool.Scenario.About = d.about()
}

// attains runs the scenario without batch work.
func (d *draft) attains(pool *Pool) (ok bool, err error) {
	d.fill(pool)
	pool.Tried++
	pool.NoBatch, err = simulator.RunNoBatch(pool.Setup(), d.source.progress)
	if unfit := (*simulator.UnfitError)(nil); errors.As(err, &unfit) {
		return false, nil
	}
	return err == nil, err
}

// A pool with more than heavy of the largest load is run for a while first: a long queue takes long
// to simulate.
const (
	heavy  = 0.3
	aWhile = 5 * time.Minute
)

// alone runs the scenario without batch work and without objectives. ok is false if the pool is
// overloaded.
func (d *draft) alone(pool *Pool) (result simulator.Interactive, ok bool, err error) {
	d.scenario.Interactive.SLO = scenario.SLO{TTFT: time.Hour, TPOT: time.Hour, Attainment: 0.97}
	whole := d.scenario
	if d.rate > heavy*d.capacity && whole.Horizon > 2*aWhile {
		d.scenario = whole.Until(aWhile)
		result, ok, err = d.served(pool)
		if errors.Is(err, simulator.ErrNoRequests) { // the first burst comes later
			ok, err = true, nil
		}
		if d.scenario = whole; !ok || err != nil {
			return result, false, err
		}
	}
	return d.served(pool)
}

// served runs the scenario and reports whether its requests were served in time.
func (d *draft) served(pool *Pool) (result simulator.Interactive, ok bool, err error) {
	ok, err = d.attains(pool)
	result = pool.NoBatch.Interactive
	return result, ok && !d.overloaded(result), err
}

func (s Source) progress(share float64) error {
	if s.Progress == nil {
		return nil
	}
	return s.Progress(share)
}

// longestTTFT bounds first tokens, and objectives for them, in milliseconds: nobody promises more
// than a minute.
const longestTTFT = 60_000

// overloaded reports whether requests wait much longer than their own prompts take, or were not
// served. A loose objective would make a scenario of it that no operator runs.
func (d *draft) overloaded(alone simulator.Interactive) bool {
	served := alone.Requests - alone.Refused - alone.Lost
	if float64(served) < 0.997*float64(alone.Requests+alone.Undecided/2) || served == 0 {
		return true
	}
	long := d.longPrompt
	own := d.profile.CostModel.PromptToken(long)*long +
		20*d.profile.CostModel.C0
	return alone.TTFT.P99 > min(2000+2*own, longestTTFT)
}

// setObjectives sets objectives relative to the latencies without batch work.
func (d *draft) setObjectives(alone simulator.Interactive) {
	in := d.scenario.Interactive
	prompt := d.demand.prompt
	if in.Input.Median > 0 {
		prompt = in.Input.Median
	}
	// A prompt that is longer than usual may take its own time longer.
	perToken := d.profile.CostModel.PromptToken(prompt)
	d.scenario.Interactive.SLO = scenario.SLO{
		TTFT: milliseconds(min(d.slack.ttft*alone.TTFT.P99,
			max(longestTTFT, d.Distributions.TTFT.Low*alone.TTFT.P99))),
		TTFTPrompt: int(roundedUp(2*prompt, 2)),
		TTFTPer1K:  milliseconds(1000 * perToken),
		TPOT:       milliseconds(d.slack.tpot * max(alone.TPOT.P99, d.profile.CostModel.C0)),
		Attainment: 0.99,
	}
}

func (d *draft) loosen() {
	slo := &d.scenario.Interactive.SLO
	slo.TTFT = milliseconds(loosened * slo.TTFT.Seconds() * 1000)
	slo.TPOT = milliseconds(loosened * slo.TPOT.Seconds() * 1000)
}

// lower lowers the rate. It returns false if too few requests would be left.
func (d *draft) lower() bool {
	rate := lowered * d.rate
	if rate < d.minRate() {
		return false
	}
	d.setRate(rate)
	return true
}

// milliseconds returns a duration with two significant digits, rounded up as an operator would.
func milliseconds(ms float64) time.Duration {
	return time.Duration(math.Round(roundedUp(ms, 2)*1000)) * time.Microsecond
}

func roundedUp(x float64, digits int) float64 {
	y := significant(x, digits)
	if y < x {
		// One unit of the last digit more.
		text := strconv.FormatFloat(y, 'e', digits-1, 64)
		exponent, _ := strconv.Atoi(text[len(text)-3:])
		unit, _ := strconv.ParseFloat("1e"+strconv.Itoa(exponent-digits+1), 64)
		y = significant(y+unit, digits)
	}
	return y
}
