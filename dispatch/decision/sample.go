package decision

import (
	"math"
	"slices"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
)

// sample is a Decision in little memory. It never changes.
type sample struct {
	at      time.Time
	shape   *shape
	totals  totals
	reasons []plan.Reason // the pool's, that of its allowance, and each runner's
	// values are columns of the pool, columns of each runner, and the terms, as shape has them.
	values []Number
}

// totals are counters since the process started. They are differences of large numbers for readers,
// so they need all digits.
type totals struct{ evicted, firsts, lateFirsts, answers, lateAnswers float64 }

// Columns of a pool.
const (
	poolInFlight = iota
	poolAllowance
	poolJobs
	poolGatewayAge
	poolFirstSource // a flowcontrol.Source
	poolFirstTokens // the first of the columns of first tokens
	poolColumns     = poolFirstTokens + firstColumns
)

// Columns of first tokens in the last minute, of a pool and of a runner.
const (
	firstCount = iota
	firstMedian
	firstP95
	firstColumns
)

// Columns of a runner.
const (
	inFlight = iota
	allowance
	prefilling
	prompt
	evicting
	open
	// Those of metrics.
	metricsAge
	running
	waiting
	kvUsed
	kvTokens
	promptRate
	cachedRate
	outputRate
	answerRate
	readTokenTime
	preemptions
	// Those of capabilities.
	capabilitiesAge
	queue
	saidKVUsed
	// Those of lines.
	answered
	shed
	broken
	streamedTokenTime
	// The first of the columns of first tokens.
	firstTokenColumns
	runnerColumns = firstTokenColumns + firstColumns
)

// shape describes the values of samples. Consecutive samples share it.
type shape struct {
	runners []string
	terms   []flowcontrol.Term // without values
	// columns of the terms that Decisions show by name; absent: the policy does not explain them
	named map[termKey]int
}

type termKey struct{ runner, name string }

func newShape(p *plan.PoolStatus, terms []flowcontrol.Term) *shape {
	s := &shape{terms: slices.Clone(terms), named: map[termKey]int{}}
	for _, r := range p.Runners {
		s.runners = append(s.runners, r.ID)
	}
	start := poolColumns + runnerColumns*len(s.runners)
	for i := range s.terms {
		s.terms[i].Value = 0
		s.named[termKey{s.terms[i].Runner, s.terms[i].Name}] = start + i
	}
	return s
}

// fits reports whether samples of the pool have this shape.
func (s *shape) fits(p *plan.PoolStatus, terms []flowcontrol.Term) bool {
	if s == nil || len(s.runners) != len(p.Runners) || len(s.terms) != len(terms) {
		return false
	}
	for i := range p.Runners {
		if s.runners[i] != p.Runners[i].ID {
			return false
		}
	}
	for i := range terms {
		if s.terms[i].Name != terms[i].Name || s.terms[i].Runner != terms[i].Runner {
			return false
		}
	}
	return true
}

// bytes returns the approximate size of a sample in memory.
func (s *sample) bytes() int {
	const fixed, reason, value = 128, 16, 4
	return fixed + reason*len(s.reasons) + value*len(s.values)
}

// sources are the names of the sources of readings.
var sources = map[flowcontrol.Source]string{flowcontrol.Metrics: "metrics",
	flowcontrol.Capabilities: "capabilities", flowcontrol.Gateway: "gateway"}

// details says what of a Decision is wanted besides the fields that all have.
type details struct{ terms, inputs bool }

// decision returns the sample as a Decision.
func (s *sample) decision(with details) Decision {
	d := Decision{
		Time:   Time{s.at},
		Reason: reasonName(s.reasons[0], "flowing"), Granted: reasonName(s.reasons[1], "none"),
		InFlight: s.values[poolInFlight], Allowance: s.values[poolAllowance],
		Jobs: s.values[poolJobs], Evicted: s.totals.evicted,
		Objective:       positive(s.term("", flowcontrol.TermObjective)),
		Configured:      positive(s.term("", flowcontrol.TermConfigured)),
		Unseen:          s.term("", flowcontrol.TermUnseen) == 1,
		Target:          positive(s.term("", flowcontrol.TermTarget)),
		Alone:           positive(s.term("", flowcontrol.TermAlone)),
		Slowdown:        s.term("", flowcontrol.TermSlowdown),
		SlowdownAllowed: s.term("", flowcontrol.TermSlowdownAllowed),
		Runners:         make([]Runner, len(s.shape.runners)),
	}
	d.WatchLeft, d.WatchOf = Unknown, positive(s.term("", flowcontrol.TermWatching))
	if d.WatchOf.Known() {
		d.WatchLeft = d.WatchOf - s.term("", flowcontrol.TermWatched)
	}
	if age := s.values[poolGatewayAge]; age.Known() {
		d.Gateway = &Gateway{Age: age, FirstTokens: s.totals.firsts,
			LateFirstTokens: s.totals.lateFirsts, Answers: s.totals.answers,
			LateAnswers: s.totals.lateAnswers}
	}
	s.addFirstTokens(&d)
	for i, name := range s.shape.runners {
		d.Runners[i] = s.runner(i, name)
		if with.inputs {
			d.Runners[i].Inputs = inputsOf(s.columns(i))
		}
	}
	if with.terms {
		s.addTerms(&d)
	}
	return d
}

