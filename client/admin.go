package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// DefaultAdmin is the URL of the admin address of a daemon with the default configuration on this
// machine. Pools and Decisions need a Client of it.
const DefaultAdmin = "http://127.0.0.1:8081"

// PoolList is what a daemon decides for each of its pools now.
type PoolList struct {
	Time     float64       `json:"time"` // of the daemon, in Unix seconds
	Node     string        `json:"node"`
	StandsBy bool          `json:"stands_by"` // another process decides
	Waiting  []string      `json:"waiting"`   // why the daemon is not ready
	Data     []Pool        `json:"data"`
	Degraded []Degradation `json:"degraded"`
	// Problems is what else does not work, in sentences, and leaves the daemon ready.
	Problems []string `json:"problems"`
	// Reasons says in words what the reasons mean.
	Reasons map[string]Explanation `json:"reasons"`
	// Raw is the answer as received.
	Raw json.RawMessage `json:"-"`
}

// Pool is a set of runners that serve the same models.
type Pool struct {
	Name string `json:"name"`
	// Node is the process that leads the pool. Age is the time since it published this, in seconds;
	// 0: it is the process that was asked.
	Node string  `json:"node"`
	Age  float64 `json:"age_s"`
	// NotLed is why nobody leads the pool now, though Node did; empty: it does.
	NotLed     string   `json:"not_led"`
	Models     []string `json:"models"`
	Policy     string   `json:"policy"`
	Protected  bool     `json:"protected"`
	Protection string   `json:"protection"`
	Warnings   []struct {
		Code string `json:"code"`
		Text string `json:"text"`
	} `json:"warnings"`
	// Failures are those of the runners that have failed lines in the last minutes.
	Failures []RunnerFailures `json:"failures"`
	// Requests are the interactive requests that pass through; nil: none do.
	Requests *Requests `json:"requests"`
	// Fallback is what the pool has done instead of another one; nil: it is no fallback.
	Fallback *Fallback `json:"fallback"`
	Decision Decision  `json:"decision"`
}

// Fallback is what a server elsewhere has done instead of a pool, since the daemon started.
type Fallback struct {
	Instead      string `json:"instead"` // the pool
	Requests     int    `json:"requests"`
	Lines        int    `json:"lines"`
	InputTokens  int    `json:"input_tokens"`
	OutputTokens int    `json:"output_tokens"`
	// Spent and PerDay are the cost of this day (UTC) and the most that it may be; nil: no such
	// limit is configured.
	Spent  *float64 `json:"money_today"`
	PerDay *float64 `json:"money_per_day"`
}

// Requests are the interactive requests of a pool that pass through the daemon.
type Requests struct {
	// Places is the number that may be in flight, and Bound that of the classes after those with an
	// objective; nil: none.
	Places int  `json:"places"`
	Bound  *int `json:"bound"`
	// Reason is why those that wait do so; empty: none waits.
	Reason  string `json:"reason"`
	Classes []struct {
		Name    string `json:"name"`
		Waiting int    `json:"waiting"`
		Running int    `json:"running"`
	} `json:"classes"`
	UseCases []UseCaseState `json:"use_cases"`
}

// UseCaseState is a use case in the last five minutes.
type UseCaseState struct {
	Name      string   `json:"name"`
	Class     string   `json:"class"`
	Objective *float64 `json:"objective_ms"`
	Requests  int      `json:"requests"`
	// P95 is the 95th percentile of the average times per output token, Attained the share within
	// the objective; nil: unknown, with fewer than 50 requests.
	P95      *float64 `json:"p95_ms"`
	Attained *float64 `json:"attained"`
	// Refused counts the requests that got no place, by reason.
	Refused map[string]int `json:"refused"`
}

// RunnerFailures is what a runner has failed in the last minutes.
type RunnerFailures struct {
	Runner   string    `json:"runner"`
	Answered int       `json:"answered"`
	Failed   int       `json:"failed"`
	Causes   []Failure `json:"causes"`
	// Failing says that the runner gets single lines only, since its answers are bad. Text says all
	// of it in words.
	Failing bool   `json:"failing"`
	Text    string `json:"text"`
}

// Degradation is a source of readings that gives none.
type Degradation struct {
	Target  string  `json:"target"`
	Source  string  `json:"source"`
	State   string  `json:"state"`
	Since   float64 `json:"since"`
	Meaning string  `json:"meaning"`
}

// Explanation says what a reason means and what to do.
type Explanation struct {
	Meaning string `json:"meaning"`
	Remedy  string `json:"remedy"`
}

// Decision is what flow control saw and decided in a pool. Nil numbers are unknown.
type Decision struct {
	Time            float64          `json:"time"` // Unix seconds
	Reason          string           `json:"reason"`
	AllowanceReason string           `json:"allowance_reason"`
	InFlight        int              `json:"in_flight"`
	Allowance       int              `json:"allowance"`
	Jobs            int              `json:"jobs"`
	Evicted         float64          `json:"evicted_total"`
	Objective       *float64         `json:"objective_ms"`
	Configured      *float64         `json:"configured_objective_ms"` // where Objective is lower
	Target          *float64         `json:"target_ms"`
	Alone           *float64         `json:"alone_ms"`
	WatchLeft       *float64         `json:"watch_left_s"`
	WatchOf         *float64         `json:"watch_of_s"`
	Slowdown        *float64         `json:"first_token_slowdown"`
	SlowdownAllowed *float64         `json:"first_token_slowdown_allowed"`
	FirstTokens     *FirstTokens     `json:"first_tokens"`
	FirstObjective  *float64         `json:"first_token_objective_ms"`
	FirstAlone      *float64         `json:"first_token_alone_ms"`
	Gateway         *Gateway         `json:"gateway"`
	Runners         []RunnerDecision `json:"runners"`
}

