package emulator

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Faults are the faults of a runner and their probabilities. At most one of the probabilities
// applies to a request, so their sum may not exceed 1. Durations are real time, whatever the
// speedup; in JSON they are strings such as "1.5s".
type Faults struct {
	TooManyRequests float64 `json:"too_many_requests,omitempty"` // probability of 429
	Unavailable     float64 `json:"unavailable,omitempty"`       // probability of 503
	// sent with 429 and 503, in whole seconds rounded up; 0: not sent
	RetryAfter Duration `json:"retry_after,omitempty"`
	// only requests with X-Priority: low get faults, as from a gateway that sheds batch work
	OnlyLow     bool    `json:"only_low,omitempty"`
	ServerError float64 `json:"server_error,omitempty"` // probability of 500
	// probability of a connection reset instead of an answer
	Reset float64 `json:"reset,omitempty"`
	Hang  float64 `json:"hang,omitempty"` // probability of no response
	// then the connection closes; 0: only when the client leaves
	HangFor Duration `json:"hang_for,omitempty"`
	// probability of 200 with a body that is not JSON, after which the connection closes
	Garbage float64 `json:"garbage,omitempty"`
	// probability of a connection closed halfway through the answer
	Cut float64 `json:"cut,omitempty"`
	// probabilities of 401 and 403, as for a key that is wrong or may not use the model
	Unauthorized float64 `json:"unauthorized,omitempty"`
	Forbidden    float64 `json:"forbidden,omitempty"`
	// probability of 200 with an HTML page, as from a proxy that wants a login
	LoginPage float64 `json:"login_page,omitempty"`
	Empty     float64 `json:"empty,omitempty"` // probability of 200 without a body
	// probability of 200 with JSON that is no answer: {"status":"ok"}
	WrongJSON float64 `json:"wrong_json,omitempty"`

	// The faults of requests above, and latency and jitter, apply only for the first Bad of each
	// Period, which begins when they are set. Both 0: always.
	Period Duration `json:"period,omitempty"`
	Bad    Duration `json:"bad,omitempty"`

	Latency Duration `json:"latency,omitempty"` // added before each request is read
	Jitter  Duration `json:"jitter,omitempty"`  // added to that, uniform from 0 to this

	Slow     float64  `json:"slow,omitempty"`      // iterations take this many times as long; 0: 1
	Stall    float64  `json:"stall,omitempty"`     // probability that an iteration stalls
	StallFor Duration `json:"stall_for,omitempty"` // its duration

	RefuseModels []string `json:"refuse_models,omitempty"` // answered 404 and not listed
	// GET /v1/capabilities gets no answer; the connection closes
	NoCapabilities bool `json:"no_capabilities,omitempty"`
	// for this long from now every connection except to the admin routes is closed at once
	Down Duration `json:"down,omitempty"`
}

// Duration is a time.Duration that is text in JSON.
type Duration time.Duration

// MarshalText formats a duration like time.Duration.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText parses a duration like time.ParseDuration.
func (d *Duration) UnmarshalText(b []byte) error {
	parsed, err := time.ParseDuration(string(b))
	*d = Duration(parsed)
	return err
}

// Validate reports all errors at once.
func (f Faults) Validate() error {
	var faults []error
	sum := 0.0
	for _, p := range []struct {
		name  string
		value float64
	}{
		{"too_many_requests", f.TooManyRequests}, {"unavailable", f.Unavailable},
		{"server_error", f.ServerError},
		{"reset", f.Reset}, {"hang", f.Hang}, {"garbage", f.Garbage}, {"cut", f.Cut},
		{"unauthorized", f.Unauthorized}, {"forbidden", f.Forbidden},
		{"login_page", f.LoginPage}, {"empty", f.Empty}, {"wrong_json", f.WrongJSON},
		{"stall", f.Stall},
	} {
		if p.value < 0 || p.value > 1 {
			faults = append(faults, fmt.Errorf("%s is %v, want a probability from 0 to 1", p.name,
				p.value))
		}
		if p.name != "stall" {
			sum += p.value
		}
	}
	if sum > 1+1e-9 {
		faults = append(faults, fmt.Errorf(
			"probabilities of a request's faults sum to %v, want at most 1", sum))
	}
	for _, d := range []struct {
		name  string
		value Duration
	}{
		{"retry_after", f.RetryAfter}, {"hang_for", f.HangFor}, {"latency", f.Latency},
		{"jitter", f.Jitter}, {"stall_for", f.StallFor}, {"down", f.Down},
	} {
		if d.value < 0 {
			faults = append(faults, fmt.Errorf("%s is %v, want at least 0", d.name, time.Duration(
				d.value)))
		}
	}
	if f.Bad != 0 && f.Period == 0 || f.Bad < 0 || f.Bad > f.Period {
		faults = append(faults, fmt.Errorf("bad is %v, want at least 0 and at most period, %v",
			time.Duration(f.Bad), time.Duration(f.Period)))
	}
	if f.Slow < 0 {
		faults = append(faults, fmt.Errorf("slow is %v, want at least 0", f.Slow))
	}
	return errors.Join(faults...)
}

// injected is the fault that is injected into one request.
type injected int

const (
	noFault injected = iota
	tooManyRequests
	unavailable
	serverError
	reset
	hang
	garbage
	cut
	unauthorized
	forbidden
	loginPage
	empty
	wrongJSON
)

// faultInjector draws faults from those configured.
type faultInjector struct {
	mu        sync.Mutex
	faults    Faults
	since     time.Time // when they were set
	downUntil time.Time
	requests  *rand.Rand
	stalls    *rand.Rand
}

func newFaultInjector(f Faults, seed uint64, now time.Time) *faultInjector {
	i := &faultInjector{requests: rand.New(rand.NewPCG(seed, 2)),
		stalls: rand.New(rand.NewPCG(seed, 3))}
	i.set(f, now)
	return i
}

func (i *faultInjector) set(f Faults, now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.faults, i.since, i.downUntil = f, now, now.Add(time.Duration(f.Down))
}

func (i *faultInjector) current() Faults {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.faults
}

func (i *faultInjector) down(now time.Time) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return now.Before(i.downUntil)
}

func (i *faultInjector) refuses(model string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Contains(i.faults.RefuseModels, model)
}

// draw returns the fault of a request and the time to wait before it.
func (i *faultInjector) draw(now time.Time) (injected, time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if period := time.Duration(i.faults.Period); period > 0 &&
		now.Sub(i.since)%period >= time.Duration(i.faults.Bad) {
		return noFault, 0
	}
	wait := time.Duration(i.faults.Latency)
	if i.faults.Jitter > 0 {
		wait += time.Duration(i.requests.Int64N(int64(i.faults.Jitter)))
	}
	at := i.requests.Float64()
	for i, p := range []float64{
		i.faults.TooManyRequests, i.faults.Unavailable, i.faults.ServerError,
		i.faults.Reset, i.faults.Hang, i.faults.Garbage, i.faults.Cut,
		i.faults.Unauthorized, i.faults.Forbidden, i.faults.LoginPage, i.faults.Empty,
		i.faults.WrongJSON,
	} {
		if at -= p; at < 0 {
			return tooManyRequests + injected(i), wait
		}
	}
	return noFault, wait
}

// stall draws the time for which the next iteration stalls.
func (i *faultInjector) stall() time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.faults.Stall == 0 || i.stalls.Float64() >= i.faults.Stall {
		return 0
	}
	return time.Duration(i.faults.StallFor)
}
