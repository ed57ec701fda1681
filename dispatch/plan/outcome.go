package plan

import (
	"slices"
	"time"
)

// Outcome classifies how a request ended.
type Outcome uint8

const (
	// Succeeded: a 2xx answer with a valid body.
	Succeeded Outcome = iota
	// Refused: a 4xx answer; the request is at fault.
	Refused
	// Shed: 429 or 503; the runner is overloaded.
	Shed
	// Failed: a 5xx answer; the request or the runner may be at fault.
	Failed
	// Garbled: a 2xx answer with a body that is no answer of the endpoint.
	Garbled
	// TimedOut: no complete answer within the time limit of a request.
	TimedOut
	// Unreachable: the connection failed; the runner did not get the request.
	Unreachable
	// Died: the connection broke, or a gateway lost its backend, while the line was in flight.
	Died
	// Evicted: the dispatcher cancelled the request.
	Evicted
	// Denied: an answer for which the operator is at fault, such as 401 or a redirection.
	Denied
	// TooLong: a 2xx answer that is longer than permitted.
	TooLong
	// CheckFailed: a 2xx answer that fails the check of its batch. The runner has answered well.
	CheckFailed
)

var outcomeNames = [...]string{"succeeded", "refused", "shed", "failed", "garbled", "timed_out",
	"unreachable", "died", "evicted", "denied", "too_long", "check_failed"}

// Outcomes is the number of outcomes.
const Outcomes = len(outcomeNames)

func (o Outcome) String() string { return outcomeNames[o] }

// good reports whether the runner has answered well.
func (o Outcome) good() bool { return o == Succeeded || o == CheckFailed }

// retryDecision says whether a line is tried again, what is charged for it, and the pause before.
type retryDecision struct {
	again        bool
	chargedTry   bool
	chargedDeath bool
	pause        time.Duration
}

// decideRetry is the retry policy for answers whose cause is not their runner. l has the attempts
// of the line before this answer, sheds its sheds with this one.
func decideRetry(
	cfg RetryConfig, b *Batch, l line, sheds shedRecord, outcome Outcome, status int,
	retryAfter time.Duration,
) retryDecision {
	attempts := cfg.Attempts
	if b.RetryAttempts > 0 {
		attempts = b.RetryAttempts
	}
	tryAgain := int(l.tries)+1 < attempts
	pauseAfter := func(charged int) time.Duration { return b.pause(cfg, charged) }
	switch outcome {
	case Succeeded:
		return retryDecision{}
	case CheckFailed: // no pause: nothing is overloaded, and the prompt is still cached
		return retryDecision{again: tryAgain && int(l.checks)+1 < b.CheckAttempts, chargedTry: true}
	case Shed:
		// Retry-After is about the runner, to which flow control sends nothing for that time. The
		// line may go to another runner before, and waits no longer than that.
		pause := cfg.backoff(int(l.waits))
		if retryAfter > 0 {
			pause = min(pause, retryAfter)
		}
		return retryDecision{again: !sheds.tooMany(cfg), pause: pause}
	case Unreachable:
		if status > 0 { // a gateway found no engine; other lines may find one
			return retryDecision{again: !sheds.tooMany(cfg), pause: cfg.backoff(int(l.waits))}
		}
		// The breaker decides when the runner is tried again. The line may go to another at once.
		return retryDecision{again: true}
	case Evicted:
		// The cause of the eviction, such as input that cannot be read, may persist.
		return retryDecision{again: true, pause: cfg.backoff(int(l.waits))}
	case Died:
		return retryDecision{again: int(l.deaths)+1 < cfg.Deaths, chargedDeath: true,
			pause: pauseAfter(int(l.deaths))}
	case Failed, Refused:
		on := cfg.On
		if b.RetryOn != nil {
			on = b.RetryOn
		}
		return retryDecision{again: tryAgain && slices.Contains(on, status), chargedTry: true,
			pause: pauseAfter(int(l.tries))}
	default: // TimedOut, TooLong and, from a runner that is gone, Garbled and Denied
		return retryDecision{again: tryAgain, chargedTry: true, pause: pauseAfter(int(l.tries))}
	}
}

// pause returns the pause before the retry that follows n earlier ones.
func (b *Batch) pause(cfg RetryConfig, n int) time.Duration {
	if len(b.Backoff) > 0 {
		return b.Backoff[min(n, len(b.Backoff)-1)]
	}
	return cfg.backoff(n)
}

// decideElsewhere is the retry policy for an answer whose cause is probably or certainly the
// runner. other reports whether another runner may take the line.
func decideElsewhere(cfg RetryConfig, l line, cause fault, other bool) retryDecision {
	switch {
	case cause == ofRunner && l.trouble.blamed >= maxBlamed:
		return retryDecision{}
	case other:
		return retryDecision{again: true}
	}
	return retryDecision{again: true,
		pause: doubling(cfg.Base, longerPauses*cfg.Max, int(l.waits))}
}
