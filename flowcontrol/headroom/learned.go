package headroom

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// learnedVersion is the version of the form of learned. It changes when a field gets another
// meaning; new fields are zero in older states.
const learnedVersion = 1

// learned is what a controller hands over. It has what takes minutes to learn, and not what a
// second shows, such as the present load. Times are in seconds before it was made.
type learned struct {
	Version int             `json:"version"`
	Under   learnedSettings `json:"under"`
	// Lines is the number of lines that a runner carried and may carry.
	Lines float64 `json:"lines"`
	// Known is the time for which the pool has been known, in seconds.
	Known float64 `json:"known"`
	// Gateway and Metrics report whether these showed users.
	Gateway bool `json:"gateway"`
	Metrics bool `json:"metrics"`

	// Of batch lines and of the engines.
	Fit         learnedFit    `json:"fit"`
	Sizes       learnedSizes  `json:"sizes"`
	Alone       float64       `json:"alone"` // milliseconds
	AloneAge    float64       `json:"alone_age"`
	AloneShares learnedShares `json:"alone_shares"`
	AnswerTime  learnedBest   `json:"answer_time"`
	TokenTime   learnedBest   `json:"token_time"`
	PromptTime  learnedBest   `json:"prompt_time"`

	// Of interactive requests.
	Quiet         learnedQuiet      `json:"quiet"`
	Virtual       learnedVirtual    `json:"virtual"`
	FirstForecast learnedCount      `json:"first_forecast"`
	TokenForecast learnedCount      `json:"token_forecast"`
	Budget        learnedBudget     `json:"budget"`
	LateLines     learnedLevel      `json:"late_lines"`
	First         learnedShares     `json:"first"`
	Prompt        learnedCount      `json:"prompt"` // mean tokens, and requests, of a reading
	TokenTimes    learnedTokenTimes `json:"token_times"`
	Answers       []float64         `json:"answers"`
	FineAnswers   []float64         `json:"fine_answers"`
	Slots         learnedShares     `json:"slots"`
	KV            learnedShares     `json:"kv"`

	// What batch work may use.
	Prefill learnedLevel   `json:"prefill"`
	Decode  learnedLevel   `json:"decode"`
	Prompts learnedLevel   `json:"prompts"`
	Waste   learnedCount   `json:"waste"` // tokens answered, and wasted
	Packing learnedPacking `json:"packing"`
}

// learnedSettings are the settings under which the rest was learned.
type learnedSettings struct {
	SLO    flowcontrol.SLO    `json:"slo"`
	Engine flowcontrol.Engine `json:"engine"`
	Shared bool               `json:"shared"`
}

func (c *Controller) settings() learnedSettings {
	return learnedSettings{SLO: c.slo, Engine: c.engine, Shared: c.shared}
}

// policy is the controller of the policy headroom itself. Those that compute grants of their own
// from a Controller begin anew, since nothing would hold them back.
type policy struct{ *Controller }

var _ flowcontrol.Learner = policy{}

// Learned implements flowcontrol.Learner. Nothing is known of a pool before its first line may
// start.
func (c policy) Learned(now time.Time) []byte {
	if len(c.roster.Members) == 0 || c.resume.pending != nil ||
		!c.watched && c.carriedAt.Before(c.began) {
		return nil
	}
	text, err := json.Marshal(c.learned(now))
	if err != nil { // a figure is no number
		return nil
	}
	return text
}

// Learn implements flowcontrol.Learner.
func (c policy) Learn(now time.Time, text []byte, age time.Duration) error {
	var l learned
	if len(text) > flowcontrol.MaxLearned {
		return fmt.Errorf("it has %d bytes, want at most %d", len(text), flowcontrol.MaxLearned)
	}
	var of struct{ Version int }
	if err := json.Unmarshal(text, &of); err != nil {
		return fmt.Errorf("it is damaged: %w", err)
	}
	if of.Version != learnedVersion {
		return fmt.Errorf("it has version %d, and this release knows %d", of.Version,
			learnedVersion)
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return fmt.Errorf("it is damaged: %w", err)
	}
	if !l.valid() {
		return errors.New("it is damaged: a figure is out of range")
	}
	age = min(max(age, 0), longestAge)
	c.carriedAt = now.Add(-age)
	c.resume.pending, c.resume.since, c.resume.age = &l, now, age
	if age > resumeWithin || !c.shared || c.target.fixed() {
		c.takeOver(now) // nothing to wait for, or the pool is watched as a new one
	}
	return nil
}

// learned collects what is known now.
func (c *Controller) learned(now time.Time) learned {
	l := learned{
		Version: learnedVersion, Under: c.settings(),
		Lines: min(c.lines, max(c.carried.mean, float64(c.cfg.Start))),
		Known: c.ticked.Sub(c.began).Seconds(), Gateway: !c.source.gateway.IsZero(),
		Fit: learnedFit{c.fit.factor, c.fit.covariance}, Sizes: c.sizes.learned(),
		Alone: c.alone.iteration.value, AloneAge: c.alone.iteration.age,
		AloneShares:   c.alone.shares.learned(now),
		AnswerTime:    learnedBest{c.answerTimes.best, since(now, c.answerTimes.bestAt)},
		TokenTime:     learnedBest{c.answerTokenTimes.best, since(now, c.answerTokenTimes.bestAt)},
		PromptTime:    learnedBest{c.tokenBound.ms, since(now, c.tokenBound.at)},
		Quiet:         c.quiet.learned(now),
		Virtual:       c.virtual.learned(now),
		FirstForecast: c.firstForecast.learned(now), TokenForecast: c.tokenForecast.learned(now),
		Budget: c.budget.learned(now), LateLines: c.lateLines.level.learned(),
		First: c.first.alone.learned(now),
		Prompt: learnedCount{c.first.prompts.tokens.mean, c.first.prompts.count.mean,
			since(now, c.first.prompts.tokens.at)},
		TokenTimes: c.tokens.learned(now),
		Answers:    c.answers.lengths[:], FineAnswers: c.answers.fine[:],
		Slots: c.slots.seen.learned(now), KV: c.kvDemand.learned(now),
		Prefill: c.target.prefill.learned(), Decode: c.target.decode.learned(),
		Prompts: c.promptTokens.learned(),
		Waste:   learnedCount{All: c.waste.answered, Some: c.waste.wasted},
		Packing: c.learnedPacking(now),
	}
	for _, m := range c.roster.Members {
		l.Metrics = l.Metrics || !m.State.interactive.seenAt.IsZero()
	}
	return l
}

// since returns the time since at, in seconds; 0 if at is zero.
func since(now, at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return max(0, now.Sub(at).Seconds())
}
