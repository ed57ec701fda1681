package plan

import (
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	// 3 attempts, 5 deaths, pauses from 500ms to 30s, Retry-After to 5m
	cfg := DefaultConfig().Retry
	const s, ms = time.Second, time.Millisecond
	try := func(pause time.Duration) retryDecision {
		return retryDecision{again: true, chargedTry: true, pause: pause}
	}
	free := func(pause time.Duration) retryDecision {
		return retryDecision{again: true, pause: pause}
	}
	for _, test := range []struct {
		name       string
		line       line
		sheds      shedRecord
		batch      Batch
		outcome    Outcome
		status     int
		retryAfter time.Duration
		want       retryDecision
	}{
		{name: "success is the end", outcome: Succeeded, status: 200},
		{name: "success is the end after any attempts", line: line{tries: 2, deaths: 4, waits: 9},
			outcome: Succeeded, status: 200},

		{name: "shed waits", outcome: Shed, status: 429, want: free(500 * ms)},
		{name: "shed waits twice as long each time", line: line{waits: 3}, outcome: Shed,
			status: 503, want: free(4 * s)},
		{name: "shed waits half a minute at most", line: line{waits: 60_000}, outcome: Shed,
			status: 503, want: free(30 * s)},
		{name: "a shed line may go to another runner before Retry-After", outcome: Shed,
			status: 429, retryAfter: 60 * s, want: free(s / 2)},
		{name: "shed waits at most Retry-After", line: line{waits: 9}, outcome: Shed,
			status: 429, retryAfter: s, want: free(s)},
		{name: "shed is not charged as an attempt, not even the last",
			line:    line{tries: 2, deaths: 4},
			outcome: Shed, status: 503, want: free(500 * ms)},

		{name: "shed often, but not too often", sheds: shedRecord{half: 39}, outcome: Shed,
			status: 503, want: free(500 * ms)},
		{name: "shed too often is the result", sheds: shedRecord{half: 40}, outcome: Shed,
			status: 503, want: retryDecision{pause: 500 * ms}},

		{name: "an unreachable runner is not charged", line: line{tries: 2, deaths: 4},
			outcome: Unreachable, want: free(0)},
		{name: "an eviction is not charged", line: line{tries: 2, deaths: 4}, outcome: Evicted,
			want: free(500 * ms)},
		{name: "repeated evictions wait longer", line: line{waits: 2}, outcome: Evicted,
			want: free(2 * s)},

		{name: "a death is charged separately", line: line{tries: 2}, outcome: Died,
			want: retryDecision{again: true, chargedDeath: true, pause: 500 * ms}},
		{name: "the last death but one", line: line{deaths: 3}, outcome: Died,
			want: retryDecision{again: true, chargedDeath: true, pause: 4 * s}},
		{name: "a line with too many deaths is given up", line: line{deaths: 4}, outcome: Died,
			want: retryDecision{chargedDeath: true, pause: 8 * s}},

		{name: "a 500 is tried again", outcome: Failed, status: 500, want: try(500 * ms)},
		{name: "a 500 waits twice as long the second time", line: line{tries: 1}, outcome: Failed,
			status: 500, want: try(s)},
		{name: "a third 500 is the result", line: line{tries: 2}, outcome: Failed, status: 500,
			want: retryDecision{chargedTry: true, pause: 2 * s}},
		{name: "a 501 is the result at once", outcome: Failed, status: 501,
			want: retryDecision{chargedTry: true, pause: 500 * ms}},
		{name: "a 400 is the result at once", outcome: Refused, status: 400,
			want: retryDecision{chargedTry: true, pause: 500 * ms}},
		{name: "a 408 is tried again", outcome: Refused, status: 408, want: try(500 * ms)},
		{name: "a garbled answer is tried again", outcome: Garbled, status: 200,
			want: try(500 * ms)},
		{name: "a garbled answer counts", line: line{tries: 2}, outcome: Garbled, status: 200,
			want: retryDecision{chargedTry: true, pause: 2 * s}},
		{name: "a time-out is tried again", outcome: TimedOut, want: try(500 * ms)},
		{name: "a time-out counts", line: line{tries: 2}, outcome: TimedOut,
			want: retryDecision{chargedTry: true, pause: 2 * s}},

		{name: "an answer that fails its check is asked for again at once",
			batch: Batch{CheckAttempts: 2}, outcome: CheckFailed, status: 200, want: try(0)},
		{name: "as often as the batch says", batch: Batch{CheckAttempts: 2}, line: line{checks: 1},
			outcome: CheckFailed, status: 200, want: retryDecision{chargedTry: true}},
		{name: "within the attempts of the line", batch: Batch{CheckAttempts: 9},
			line: line{tries: 2}, outcome: CheckFailed, status: 200,
			want: retryDecision{chargedTry: true}},

		{name: "a batch may have one attempt", batch: Batch{RetryAttempts: 1}, outcome: Failed,
			status: 500, want: retryDecision{chargedTry: true, pause: 500 * ms}},
		{name: "a batch may have more", batch: Batch{RetryAttempts: 9}, line: line{tries: 7},
			outcome: Failed, status: 500, want: try(30 * s)},
		{name: "a batch may name its statuses", batch: Batch{RetryOn: []int{501}}, outcome: Failed,
			status: 501, want: try(500 * ms)},
		{name: "and no others", batch: Batch{RetryOn: []int{501}}, outcome: Failed,
			status: 500, want: retryDecision{chargedTry: true, pause: 500 * ms}},
		{name: "or none", batch: Batch{RetryOn: []int{}}, outcome: Refused, status: 408,
			want: retryDecision{chargedTry: true, pause: 500 * ms}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := decideRetry(cfg, &test.batch, test.line, test.sheds, test.outcome, test.status,
				test.retryAfter)
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestEveryOutcomeHasAName(t *testing.T) {
	seen := map[string]bool{}
	for o := range Outcome(Outcomes) {
		if o.String() == "" || seen[o.String()] {
			t.Errorf("outcome %d is called %q", o, o.String())
		}
		seen[o.String()] = true
	}
}
