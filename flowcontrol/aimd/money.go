package aimd

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/internal/faults"
)

// ReasonMoney: the money that the pool may cost per day is used up.
const ReasonMoney flowcontrol.Reason = "money"

// Money limits what the lines of a pool cost, in any currency.
type Money struct {
	// PerDay is the most that lines may cost in a day of UTC. 0: there is no limit.
	PerDay float64
	// Input and Output are the prices of a million tokens of prompts and of answers.
	Input, Output float64
}

// Validate reports every fault with the path of its field.
func (m Money) Validate() error {
	var all faults.List
	all.Within("per_day", m.PerDay, 0, math.MaxFloat32)
	all.Within("input", m.Input, 0, math.MaxFloat32)
	all.Within("output", m.Output, 0, math.MaxFloat32)
	return all.Err()
}

// cost returns the price of tokens.
func (m Money) cost(prompt, output float64) float64 {
	return (prompt*m.Input + output*m.Output) / 1e6
}

// money counts what the lines of a day have cost.
type money struct {
	cfg   Money
	day   time.Time // the beginning of the day; zero: nothing was counted
	spent float64   // by lines that have ended
	// charged is what lines in flight are expected to cost, lines their number.
	charged float64
	lines   int
}

// dayOf returns the beginning of the day, in UTC.
func dayOf(now time.Time) time.Time { return now.UTC().Truncate(24 * time.Hour) }

// nextDay returns when the next day begins.
func nextDay(now time.Time) time.Time { return dayOf(now).Add(24 * time.Hour) }

// turn begins another day.
func (m *money) turn(now time.Time) {
	if day := dayOf(now); day.After(m.day) {
		m.day, m.spent = day, 0
	}
}

// used returns what the day has cost so far, lines in flight included.
func (m *money) used(now time.Time) float64 {
	if dayOf(now).After(m.day) {
		return m.charged
	}
	return m.spent + m.charged
}

// started charges a line.
func (m *money) started(now time.Time, prompt, output float64) {
	m.turn(now)
	m.charged += m.cfg.cost(prompt, output)
	m.lines++
}

// ended replaces the charge of a line by its cost. A cost below 0 is that which was charged.
func (m *money) ended(now time.Time, cost float64) {
	m.turn(now)
	if m.lines > 0 {
		mean := m.charged / float64(m.lines)
		m.lines--
		m.charged -= mean
		if m.lines == 0 {
			m.charged = 0
		}
		if cost < 0 {
			cost = mean
		}
	}
	m.spent += max(0, cost)
}

// asCharged is the cost of a line of which nobody knows the tokens.
const asCharged = -1

// answered takes over the cost of an answer.
func (m *money) answered(now time.Time, prompt, output float64) {
	if prompt+output == 0 {
		m.ended(now, asCharged)
		return
	}
	m.ended(now, m.cfg.cost(prompt, output))
}

// spender is a controller with a limit of money. What a day has cost must outlive the process, so
// it is a Learner.
type spender struct{ *controller }

var (
	_ flowcontrol.Learner = spender{}
	_ flowcontrol.Spender = spender{}
)

// Spent implements flowcontrol.Spender.
func (c spender) Spent(now time.Time) (spent, perDay float64) {
	return c.budget.money.used(now), c.cfg.Money.PerDay
}

// learned is the form of what is kept.
type learned struct {
	Version int
	Day     string // in UTC, such as 2026-03-01
	Spent   float64
}

// learnedVersion is the version of the form.
const learnedVersion = 1

// Learned implements flowcontrol.Learner. Lines in flight count as spent: after a crash nobody
// knows their cost.
func (c spender) Learned(now time.Time) []byte {
	used := c.budget.money.used(now)
	if used == 0 {
		return nil
	}
	text, err := json.Marshal(learned{learnedVersion, dayOf(now).Format(time.DateOnly), used})
	if err != nil {
		panic(err) // it has texts and finite numbers only
	}
	return text
}

// Learn implements flowcontrol.Learner. What another day has cost does not count.
func (c spender) Learn(now time.Time, text []byte, _ time.Duration) error {
	var kept learned
	if err := json.Unmarshal(text, &kept); err != nil {
		return fmt.Errorf("what was spent is damaged: %w", err)
	}
	if kept.Version != learnedVersion {
		return fmt.Errorf("what was spent has version %d, and this release knows %d",
			kept.Version, learnedVersion)
	}
	day, err := time.Parse(time.DateOnly, kept.Day)
	if err != nil || !(kept.Spent >= 0 && kept.Spent <= math.MaxFloat32) {
		return errors.New("what was spent is damaged")
	}
	if day.Equal(dayOf(now)) {
		m := c.budget.money
		m.turn(now)
		m.spent = max(m.spent, kept.Spent)
	}
	return nil
}
