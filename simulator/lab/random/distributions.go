package random

import (
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// Distributions are those of all properties of a scenario. Where no source is named, nobody has
// counted how common something is: weights and shares are then guesses that give each kind enough
// pools to be seen in a study of a hundred. What is drawn may be moved afterwards, so that a run
// fits its engine and its horizon; the fields say where.
type Distributions struct {
	// Pool.

	// Runners of the pool. The skew makes half of the pools have 3 or fewer and the mean about 8:
	// most deployments of a model are small, and a large pool takes long to simulate. Pools that
	// would get more than maxRate requests have fewer, one in seven of Any.
	Runners Range
	// Profiles of engines, by their bundled names, equally likely.
	Profiles []string
	// KnownCostModel is the share of pools whose policy is configured with the engines' own cost
	// model. Otherwise each part of it is wrong by a factor from CostModelError: profiles composed
	// from timings of operators have been off by up to 1.6 from whole engines.
	KnownCostModel float64
	CostModelError Range
	// FactsWithheld is the share of pools whose policy is configured with neither limits nor a cost
	// model of the engines: none but in the families no-facts and defaults.
	FactsWithheld float64
	// ChunkBudgets are values of max_num_batched_tokens: vLLM's defaults over time are 512, 2,048
	// and 8,192; 256 is the least that engines are tuned to for short gaps between tokens.
	ChunkBudgets []int
	// MaxSeqs are values of max_num_seqs; 0: the profile's. vLLM's default is 256, and operators
	// lower it.
	MaxSeqs []int
	// FullKV is the share of pools with the profile's KV capacity. The others have a part of it
	// from KVPart: other memory shares, longer model weights, other processes on the GPU.
	FullKV float64
	KVPart Range
	// ByPriority is the share of pools whose engines order their queue by priority. It is off by
	// default in vLLM and SGLang, and on in most pools here, since who adds batch work to a pool
	// has a reason to turn it on.
	ByPriority float64
	// PrefixCaching is the share of pools with a prefix cache, which is on by default in vLLM.
	PrefixCaching float64
	// Shed is the number of waiting requests from which engines refuse batch lines; 0: never, as
	// engines do by themselves. The endpoint picker of the Gateway API inference extension takes an
	// engine with five for full by default.
	Shed []int
	// Routers are how interactive requests are routed, with their weights. Endpoint pickers go by
	// work or by prefix, proxies by requests or in turn; about as many of each.
	Routers []Weighted[scenario.Router]
	// CurrentView is the share of routers that see the present load. The view of the others is as
	// old as RouterView says, in seconds: an endpoint picker polls metrics each 50 ms to 10 s.
	CurrentView float64
	RouterView  Range

	// Interactive traffic.

	// Arrivals are the kinds of arrivals, with their weights. Bursts have the largest, since most
	// pools that broke a policy had them, and Poisson the next, as what users who know nothing of
	// each other do. Replay without a trace that fits twice into the KV cache becomes
	// Conversations, and these become Poisson where the KV cache has fewer than longRequests
	// tokens.
	Arrivals []Weighted[Arrivals]
	// Utilization is the interactive load as a share of the largest that the engines can carry by
	// their cost model: idle pools have 4 %, busy ones 80 %. For bursts that last and for days it
	// is the load at the peak. A run needs minRequests, so a third of the pools of Any, and half
	// of the idle ones, carry more than was drawn: small pools, and engines for which few requests
	// are much. The rate is at most maxRate. Pools that miss their objectives are drawn with less.
	Utilization Range
	// PeakOverMean is the rate in bursts, BurstScale their mean length in seconds, InBursts the
	// share of requests that come in them. Pools that broke the policy had bursts of 5 to 13 times
	// the mean within seconds. Since a run needs pauses, and two bursts in the mean, InBursts is
	// cut to half of 1+1/peak, and the length to half of the time that all bursts have: up to five
	// minutes of half an hour, and half a minute where bursts have 15 times the mean. Three in ten
	// lengths are cut.
	PeakOverMean Range
	BurstScale   Range
	InBursts     Range
	// DayOverMean is the rate at the busiest time of a day, over its mean: about 1.5 in the
	// published rates of a large model service, and more where users live in one time zone.
	DayOverMean Range
	// Think is the mean time to think of users in a closed loop, in seconds: from programs that
	// use an answer at once to people who read some hundred words.
	Think Range
	// Prompt and Answer are the median tokens of requests: classification of 50 tokens to documents
	// of 20,000, labels of 10 tokens to essays of 1,000. The sigmas are those of the logarithm; the
	// public conversation traces have 0.9 to 1.5 for prompts and 0.7 to 1.2 for answers. Since the
	// longest may take longestPrompt and longestAnswer of the KV cache, medians are at most a third
	// of that: 13 % and 7 %. That cuts a ninth of the prompts of Any.
	Prompt, PromptSigma Range
	Answer, AnswerSigma Range
	// OwnPrompts is the share of pools whose prompts share nothing. Of the others' prompts a part
	// from SharedPart is common to one of Groups groups: system prompts, tools, documents. Prompts
	// of a closed loop share nothing.
	OwnPrompts float64
	SharedPart Range
	Groups     Range

	// Objectives.

	// Objectives are how objectives were chosen, with their weights.
	Objectives []Weighted[Objectives]
	// TTFT and TPOT are objectives as multiples of the 99th percentile without batch work, from
	// tight to loose.
	TTFT, TPOT Range
	// MisfitTTFT and MisfitTPOT are the same for objectives that do not fit the engine: so loose
	// that nothing can be late. That is what 2 s and 100 ms are where first tokens take 50 to 200
	// ms and others 5 to 20 ms. Both are misfit in a third of the cases, and one of them in the
	// rest, the other tight.
	MisfitTTFT, MisfitTPOT Range
	// Withheld is the share of pools whose policy is not configured with the objectives: none but
	// in the families no-slo and defaults. All others are configured with just those that they are
	// judged by.
	Withheld float64

	// What a policy can observe.

	// Period of the metrics, in seconds; the jitter is up to a fifth of it. The daemon reads each
	// 0.25 s at best, Prometheus each 5 to 30 s in most installations.
	Period Range
	// Gateways are what a gateway shows of interactive requests, with their weights: the histogram
	// of the endpoint picker most often, the same where lines pass through it too, counts of one
	// that knows objectives, and nothing where there is none or nobody reads it.
	Gateways []Weighted[scenario.Gateway]
	// EngineMetrics is the share of pools whose engines show metrics: vLLM always does, SGLang if
	// it is asked to; behind a foreign address they may be out of reach.
	EngineMetrics float64

	// Batch work.

	// SingleJob is the share of scenarios with one endless backlog, with which a harvest is limited
	// by the policy alone. The others have as many jobs as Jobs says, one after another, the last
	// endless, so that kinds and tenants change; more than five would be over in minutes.
	SingleJob float64
	Jobs      Range
	// JobSize is the work of a job that ends, relative to what a third of the engines' time does
	// until the next job: some end before it comes, others overlap. Tenants are equally likely.
	JobSize Range
	Tenants []string
	// BundledKind is the share of jobs of one of the bundled Kinds, equally likely. The others have
	// lengths of their own: median tokens of prompts and answers, one range of sigmas, and a shared
	// part unless they are one of the OwnLines. They range from labels of two tokens for a sentence
	// to documents of 8,000 tokens and essays of 2,000, from lines of one length (a template) to
	// lengths that differ as users' do; half of the jobs begin each prompt with the same
	// instructions. Medians and longest lines are cut as those of users.
	BundledKind            float64
	Kinds                  []string
	LinePrompt, LineAnswer Range
	LineSigma              Range
	OwnLines               float64
	LineShared             Range
}

// Any is the mixture of everything, each property independent of the others.
func Any() Distributions {
	return Distributions{
		Runners:        Range{Low: 1, High: 64, Log: true, Skew: 1.9},
		Profiles:       profileNames(),
		KnownCostModel: 0.5,
		CostModelError: Range{Low: 0.6, High: 1.6, Log: true},
		ChunkBudgets:   []int{256, 512, 1024, 2048, 4096, 8192},
		MaxSeqs:        []int{0, 0, 0, 32, 64, 128, 256},
		FullKV:         0.6,
		KVPart:         Range{Low: 0.1, High: 1, Log: true},
		ByPriority:     0.7,
		PrefixCaching:  0.75,
		Shed:           []int{0, 5, 5, 20},
		Routers: []Weighted[scenario.Router]{{scenario.LeastWork, 30}, {scenario.LeastRequests, 25},
			{scenario.RoundRobin, 20}, {scenario.PrefixAffinity, 25}},
		CurrentView: 0.4,
		RouterView:  Range{Low: 0.05, High: 10, Log: true},

		Arrivals: []Weighted[Arrivals]{{Poisson, 25}, {Bursts, 35}, {Days, 10}, {ClosedLoop, 10},
			{Conversations, 10}, {Replay, 10}},
		Utilization:  Range{Low: 0.04, High: 0.8, Log: true},
		PeakOverMean: Range{Low: 2, High: 15, Log: true},
		BurstScale:   Range{Low: 1, High: 600, Log: true},
		InBursts:     Range{Low: 0.3, High: 0.8},
		DayOverMean:  Range{Low: 1.5, High: 2.5},
		Think:        Range{Low: 5, High: 120, Log: true},
		Prompt:       Range{Low: 50, High: 20_000, Log: true},
		PromptSigma:  Range{Low: 0.2, High: 1.2},
		Answer:       Range{Low: 10, High: 1000, Log: true},
		AnswerSigma:  Range{Low: 0.2, High: 1.2},
		OwnPrompts:   0.4,
		SharedPart:   Range{Low: 0.1, High: 0.95},
		Groups:       Range{Low: 1, High: 200, Log: true},

		Objectives: []Weighted[Objectives]{{Relative, 75}, {Standard, 10}, {Misfit, 15}},
		TTFT:       Range{Low: 1.1, High: 6, Log: true},
		TPOT:       Range{Low: 1.1, High: 4, Log: true},
		MisfitTTFT: Range{Low: 10, High: 50, Log: true},
		MisfitTPOT: Range{Low: 5, High: 20, Log: true},

		Period: Range{Low: 0.25, High: 30, Log: true},
		Gateways: []Weighted[scenario.Gateway]{{scenario.GatewayHistogram, 45},
			{scenario.GatewayContaminated, 15}, {scenario.GatewayCounters, 15},
			{scenario.GatewayOff, 25}},
		EngineMetrics: 0.85,

		SingleJob:   0.5,
		Jobs:        Range{Low: 2, High: 5},
		JobSize:     Range{Low: 0.3, High: 1.5},
		Tenants:     []string{"research", "search", "support"},
		BundledKind: 0.6,
		Kinds:       []string{"gen", "score", "score-shared", "bal", "mix"},
		LinePrompt:  Range{Low: 30, High: 8000, Log: true},
		LineAnswer:  Range{Low: 2, High: 2000, Log: true},
		LineSigma:   Range{Low: 0, High: 1.1},
		OwnLines:    0.5,
		LineShared:  Range{Low: 0.1, High: 0.95},
	}
}

// Family is Any with some distributions narrowed to a kind of pools.
type Family struct {
	Name   string
	About  string
	narrow func(*Distributions)
}

// Distributions returns those of the family.
func (f Family) Distributions() Distributions {
	d := Any()
	if f.narrow != nil {
		f.narrow(&d)
	}
	return d
}

var families = []Family{
	{Name: "any", About: "everything, each property independent of the others"},
	{"steady", "Poisson arrivals of chat, moderately busy", func(d *Distributions) {
		d.Arrivals = []Weighted[Arrivals]{{Poisson, 1}}
		d.Utilization = Range{Low: 0.2, High: 0.7}
		d.Prompt, d.Answer = Range{Low: 200, High: 2000, Log: true}, Range{Low: 100, High: 400,
			Log: true}
		d.Objectives = []Weighted[Objectives]{{Relative, 1}}
	}},
	{"bursty", "bursts of 5 to 15 times the mean within seconds", func(d *Distributions) {
		d.Arrivals = []Weighted[Arrivals]{{Bursts, 1}}
		d.PeakOverMean, d.BurstScale = Range{Low: 5, High: 15, Log: true}, Range{Low: 1, High: 60,
			Log: true}
	}},
	{"short-answers", "answers of 10 to 50 tokens", func(d *Distributions) {
		d.Answer = Range{Low: 10, High: 50, Log: true}
		d.ownLengths()
	}},
	{"long-prompts", "prompts of 5,000 to 20,000 tokens", func(d *Distributions) {
		d.Prompt = Range{Low: 5000, High: 20_000, Log: true}
		d.ownLengths()
	}},
	{"idle", "pools that carry 2 to 10 % of what they can", func(d *Distributions) {
		d.Utilization = Range{Low: 0.02, High: 0.1, Log: true}
		d.Runners.Low = 2
	}},
	{"small-chunk", "chunk budgets of 256 and 512 tokens", func(d *Distributions) {
		d.ChunkBudgets = []int{256, 512}
	}},
	{"shared-prefix", "prompts, also of batch lines, that are mostly shared",
		func(d *Distributions) {
			d.PrefixCaching, d.OwnPrompts = 1, 0
			d.SharedPart = Range{Low: 0.6, High: 0.95}
			d.Kinds, d.OwnLines = []string{"score-shared"}, 0
			d.LineShared = Range{Low: 0.5, High: 0.95}
			d.ownLengths()
			d.Arrivals = without(d.Arrivals, ClosedLoop) // whose prompts share nothing
		}},
	{"misfit-slo", "objectives that do not fit the engine", func(d *Distributions) {
		d.Objectives = []Weighted[Objectives]{{Misfit, 1}}
	}},
	{"no-slo", "objectives that the policy is not configured with",
		(*Distributions).withholdObjectives},
	{"no-facts", "engines of which the policy is configured with nothing",
		func(d *Distributions) { d.FactsWithheld = 1 }},
	{"defaults", "a policy that is configured with nothing", func(d *Distributions) {
		d.withholdObjectives()
		d.FactsWithheld = 1
	}},
	{"days", "a day and a night in each run", func(d *Distributions) {
		d.Arrivals = []Weighted[Arrivals]{{Days, 1}}
	}},
	{"closed-loop", "users who wait for their answers", func(d *Distributions) {
		d.Arrivals = []Weighted[Arrivals]{{ClosedLoop, 1}}
	}},
}

// withholdObjectives keeps objectives from the policy. It keeps iterations and first tokens within
// 1.15 times what they are without batch work then; what is tighter cannot be kept.
func (d *Distributions) withholdObjectives() {
	d.Withheld = 1
	d.Objectives = []Weighted[Objectives]{{Relative, 1}}
	d.TTFT.Low, d.TPOT.Low = 1.3, 1.3
}

// ownLengths leaves out arrivals whose lengths are not drawn.
func (d *Distributions) ownLengths() {
	d.Arrivals = without(without(d.Arrivals, Conversations), Replay)
}

// Arrivals is a kind of interactive arrivals.
type Arrivals string

// The kinds of arrivals. Without a trace that fits, Replay is Conversations; without the KV cache
// for these, they are Poisson.
const (
	Poisson       Arrivals = "poisson"
	Bursts        Arrivals = "bursts"
	Days          Arrivals = "days"
	ClosedLoop    Arrivals = "closed-loop"
	Conversations Arrivals = "conversations" // long prompts that repeat their history
	Replay        Arrivals = "replay"
)

// Objectives is how the objectives of a scenario were chosen.
type Objectives string

// The ways to choose objectives.
const (
	Relative Objectives = "relative" // to the latencies without batch work
	Standard Objectives = "standard" // 2 s and 100 ms, whatever the engine
	Misfit   Objectives = "misfit"   // far from what the engine does
)

func profileNames() []string {
	var names []string
	for _, p := range engine.Profiles() {
		names = append(names, p.Name)
	}
	return names
}
