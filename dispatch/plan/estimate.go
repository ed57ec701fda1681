package plan

// outputMean is the mean number of output tokens of answers, by which work is estimated.
type outputMean struct {
	mean float64
	seen int
	// longest is the greatest mean of a job of the model that has trustedAnswers.
	longest float64
}

// outputMemory is the number of answers over which the mean is taken: several times the lines in
// flight, because of lines that start together the short answers finish first.
const outputMemory = 5000

func (o *outputMean) add(tokens int) {
	if o.seen < outputMemory {
		o.seen++
	}
	o.mean += (float64(tokens) - o.mean) / float64(o.seen)
}

// modelWeight is the weight of the mean of a model, in answers of the job. Jobs of one model may
// differ as much as a yes or no and an essay, so the weight is small.
const modelWeight = 8

const (
	// trustedAnswers is the number of answers of a job from which its estimate is no guess.
	trustedAnswers = 50
	// unseenFactor is the longest mean answer of an unseen job, as a multiple of what is assumed
	// for a first job. The longest kind of a service has answers that are longer than the mean of
	// all by about as much.
	unseenFactor = 12
	// unseenGrowth is the longest mean answer of an unseen job, as a multiple of that of the
	// model's job with the longest answers.
	unseenGrowth = 1.5
	// fewAnswers show the length of answers even if only one line of the job runs at a time.
	fewAnswers = 8
	// unseenShare is the share of their limit that the answers of an unseen job may reach. Limits
	// are set with a margin.
	unseenShare = 0.5
)

// ages counts the lines in flight whose tokens so far are known, and these tokens.
type ages struct{ lines, tokens int64 }

// measured reports whether the lines of the job itself have produced any tokens.
func (j *job) measured() bool { return j.output.seen > 0 || j.ages.tokens > 0 }

// expectOutput estimates the output tokens of a line of a job from the answers of the job and of
// its model, at most limit (0: none). Before any answer it is the configured number.
//
// The first answers are the short ones, so lines in flight count too, each with twice the tokens
// that it has produced. On average that is right for lines observed at a random time of their life.
// For lines that have started together it is too low at first and, if all answers are equal, twice
// too high just before they end. The estimate is the larger one of those with and without the lines
// in flight, so young lines do not lower it. It is at least the lower bound by lengths.
func (p *Planner) expectOutput(j *job, limit float64) float64 {
	expected := float64(p.cfg.Cost.OutputTokens)
	if o := p.outputs[j.key.Model]; o != nil && o.seen > 0 {
		expected = o.mean
	}
	seen := float64(j.output.seen)
	sum := expected*modelWeight + j.output.mean*seen
	expected = sum / (seen + modelWeight)
	grown := (sum + float64(2*j.ages.tokens)) / (seen + modelWeight + float64(j.ages.lines))
	expected = max(expected, grown, j.least)
	if limit > 0 {
		expected = min(expected, limit)
	}
	return expected
}

// maxOutput returns the longest mean answer of a job, in tokens, as far as is known. Jobs of one
// model may differ by a factor of hundreds. So before trustedAnswers it does not depend on what the
// model answered last.
func (p *Planner) maxOutput(j *job) float64 {
	expected := p.expectOutput(j, j.limitMean)
	if j.output.seen >= trustedAnswers {
		return expected
	}
	most := max(float64(unseenFactor*p.cfg.Cost.OutputTokens), unseenShare*j.limitMean)
	if o := p.outputs[j.key.Model]; o != nil {
		most = max(most, unseenGrowth*o.longest)
	}
	if j.limitMean > 0 {
		most = min(most, j.limitMean)
	}
	unseen := 1 - float64(j.output.seen)/trustedAnswers
	return expected + unseen*max(0, most-expected)
}

// longOutput returns the longest answer of a line in tokens, at most limit (0: none). It becomes
// what is expected once twice as many of the job's lines have ended as are in flight. Of lines that
// start together, the short answers end first.
func (p *Planner) longOutput(j *job, expected, limit float64) float64 {
	most := float64(unseenFactor * p.cfg.Cost.OutputTokens)
	if limit > 0 {
		most = min(most, limit)
	}
	unseen := max(0, 1-float64(j.output.seen)/float64(2*j.inFlight+fewAnswers))
	return expected + unseen*max(0, most-expected)
}

// updateLengths updates the ages of the lines in flight and the lower bounds of their jobs.
func (p *Planner) updateLengths() {
	for _, j := range p.jobs {
		clear(j.lengths.running)
	}
	for _, r := range p.runners {
		for i := range r.lines.lines {
			if l := &r.lines.lines[i]; l.decoding {
				l.job.lengths.running = count(l.job.lengths.running, r.lines.clock-l.since)
			}
		}
	}
	for _, j := range p.jobs {
		if j.measured() {
			j.least = j.lengths.least(j.limitMean)
		}
	}
}

// minWork returns a lower bound of the work left. Lines in flight may end at any moment, but
// their mean is no less than the lower bound.
func (p *Planner) minWork(j *job) float64 {
	c, output := p.cfg.Cost, j.least
	begun := min(float64(j.ages.lines), float64(j.lines))
	missing := max(0, begun*output-float64(j.ages.tokens))
	return max(0, float64(j.lines)-begun)*c.Work(j.promptMean, output) +
		c.OutputToken*missing
}
