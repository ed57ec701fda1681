package headroom

import (
	"math"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// Name is the policy's name in configurations.
const Name = "headroom"

func init() {
	flowcontrol.Register(Name, flowcontrol.Factory{
		Default: DefaultConfig(),
		Needs: flowcontrol.Needs{Readings: true, Streams: true, Protects: true,
			UnsharedIterations: true},
		New: func(cfg flowcontrol.Config) (flowcontrol.Controller, error) {
			return policy{New(cfg)}, nil
		},
	})
}

// Controller is the policy for one pool. The package comment describes it.
type Controller struct {
	cfg    Config
	tuning Tuning
	slo    flowcontrol.SLO
	engine flowcontrol.Engine
	shared bool
	roster flowcontrol.Roster[*runner]

	// What is known of batch lines and of the engines.
	sizes lineSizes
	fit   costFit
	alone alone

	// What is known of interactive requests.
	outcomes    outcomes
	mixture     mixture
	mixedTokens mixedTokens
	// linesAnswered counts the lines that were answered since the last reading of a gateway.
	linesAnswered float64
	virtual       virtualOutcomes
	answersAlone  shares // their token times without batch lines, relative to the objective
	quiet         quiet
	// Late first tokens, and late requests by the time between their tokens.
	lateFirst, lateTokens excess
	firstForecast         forecast // of first tokens
	tokenForecast         forecast // of the time between tokens
	attribution           attribution
	budget                lateBudget
	judged                flowcontrol.Judged // since the beginning
	counted               countedUsers
	lateLines             lateLines
	first                 firstTokens
	tokens                tokenTimes
	answers               answerLengths
	// engineAnswers stands in for a gateway that does not show the lengths of answers.
	engineAnswers       engineLengths
	gatewayShowsAnswers bool
	engineFirst         engineFirstTokens
	source              source        // of counts of interactive requests
	objective           time.Duration // of first tokens; see firstObjective
	kept                float64       // of tokens, without an objective; see keptTokens
	slots               slotDemand
	kvDemand            shares  // the part of the KV cache that interactive requests want
	kvWanted            float64 // the part that hardly any request wanted more than
	kvLonger            float64 // the most that iterations take, as a multiple of alone; 0: unknown

	// What batch work may use.
	target       targetShare
	promptTokens level
	// promptShare is the part of the time that prompts of batch lines may take; 0: not known yet.
	promptShare float64
	// promptsAtOnce is the time of the prompts that an engine computes in one iteration, in
	// milliseconds. Lines with short answers end, and the next ones start, at the same time.
	promptsAtOnce spread
	packing       packing
	crowd         crowd
	// usersAnswered is the sum of what runners have answered, also those that have left.
	usersAnswered float64

	began     time.Time // when the pool got its first runner
	watched   bool      // the pool has been watched long enough; see watching
	carriedAt time.Time // when lines last ran in the pool
	carried   spread    // lines that a runner carried
	resume    resume

	// answerTimes are those of short answers, answerTokenTimes those of long ones, by their tokens.
	answerTimes, answerTokenTimes answerTimes
	tokenBound                    tokenBound
	lines                         float64 // lines that a runner may carry, by feedback
	demanded                      float64 // lines that a runner would have to carry, by deadlines

	// tooLong is since when the pool's iterations are too long on average; zero: they are not.
	tooLong time.Time
	// ownShare is the share of the requests running in the pool that are batch lines, or the share
	// of its time that their prompts take, if that is more.
	ownShare spread
	waste    waste

	ticked  time.Time                     // when Advance last did something
	granted []flowcontrol.RunnerAllowance // the last allowance's Runners
}

// New returns a controller for one pool. cfg must be valid.
func New(cfg flowcontrol.Config) *Controller {
	own := flowcontrol.OwnConfig[Config](cfg, Name)
	model, correction := cfg.Engine.CostModel, own.Tuning.Fit.MaxCorrection
	if !model.Known() {
		model = guessedModel(milliseconds(cfg.SLO.WithUsual().TPOT))
		correction = own.Tuning.Fit.MaxCorrectionUnknown
	}
	return &Controller{
		cfg: own, tuning: own.Tuning, slo: cfg.SLO, engine: cfg.Engine, shared: cfg.Shared,
		roster:        flowcontrol.Roster[*runner]{PerPool: own.PerPool},
		target:        newTargetShare(own.Tuning, cfg.SLO.Late),
		promptTokens:  newLevel(own.Tuning.PromptTokens, cfg.SLO.Late),
		fit:           newCostFit(model, correction, own.Tuning.Fit.HalfLife),
		firstForecast: forecast{allowed: own.Tuning.FirstTokens * cfg.SLO.Late},
		tokenForecast: forecast{allowed: own.Tuning.LateByPrompts * cfg.SLO.Late},
		attribution:   newAttribution(),
		budget:        lateBudget{allowed: cfg.SLO.Late},
		lateLines:     newLateLines(cfg.SLO.Late),
		first:         firstTokens{slowdown: usualSlowdown},
		tokens:        tokenTimes{room: math.Inf(1)},
		lines:         float64(own.Start),
		answers:       assumedAnswers(),
	}
}

// Name implements flowcontrol.Controller.
func (*Controller) Name() string { return Name }

// Observe implements flowcontrol.Controller.
func (c *Controller) Observe(now time.Time, o flowcontrol.Observation) (changed bool) {
	changed = c.Advance(now)
	switch o := o.(type) {
	case *flowcontrol.RunnerJoined:
		return c.join(now, o) || changed
	case *flowcontrol.RunnerLeft:
		return c.leave(o.Runner) || changed
	case *flowcontrol.Read:
		if o.Runner == "" {
			return c.readGateway(now, o.Reading) || changed
		}
	case *flowcontrol.DeadlineDemand:
		return c.demand(o.Lines) || changed
	}
	m := c.roster.Find(o.About())
	if m == nil {
		return changed
	}
	return c.observe(now, m, o) || changed
}

func (c *Controller) join(now time.Time, o *flowcontrol.RunnerJoined) bool {
	joins := newRunner(now, o.InFlight, o.Prefilling)
	joins.access = o.Access
	if !c.roster.Join(o.Runner, joins) {
		return false
	}
	if len(c.roster.Members) == 1 {
		c.ticked = now
		if c.began.IsZero() {
			c.began = now
		}
		if c.carriedAt.IsZero() {
			c.carriedAt = now.Add(-quietAfter)
		}
	}
	c.resized(len(c.roster.Members)-1, len(c.roster.Members))
	return true
}

func (c *Controller) leave(id string) bool {
	if !c.roster.Leave(id) {
		return false
	}
	c.resized(len(c.roster.Members)+1, len(c.roster.Members))
	return true
}

// demand notes the number of lines that deadlines require.
func (c *Controller) demand(lines float64) (changed bool) {
	demanded := lines / max(1, float64(len(c.roster.Members)))
	if !(demanded >= 0) || demanded == c.demanded {
		return false
	}
	c.demanded = demanded
	c.invalidate()
	return true
}

// invalidate makes the next allowance compute all grants again.
func (c *Controller) invalidate() {
	for _, m := range c.roster.Members {
		m.State.changed = true
	}
}