// addFirstTokens adds the times of first tokens, and their limit. Where the objective is a
// slowdown, the limit follows from the policy's estimate of the present one.
func (s *sample) addFirstTokens(d *Decision) {
	d.FirstObjective = positive(s.term("", flowcontrol.TermFirstObjective))
	d.FirstAlone = Unknown
	d.FirstTokens = firstTokensOf(s.values[poolFirstTokens:],
		flowcontrol.Source(s.values[poolFirstSource]))
	if d.FirstTokens == nil || !(d.Slowdown >= 1) {
		return
	}
	d.FirstAlone = d.FirstTokens.P95 / d.Slowdown
	if !d.FirstObjective.Known() && d.SlowdownAllowed.Known() {
		d.FirstObjective = d.FirstAlone * d.SlowdownAllowed
	}
}

// firstTokensOf returns the columns of first tokens, which begin the values; nil: there were none.
func firstTokensOf(values []Number, of flowcontrol.Source) *FirstTokens {
	if !(values[firstCount] > 0) {
		return nil
	}
	return &FirstTokens{Source: sources[of], Requests: values[firstCount],
		Median: values[firstMedian], P95: values[firstP95]}
}

// tokenTimeFor is the time for which a measured token time is shown, in seconds.
const tokenTimeFor = 30

// metricsFor is the time for which a reading of metrics is preferred to one of capabilities, in
// seconds. Capabilities show less.
const metricsFor = 15

// columns returns the columns of a runner.
func (s *sample) columns(i int) []Number {
	at := poolColumns + i*runnerColumns
	return s.values[at : at+runnerColumns]
}

func (s *sample) runner(i int, name string) Runner {
	v := s.columns(i)
	r := Runner{
		Name: name, InFlight: v[inFlight], Allowance: v[allowance],
		Reason:   reasonName(s.reasons[2+i], "none"),
		Evicting: v[evicting] != 0, Open: v[open] != 0, Prompt: v[prefilling],
		PromptAllowance: v[prompt],
		Running:         s.term(name, flowcontrol.TermInteractiveRunning),
		Waiting:         s.term(name, flowcontrol.TermInteractiveWaiting),
		TokenTime:       positive(s.term(name, flowcontrol.TermTokenTime)),
	}
	if !(s.term(name, flowcontrol.TermTokenTimeAge) <= tokenTimeFor) {
		r.TokenTime = Unknown
	}
	if age := s.term(name, flowcontrol.TermLoadAge); !age.Known() {
		r.Running, r.Waiting = Unknown, Unknown // zero, as nothing was ever read
	}
	r.FirstTokens = firstTokensOf(v[firstTokenColumns:], flowcontrol.Metrics)
	r.Reading = readingOf(v)
	return r
}

// readingOf returns the last reading of a runner; nil: there is none.
func readingOf(v []Number) *Reading {
	switch {
	case v[metricsAge].Known() && !(v[metricsAge]-v[capabilitiesAge] >= metricsFor):
		return &Reading{Source: sources[flowcontrol.Metrics], Age: v[metricsAge],
			Running: v[running], Waiting: v[waiting], KVUsed: v[kvUsed]}
	case v[capabilitiesAge].Known():
		return &Reading{Source: sources[flowcontrol.Capabilities], Age: v[capabilitiesAge],
			Running: Unknown, Waiting: v[queue], KVUsed: v[saidKVUsed]}
	}
	return nil
}

// inputsOf returns what flow control was given about a runner.
func inputsOf(v []Number) *Inputs {
	in := &Inputs{Lines: Lines{Answered: v[answered], Shed: v[shed], Broken: v[broken],
		TokenTime: v[streamedTokenTime]}}
	if v[metricsAge].Known() {
		in.Metrics = &Metrics{Age: v[metricsAge], Running: v[running], Waiting: v[waiting],
			KVUsed: v[kvUsed], KVTokens: v[kvTokens], Prompt: v[promptRate],
			Cached: v[cachedRate], Output: v[outputRate], Answers: v[answerRate],
			TokenTime: v[readTokenTime], Preempted: v[preemptions]}
	}
	if v[capabilitiesAge].Known() {
		in.Capabilities = &Capabilities{Age: v[capabilitiesAge], Waiting: v[queue],
			KVUsed: v[saidKVUsed]}
	}
	return in
}

func (s *sample) addTerms(d *Decision) {
	start := poolColumns + runnerColumns*len(s.shape.runners)
	byName := make(map[string]*Runner, len(d.Runners))
	for i := range d.Runners {
		byName[d.Runners[i].Name] = &d.Runners[i]
	}
	for i, t := range s.shape.terms {
		term := Term{Name: t.Name, Value: s.values[start+i], Unit: t.Unit}
		if r := byName[t.Runner]; r != nil {
			r.Terms = append(r.Terms, term)
		} else {
			d.Terms = append(d.Terms, term)
		}
	}
}

// term returns the value of a named term of a runner or, if that is empty, of the pool.
func (s *sample) term(runner, name string) Number {
	if column, explained := s.shape.named[termKey{runner, name}]; explained {
		return s.values[column]
	}
	return Unknown
}

// positive returns a time that 0 marks as unknown.
func positive(n Number) Number {
	if n > 0 {
		return n
	}
	return Unknown
}

func reasonName(r plan.Reason, empty string) string {
	if r == "" {
		return empty
	}
	return string(r)
}

// number returns a count; unknown for a limit that is none.
func number(n int) Number {
	if n == flowcontrol.NoLimit {
		return Unknown
	}
	return Number(n)
}

func flag(b bool) Number {
	if b {
		return 1
	}
	return 0
}

// seconds returns the time since at, in seconds; unknown for the zero time.
func seconds(now, at time.Time) Number {
	if at.IsZero() {
		return Unknown
	}
	return Number(math.Round(1000*max(0, now.Sub(at).Seconds())) / 1000)
}
