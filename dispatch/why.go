package dispatch

import (
	"cmp"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/store"
)

// whyWaiting returns why no more lines of a batch start, for its users: a code, a sentence and a
// remedy; empty: they start. noRunner explains a model that has no runner.
func whyWaiting(
	b *store.Batch, s plan.BatchStatus, noRunner func(model string) string, v store.Verdict,
) string {
	if b.State == store.Finalizing || b.State == store.Cancelling {
		return whyNotEnded(s.Waiting)
	}
	switch s.Waiting {
	case plan.Flowing:
		return ""
	case plan.NoRunner:
		if r := b.Resolved; r != nil && r.Target != nil {
			return fmt.Sprintf("%s: The server of the batch's template %s@%s is not in use: its "+
				"key can't be read, or it is about to be added. Check `degraded` of `/readyz`.",
				plan.NoRunner, r.Template, r.Version)
		}
		if s.Pools != nil {
			return plan.NoRunner.Because(noRunnerOf(s.Pools, s.Model))
		}
		return string(plan.NoRunner) + ": " + noRunner(s.Model)
	case plan.Queued:
		if v == store.VerdictInfeasible {
			return string(plan.Queued) + ": Its deadline can't be met, so batches whose deadline " +
				"can be met go before it. Cancel it, and submit it with a longer window; or add " +
				"runners."
		}
		return plan.Queued.Because(behind(s))
	case plan.RunnersFailing:
		return plan.RunnersFailing.Because(failing(s))
	default:
		return s.Waiting.Text()
	}
}

// whyNotEnded returns why the results of a batch that starts no more lines can't be kept, whatever
// its lines would wait for.
func whyNotEnded(why plan.Reason) string {
	if why == plan.DiskFull || why == plan.StoreDown {
		return why.Text()
	}
	return ""
}

// noRunnerOf says that none of the pools that a batch may use has a runner for its model.
func noRunnerOf(pools []string, model string) string {
	names := make([]string, len(pools))
	for i, name := range pools {
		names[i] = cmp.Or(name, "that of runners without a pool")
	}
	return fmt.Sprintf("The batch's template or profile permits the pools %s, and none of their "+
		"runners serves the model %s now.", nameList(names), shown(model))
}

// behind says behind what a batch is queued, and for how long if that is known. It names no batches
// of other tenants.
func behind(s plan.BatchStatus) string {
	sentence := "Behind batches of other tenants"
	if s.Behind != "" {
		sentence = "Behind " + s.Behind
	}
	if s.StartsIn > 0 {
		sentence += ", " + about(s.StartsIn)
	}
	return sentence + "."
}

// about returns a time roughly, so that what users see does not change all the time.
func about(d time.Duration) string {
	in := func(unit time.Duration, name string, step int) string {
		n := max(1, int((d+unit/2)/unit))
		if n > step {
			n = (n + step/2) / step * step
		}
		return fmt.Sprintf("about %d %s", n, name)
	}
	switch {
	case d < time.Minute:
		return "less than 1 min"
	case d < 10*time.Minute:
		return in(time.Minute, "min", 1)
	case d < 57*time.Minute:
		return in(time.Minute, "min", 5)
	case d < 48*time.Hour:
		return in(time.Hour, "h", 1)
	default:
		return in(24*time.Hour, "days", 1)
	}
}

// failing says how many runners answer with errors, and one of them with which. It shows no answer,
// which may be to a line of another tenant.
func failing(s plan.BatchStatus) string {
	r := s.Failing
	if r.ID == "" {
		return plan.Explain(plan.RunnersFailing).Meaning
	}
	sentence := r.ID + " answered " + answerText(r.Failed)
	if r.Judged > 0 {
		sentence += fmt.Sprintf(", %d of its last %d lines were answered badly", r.Bad, r.Judged)
	}
	if s.Runners > 1 {
		sentence = fmt.Sprintf("%d of %d runners answer with errors: %s", s.FailingRunners,
			s.Runners, sentence)
	}
	return sentence + ", and nothing shows that the lines are the cause; one is tried now and then."
}
