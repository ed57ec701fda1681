package scheduler

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"
)

// Variables are the names that an expression may use. Instants are Unix seconds. An absent one is
// +Inf, which ranks last. An expression such as
//
//	latest_start_s - 3600 * priority - (tenant startsWith "team-" ? 600 : 0)
//
// computes the rank: lower goes first.
type Variables struct {
	Tenant   string  `expr:"tenant"`
	Model    string  `expr:"model"`
	Priority int     `expr:"priority"` // higher should go first: subtract it
	Lines    int     `expr:"lines"`    // remaining
	Work     float64 `expr:"work"`     // remaining, milliseconds of engine iteration
	// work per second that the job can expect; 0: unknown
	Rate        float64 `expr:"rate"`
	Window      float64 `expr:"window_s"`       // seconds; 0: best effort
	Created     float64 `expr:"created_s"`      //
	Deadline    float64 `expr:"deadline_s"`     // +Inf: none
	StartBy     float64 `expr:"start_by_s"`     // +Inf: none
	LatestStart float64 `expr:"latest_start_s"` // the rank of the policy slack; +Inf: none
	HasDeadline bool    `expr:"has_deadline"`
	HasStartBy  bool    `expr:"has_start_by"`
}

// trial is a job with all properties set.
var trial = Job{
	ID: "trial", Tenant: "tenant", Model: "model", Priority: 1, Window: 24 * time.Hour,
	Created: time.Unix(1_700_000_000, 0), StartBy: time.Unix(1_700_043_200, 0),
	Deadline: time.Unix(1_700_086_400, 0),
	Lines:    1000, Work: 1e6, Rate: 500,
}

var errNaN = errors.New("the result is not a number (NaN), such as 0/0 or Inf-Inf")

// functions lists the functions that an expression may call. None of them reads the clock.
var functions = []string{"abs", "ceil", "floor", "round", "int", "float", "min", "max", "len",
	"lower", "upper", "hasPrefix", "hasSuffix"}

// expression ranks by an operator's expression. It is compiled and type-checked when the policy is
// built.
type expression struct {
	program     *vm.Program
	machine     vm.VM
	assumedRate float64
	fault       error
}

func newExpression(source string, assumedRate float64) (*expression, error) {
	if strings.TrimSpace(source) == "" {
		return nil, errors.New(
			"expression is empty; set one, such as deadline_s - 3600 * priority")
	}
	options := []expr.Option{expr.Env(Variables{}), expr.AsFloat64(), expr.DisableAllBuiltins()}
	for _, name := range functions {
		options = append(options, expr.EnableBuiltin(name))
	}
	program, err := expr.Compile(source, options...)
	if err != nil {
		return nil, fmt.Errorf("compile expression into a number: %w", err)
	}
	e := &expression{program: program, assumedRate: assumedRate}
	// faults that types do not show, such as an index out of range
	for _, j := range []Job{trial, {}} {
		if e.Rank(j); e.fault != nil && !errors.Is(e.fault, errNaN) {
			return nil, fmt.Errorf("try expression: %w", e.fault)
		}
	}
	return e, nil
}

func (*expression) Name() string { return "expression" }

func (e *expression) Rank(j Job) float64 {
	value, err := e.machine.Run(e.program, e.variables(j))
	if err != nil {
		e.fault = fmt.Errorf("run expression: %w", err)
		return math.NaN()
	}
	rank := value.(float64) // AsFloat64 makes it one
	e.fault = nil
	if math.IsNaN(rank) {
		e.fault = errNaN
	}
	return rank
}

// Fault returns why the last job could not be ranked.
func (e *expression) Fault() error { return e.fault }

func (e *expression) variables(j Job) Variables {
	return Variables{
		Tenant:      j.Tenant,
		Model:       j.Model,
		Priority:    j.Priority,
		Lines:       j.Lines,
		Work:        j.Work,
		Rate:        j.Rate,
		Window:      j.Window.Seconds(),
		Created:     instantOf(j.Created) / 1e6,
		Deadline:    instantOf(j.Deadline) / 1e6,
		StartBy:     instantOf(j.StartBy) / 1e6,
		LatestStart: j.latestStart(e.assumedRate) / 1e6,
		HasDeadline: !j.Deadline.IsZero(),
		HasStartBy:  !j.StartBy.IsZero(),
	}
}
