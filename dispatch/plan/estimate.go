package plan

import "github.com/tidefill/tidefill/internal/portable"

// outputMean learns how many tokens the lines of a model bring, so that work can be counted before
// it is done.
type outputMean struct {
	mean float64
	seen int
}

// outputMemory is how many answers the mean looks back on once it has seen that many: several times
// what is under way at once, for of what starts together the short answers come first and the long
// ones last.
const outputMemory = 5000

func (o *outputMean) learn(tokens int) {
	if o.seen < outputMemory {
		o.seen++
	}
	o.mean += (float64(tokens) - o.mean) / float64(o.seen)
}

// asMany is how many answers of a job what is known of its model counts for: jobs of one model may
// be as different as a yes or no and an essay, so a job's own answers soon tell more.
const asMany = 8

// ages is how many tokens the lines under way have brought so far, of those of which that is known.
type ages struct{ lines, tokens int64 }

// shown says whether the job itself has told anything of how long its answers are.
func (j *job) shown() bool { return j.output.seen > 0 || j.ages.tokens > 0 }

// expectOutput is the output that a line of a job will likely bring: as those before it, of the job
// and of its model; no more than its limit. Before any was answered it is the configured number.
//
// Lines that are answered soon are the short ones, so those under way count, too: each brings as
// many tokens again as it has brought. That holds on average for lines that are met at any time of
// their life, whatever they are; where all have started together it is too little at first and, if
// all answers are alike, twice too much just before they end. While no line is older than the
// answers were long, what is young says nothing, and the answers stand. Nor is it less than the
// least that is certain.
func (p *Planner) expectOutput(j *job, limit float64) float64 {
	expected := float64(p.cfg.Cost.OutputTokens)
	if o := p.outputs[j.key.Model]; o != nil && o.seen > 0 {
		expected = o.mean
	}
	seen := float64(j.output.seen)
	told := portable.Rounded(expected*asMany) + portable.Rounded(j.output.mean*seen)
	expected = told / (seen + asMany)
	grown := (told + float64(2*j.ages.tokens)) / (seen + asMany + float64(j.ages.lines))
	expected = max(expected, grown, j.least)
	if limit > 0 {
		expected = min(expected, limit)
	}
	return expected
}

// lookAtAges notes how far the lines under way have come, and what that makes certain of their
// jobs.
func (p *Planner) lookAtAges() {
	for _, j := range p.byID {
		clear(j.lifetimes.alive)
	}
	for _, r := range p.runners {
		for i := range r.underWay.lines {
			if l := &r.underWay.lines[i]; l.decoding {
				l.job.lifetimes.alive = add(l.job.lifetimes.alive, r.underWay.clock-l.since)
			}
		}
	}
	for _, j := range p.byID {
		if j.shown() {
			j.least = j.lifetimes.least(j.limitMean)
		}
	}
}

// leastWork is what the lines left take at the least. Those under way may end at any moment, but
// not before lines bring at the least on average.
func (p *Planner) leastWork(j *job) float64 {
	c, output := p.cfg.Cost, j.least
	begun := min(float64(j.ages.lines), float64(j.lines))
	missing := max(0, portable.Rounded(begun*output)-float64(j.ages.tokens))
	return portable.Rounded(max(0, float64(j.lines)-begun)*c.Work(j.promptMean, output)) +
		portable.Rounded(c.OutputToken*missing)
}
