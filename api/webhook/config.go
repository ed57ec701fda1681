package webhook

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/internal/suggest"
	"github.com/tidefill/tidefill/store"
)

// Endpoint is a URL that is notified of the ends and the verdicts of batches.
type Endpoint struct {
	// Name identifies the endpoint in metrics, in the log and in the store: at most 63 lower-case
	// letters, digits and dashes. With another name the endpoint begins anew, without the events
	// before.
	Name string `yaml:"name"`
	// URL receives the events as POST requests. It begins with http:// or https://. Redirects are
	// not followed.
	URL string `yaml:"url"`
	// SecretEnv names the environment variable that holds the secret by which events are signed:
	// whsec_ and 24 to 64 bytes in base64. While a secret is replaced by another, it may hold both,
	// separated by a space; events are signed by each.
	SecretEnv string `yaml:"secret_env"`
	// Events lists the events to deliver: batch.completed, batch.failed, batch.expired,
	// batch.cancelled, batch.at_risk, batch.infeasible, batch.feasible. Empty: all.
	Events []string `yaml:"events"`
	// Tenants lists the tenants whose batches are reported. Empty: all.
	Tenants []string `yaml:"tenants"`

	// The following are no keys: tests set them.

	// Timeout limits one request. 0: 10s.
	Timeout time.Duration `yaml:"-"`
	// GiveUpAfter limits the time after an event in which its delivery is tried again. 0: 24h.
	GiveUpAfter time.Duration `yaml:"-"`
}

// Event is the type of an event, as OpenAI names those that it has too.
type Event string

// The events.
const (
	Completed Event = "batch.completed"
	Failed    Event = "batch.failed"
	Expired   Event = "batch.expired"
	Cancelled Event = "batch.cancelled"
	// AtRisk: the deadline will be met only if nothing goes worse than expected.
	AtRisk Event = "batch.at_risk"
	// Infeasible: the deadline can't be met.
	Infeasible Event = "batch.infeasible"
	// Feasible: the deadline will be met after all, after AtRisk or Infeasible.
	Feasible Event = "batch.feasible"
	// Stalled: the batch waits, because its runners answer its lines with errors and nothing shows
	// that the lines are at fault.
	Stalled Event = "batch.stalled"
	// Resumed: it goes on after Stalled.
	Resumed Event = "batch.resumed"
)

var (
	// ends are the events of batches that end.
	ends = map[store.State]Event{store.Completed: Completed, store.Failed: Failed,
		store.Expired: Expired, store.Cancelled: Cancelled}
	verdicts = []Event{AtRisk, Infeasible, Feasible, Stalled, Resumed}
	events   = []string{string(Completed), string(Failed), string(Expired), string(Cancelled),
		string(AtRisk), string(Infeasible), string(Feasible), string(Stalled),
		string(Resumed)}
)

const (
	// defaultTimeout is long for a receiver that answers before it does the work.
	defaultTimeout = 10 * time.Second
	// defaultGiveUpAfter outlasts a night in which nobody repairs the receiver. Later than that the
	// state of a batch is better asked for.
	defaultGiveUpAfter = 24 * time.Hour
)

var endpointName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Validate reports every fault with the path of its field.
func (e Endpoint) Validate() error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf(format, args...))
	}
	if !endpointName.MatchString(e.Name) {
		fault("name: is %q, must be 1 to 63 lower-case letters, digits and dashes", e.Name)
	}
	switch u, err := url.Parse(e.URL); {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		fault("url: is no URL; write https://host/path")
	case u.User != nil:
		fault("url: has a user or a password, which would be shown; check the signature instead")
	}
	if e.SecretEnv == "" {
		fault("secret_env: is empty; name the environment variable that holds the secret")
	}
	for i, event := range e.Events {
		if slices.Contains(events, event) {
			continue
		}
		hint := ""
		if meant := suggest.Nearest(event, events); meant != "" {
			hint = fmt.Sprintf(" Did you mean %q?", meant)
		}
		fault("events[%d]: there is no event %q; there are %s.%s", i, event,
			strings.Join(events, ", "), hint)
	}
	for i, tenant := range e.Tenants {
		if tenant == "" {
			fault("tenants[%d]: is empty; leave tenants out for all", i)
		}
	}
	return errors.Join(faults...)
}

// Validate reports what is wrong with the endpoints, each fault with its index first.
func Validate(endpoints []Endpoint) error {
	var faults []error
	listed := map[string]int{}
	for i, e := range endpoints {
		if err := e.Validate(); err != nil {
			for _, fault := range err.(interface{ Unwrap() []error }).Unwrap() {
				faults = append(faults, fmt.Errorf("[%d].%w", i, fault))
			}
		}
		if first, twice := listed[e.Name]; twice {
			faults = append(faults, fmt.Errorf("[%d].name: endpoint %d is named %q too; give each "+
				"endpoint a name of its own", i, first, e.Name))
		} else {
			listed[e.Name] = i
		}
	}
	return errors.Join(faults...)
}

// withDefaults returns the endpoint with its default values filled in.
func (e Endpoint) withDefaults() Endpoint {
	if e.Timeout == 0 {
		e.Timeout = defaultTimeout
	}
	if e.GiveUpAfter == 0 {
		e.GiveUpAfter = defaultGiveUpAfter
	}
	return e
}

// wants reports whether the endpoint wants an event.
func (e *Endpoint) wants(event Event) bool {
	return len(e.Events) == 0 || slices.Contains(e.Events, string(event))
}

// wantsVerdicts reports whether the endpoint wants any event about a verdict.
func (e *Endpoint) wantsVerdicts() bool { return slices.ContainsFunc(verdicts, e.wants) }

// follows reports whether the endpoint wants to know of a tenant's batches.
func (e *Endpoint) follows(tenant string) bool {
	return len(e.Tenants) == 0 || slices.Contains(e.Tenants, tenant)
}