// FirstTokens holds the times to first token in the last minute, in milliseconds: within P95 came
// 95 % of them.
type FirstTokens struct {
	Source   string   `json:"source"` // metrics, which include batch lines, or gateway
	Requests float64  `json:"requests"`
	Median   *float64 `json:"median_ms"`
	P95      *float64 `json:"p95_ms"`
}

// Gateway is what a gateway has counted of interactive requests.
type Gateway struct {
	Age             *float64 `json:"age_s"`
	FirstTokens     float64  `json:"first_tokens_total"`
	LateFirstTokens float64  `json:"late_first_tokens_total"`
	Answers         float64  `json:"answers_total"`
	LateAnswers     float64  `json:"late_answers_total"`
}

// RunnerDecision is the part of a Decision about one runner.
type RunnerDecision struct {
	Name            string   `json:"name"`
	InFlight        int      `json:"in_flight"`
	Allowance       int      `json:"allowance"`
	Reason          string   `json:"reason"`
	Evicting        bool     `json:"evicting"`
	BreakerOpen     bool     `json:"breaker_open"`
	Prompt          *float64 `json:"prompt_tokens"`
	PromptAllowance *float64 `json:"prompt_tokens_allowed"`
	Reading         *struct {
		Source string   `json:"source"`
		Age    *float64 `json:"age_s"`
	} `json:"reading"`
	Running     *float64     `json:"interactive_running"`
	Waiting     *float64     `json:"interactive_waiting"`
	TokenTime   *float64     `json:"token_time_ms"`
	FirstTokens *FirstTokens `json:"first_tokens"`
	Inputs      *Inputs      `json:"inputs"` // nil: not asked for
}

// Inputs is what flow control was given about a runner, besides the gauges of the last reading.
type Inputs struct {
	// Metrics is the last reading of the engine's metrics, batch lines included; nil: none.
	Metrics *struct {
		Age       *float64 `json:"age_s"`
		Prompt    *float64 `json:"prompt_tokens_per_s"`
		Cached    *float64 `json:"cached_tokens_per_s"`
		Output    *float64 `json:"output_tokens_per_s"`
		Preempted *float64 `json:"preemptions_total"`
	} `json:"metrics"`
	Lines struct {
		Answered float64 `json:"answered_total"`
		Shed     float64 `json:"shed_total"`
		Broken   float64 `json:"broken_total"`
	} `json:"lines"`
}

// Pools returns what the daemon decides now.
func (c *Client) Pools(ctx context.Context) (list PoolList, err error) {
	var raw json.RawMessage
	if err = c.call(ctx, request{method: http.MethodGet, path: "/admin/pools"}, &raw); err != nil {
		return list, err
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return list, fmt.Errorf("read answer to GET /admin/pools: %w", err)
	}
	list.Raw = raw
	return list, nil
}

// DecisionQuery selects decisions of a pool. Zero fields select nothing less.
type DecisionQuery struct {
	Since, Until time.Time
	Step         time.Duration // at least so far apart
	Limit        int           // 0: 100
	Terms        bool          // with all figures that the policy decides by, in Raw
	Inputs       bool          // with what it was given about the runners
}

// DecisionPage is a page of decisions, oldest first.
type DecisionPage struct {
	Data    []Decision      `json:"data"`
	HasMore bool            `json:"has_more"` // ask again since the time of the last
	Raw     json.RawMessage `json:"-"`
}

// Decisions returns what was decided for a pool. An unknown pool is an *Error that lists the pools.
func (c *Client) Decisions(
	ctx context.Context, pool string, q DecisionQuery,
) (page DecisionPage, err error) {
	v := url.Values{"terms": {fmt.Sprint(q.Terms)}, "inputs": {fmt.Sprint(q.Inputs)}}
	if !q.Since.IsZero() {
		v.Set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	if !q.Until.IsZero() {
		v.Set("until", q.Until.UTC().Format(time.RFC3339Nano))
	}
	if q.Step > 0 {
		v.Set("step", q.Step.String())
	}
	if q.Limit > 0 {
		v.Set("limit", fmt.Sprint(q.Limit))
	}
	var raw json.RawMessage
	path := "/admin/pools/" + url.PathEscape(pool) + "/decisions"
	if err = c.call(ctx, request{method: http.MethodGet, path: path, query: v}, &raw); err != nil {
		return page, err
	}
	if err := json.Unmarshal(raw, &page); err != nil {
		return page, fmt.Errorf("read answer to GET %s: %w", path, err)
	}
	page.Raw = raw
	return page, nil
}
