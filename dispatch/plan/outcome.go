package plan

import (
	"slices"
	"time"
)

// Outcome classifies how a request ended.
type Outcome uint8

const (
	// Succeeded: a 2xx answer with a sound body.
	Succeeded Outcome = iota
	// Refused: a 4xx that blames the request.
	Refused
	// Shed: 429 or 503, the runner has no room now.
	Shed
	// Failed: a 5xx that may be the request's fault or the runner's.
	Failed
	// Garbled: a 2xx whose body is not what was asked for.
	Garbled
	// TimedOut: no complete answer within the time a request may take.
	TimedOut
	// Unreachable: the connection could not be made; the runner never saw the line.
	Unreachable
	// Died: the connection broke, or a gateway lost its backend, while the line was under way.
	Died
	// Recalled: we ended it ourselves.
	Recalled
)

var outcomeNames = [...]string{"succeeded", "refused", "shed", "failed", "garbled", "timed_out",
	"unreachable", "died", "recalled"}

// Outcomes is how many there are.
const Outcomes = len(outcomeNames)

func (o Outcome) String() string { return outcomeNames[o] }

// judgement is what judge decides: whether the line is tried again, at what price and after which
// pause.
type judgement struct {
	again        bool
	chargedTry   bool
	chargedDeath bool
	pause        time.Duration
}

// judge is the retry policy as one table. l counts what the line has used up before this answer,
// sheds what is held against it with this one.
func judge(
	cfg RetryConfig, b *Batch, l line, sheds shedRecord, outcome Outcome, status int,
	retryAfter time.Duration,
) judgement {
	attempts := cfg.Attempts
	if b.RetryAttempts > 0 {
		attempts = b.RetryAttempts
	}
	tryAgain := int(l.tries)+1 < attempts
	switch outcome {
	case Succeeded:
		return judgement{}
	case Shed:
		// Retry-After is about the runner, which flow control leaves alone for as long: the line
		// may go elsewhere before. It waits no longer than it was asked to, though.
		pause := cfg.backoff(int(l.waits))
		if retryAfter > 0 {
			pause = min(pause, retryAfter)
		}
		return judgement{again: !sheds.tooMany(cfg), pause: pause}
	case Unreachable:
		// The breaker decides when the runner is tried again; the line may go elsewhere at once.
		return judgement{again: true}
	case Recalled:
		// Whatever it was recalled for, input that can't be read for instance, may not be over yet.
		return judgement{again: true, pause: cfg.backoff(int(l.waits))}
	case Died:
		return judgement{again: int(l.deaths)+1 < cfg.Deaths, chargedDeath: true,
			pause: cfg.backoff(int(l.deaths))}
	case Failed, Refused:
		on := cfg.On
		if b.RetryOn != nil {
			on = b.RetryOn
		}
		return judgement{again: tryAgain && slices.Contains(on, status), chargedTry: true,
			pause: cfg.backoff(int(l.tries))}
	default: // Garbled, TimedOut
		return judgement{again: tryAgain, chargedTry: true, pause: cfg.backoff(int(l.tries))}
	}
}
