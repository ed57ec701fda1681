package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// profileOf returns a profile of the table of profiles.
func profileOf(name, spec string) string {
	return fmt.Sprintf("\n- name: %s\n  spec: %s", name, spec)
}

// profiles replaces the profiles of a directory by these.
func (r *registryDir) profiles(all ...string) {
	r.t.Helper()
	r.write("profiles.yaml", "items:"+strings.Join(all, ""))
}

// inProfile has a create call name a profile.
func inProfile(name string) option.RequestOption {
	return option.WithJSONSet("aibrix.profile.name", name)
}

// createIn uploads lines and creates a batch of them.
func createIn(
	t *testing.T, c *openai.Client, lines Lines, options ...option.RequestOption,
) *openai.Batch {
	t.Helper()
	b, err := c.Batches.New(t.Context(), newBatch(uploadSDK(t, c, lines.Content).ID), options...)
	if err != nil {
		t.Fatalf("create: %v: %s", err, reason(err))
	}
	return b
}

// endIn is createIn, and waits until the batch has ended.
func endIn(
	t *testing.T, d *Daemon, c *openai.Client, lines Lines, options ...option.RequestOption,
) Batch {
	t.Helper()
	return endOf(t, d, createIn(t, c, lines, options...).ID)
}

// endOf waits until a batch has ended.
func endOf(t *testing.T, d *Daemon, id string) Batch {
	t.Helper()
	return d.Client().AwaitEnd(t, id, 30*time.Second)
}

// bodiesOf returns the digests of the bodies of lines, by custom_id.
func bodiesOf(lines Lines) map[string]string {
	digests := map[string]string{}
	for id, body := range lines.Bodies {
		digests[id] = Digest([]byte(body))
	}
	return digests
}

// lineOf returns the custom_id of a body.
func (l Lines) lineOf(body []byte) string {
	for id, of := range l.Bodies {
		if of == string(body) {
			return id
		}
	}
	return ""
}

// newProfiled starts a daemon whose profiles are these, and a stub that answers fast.
func newProfiled(
	t *testing.T, profiles []string, set ...string,
) (*Daemon, *openai.Client, *Stub, *registryDir) {
	t.Helper()
	stub, dir := NewStub(t, "m"), newRegistryDir(t)
	dir.profiles(profiles...)
	d := NewDaemon(t, Options{Upstreams: []string{stub.URL}, Keys: "own=" + ownKey, Set: append(
		[]string{"registry.dir=" + dir.path, "flowcontrol.policy=unlimited"}, set...)})
	return d, sdk(d, ownKey, option.WithMaxRetries(0)), stub, dir
}

// A line is sent again as often, as late and after those statuses as its profile says.
func TestProfileRetryPolicy(t *testing.T) {
	t.Parallel()
	d, c, stub, _ := newProfiled(t, []string{
		profileOf("patient", "{scheduling: {retry_policy: {max_retries: 3, "+
			"backoff_seconds: [1, 2], retryable_errors: [500, 409]}}}"),
		profileOf("once", "{scheduling: {retry_policy: {max_retries: 0}}}")})
	lines := NewLines("retries", "m", 60)
	var sheds atomic.Int64
	answers := map[string]int{"retries-10": 500, "retries-20": 409, "retries-30": 501,
		"retries-40": 404}
	stub.MinDelay, stub.MaxDelay = 5*time.Millisecond, 10*time.Millisecond
	stub.Intercept(func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		id := lines.lineOf(body)
		status := answers[id]
		if id == "retries-50" && sheds.Add(1) <= 4 {
			w.Header().Set("Retry-After", "1")
			status = http.StatusTooManyRequests
		}
		if status == 0 {
			return false
		}
		if status != http.StatusConflict { // that one comes before the runner has answered well
			stub.AwaitAnswers(r, 50)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, `{"error":{"message":"no","type":"t","param":null,"code":null}}`)
		return true
	})
	b := endIn(t, d, c, lines, inProfile("patient"))
	sent := stub.Ledger()
	check := func(id string, want int, pauses ...time.Duration) {
		t.Helper()
		attempts := sent[bodiesOf(lines)[id]]
		slices.SortFunc(attempts, func(a, b Attempt) int { return a.Begin.Compare(b.Begin) })
		if len(attempts) != want {
			t.Errorf("line %s was sent %d times, want %d", id, len(attempts), want)
			return
		}
		for i, pause := range pauses {
			got := attempts[i+1].Begin.Sub(attempts[i].End)
			if got < pause || got > pause+10*time.Second {
				t.Errorf("line %s: pause %d was %v, want at least %v", id, i+1, got, pause)
			}
		}
	}
	check("retries-0", 1)
	check("retries-10", 4, time.Second, 2*time.Second, 2*time.Second)
	check("retries-20", 4, time.Second, 2*time.Second, 2*time.Second)
	check("retries-30", 1)
	check("retries-40", 1)
	check("retries-50", 5)
	output, failed := d.Client().Results(t, b)
	if len(output) != 56 || len(failed) != 4 {
		t.Errorf("%d lines were answered and %d failed, want 56 and 4", len(output), len(failed))
	}
	for _, r := range failed {
		if want := answers[r.CustomID]; r.Response == nil || r.Response.StatusCode != want {
			t.Errorf("the error of line %s has %+v, want status %d", r.CustomID, r.Response, want)
		}
	}

	before := stub.Requests()
	sheds.Store(0)
	lines = NewLines("once", "m", 60)
	answers = map[string]int{"once-10": 500, "once-20": 429}
	earlier := stub.answered.Load()
	stub.Intercept(func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		id := lines.lineOf(body)
		if answers[id] == 0 || answers[id] == 429 && sheds.Add(1) > 3 {
			return false
		}
		stub.AwaitAnswers(r, earlier+50)
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(answers[id])
		return true
	})
	b = endIn(t, d, c, lines, inProfile("once"))
	if b.RequestCounts.Failed != 1 || b.RequestCounts.Completed != 59 {
		t.Errorf("without retries: %+v, want one line that has failed", b.RequestCounts)
	}
	if n := stub.Requests() - before; n != 63 {
		t.Errorf("%d requests were sent, want 60, and 3 again after 429", n)
	}
}

// A request is given up after the time of its profile.
func TestProfileRequestTimeout(t *testing.T) {
	t.Parallel()
	d, c, stub, _ := newProfiled(t, []string{profileOf("short", "{scheduling: "+
		"{request_timeout_seconds: 2, retry_policy: {max_retries: 1, backoff_seconds: [0]}}}")})
	lines := NewLines("timeout", "m", 12)
	stub.Intercept(func(_ http.ResponseWriter, r *http.Request, body []byte) bool {
		if lines.lineOf(body) != "timeout-3" {
			return false
		}
		<-r.Context().Done()
		return true
	})
	b := endIn(t, d, c, lines, inProfile("short"))
	attempts := stub.Ledger()[bodiesOf(lines)["timeout-3"]]
	if len(attempts) != 2 {
		t.Errorf("the line was sent %d times, want 2", len(attempts))
	}
	for _, a := range attempts {
		if took := a.End.Sub(a.Begin); took < 1900*time.Millisecond || took > 4*time.Second {
			t.Errorf("a request was given up after %v, want 2s", took)
		}
	}
	_, failed := d.Client().Results(t, b)
	if b.Status != "completed" || len(failed) != 1 || failed[0].CustomID != "timeout-3" ||
		failed[0].Error == nil || failed[0].Error.Code != "upstream_timeout" {
		t.Errorf("the batch is %s, the errors are %+v", b.Status, failed)
	}
}

// No more lines of a batch are in flight than its profile permits, and its deadline and priority
// are those of the profile.
func TestProfileConcurrencyWindowAndPriority(t *testing.T) {
	t.Parallel()
	d, c, stub, _ := newProfiled(t, []string{
		profileOf("narrow", "{scheduling: {max_concurrency: 3, completion_window: 4h, "+
			"priority: high}}"),
		profileOf("whenever", "{scheduling: {max_concurrency: 5, completion_window: best_effort, "+
			"priority: low}}")})
	stub.MinDelay, stub.MaxDelay = 10*time.Millisecond, 30*time.Millisecond
	narrow, whenever := NewLines("narrow", "m", 60), NewLines("whenever", "m", 60)
	within := option.WithJSONSet("completion_window", "4h")
	a := createIn(t, c, narrow, inProfile("narrow"), within)
	b := createIn(t, c, whenever, inProfile("whenever"),
		option.WithJSONSet("aibrix.profile.overrides.scheduling.completion_window", "best_effort"))
	shown := func(b *openai.Batch) (deadline *int64, priority int, resolved string) {
		var of struct {
			Tidefill struct {
				Deadline *int64
				Priority int
			}
			Resolved struct {
				Window string `json:"effective_completion_window"`
			} `json:"_aibrix"`
		}
		if err := json.Unmarshal([]byte(b.RawJSON()), &of); err != nil {
			t.Fatal(err)
		}
		return of.Tidefill.Deadline, of.Tidefill.Priority, of.Resolved.Window
	}
	if at, priority, window := shown(a); at == nil || *at-a.CreatedAt != 4*3600 ||
		a.ExpiresAt != *at || priority <= 0 || window != "4h" {
		t.Errorf("4h and high: deadline %v, expires_at %d, created %d, priority %d, window %q", at,
			a.ExpiresAt, a.CreatedAt, priority, window)
	}
	if at, priority, window := shown(b); at != nil || b.ExpiresAt != 0 || priority >= 0 ||
		window != "best_effort" {
		t.Errorf("best_effort and low: deadline %v, expires_at %d, priority %d, window %q", at,
			b.ExpiresAt, priority, window)
	}
	client := d.Client()
	client.CheckComplete(t, endOf(t, d, a.ID), narrow)
	client.CheckComplete(t, endOf(t, d, b.ID), whenever)
	for limit, lines := range map[int]Lines{3: narrow, 5: whenever} {
		if most := stub.AttemptList(lines).Most(nil); most != limit {
			t.Errorf("%d lines were in flight at once, want %d", most, limit)
		}
	}
}

// Lines of a batch of higher priority start at once on a full pool, instead of those of a batch
// that may be preempted, which are sent again without a charge.
func TestProfileAllowPreempt(t *testing.T) {
	t.Parallel()
	once := ", retry_policy: {max_retries: 0}}}"
	d, c, stub, _ := newProfiled(t, []string{
		profileOf("slow", "{scheduling: {priority: low, allow_preempt: true"+once),
		profileOf("fast", "{scheduling: {priority: high"+once),
	}, "flowcontrol.policy=fixed", "flowcontrol.fixed.per_runner=2")
	slow, fast := NewLines("slow", "m", 4), NewLines("fast", "m", 4)
	release := make(chan struct{})
	stub.Intercept(func(_ http.ResponseWriter, r *http.Request, body []byte) bool {
		if fast.lineOf(body) != "" {
			return false
		}
		select {
		case <-release:
			return false
		case <-r.Context().Done():
			return true
		}
	})
	first := createIn(t, c, slow, inProfile("slow"))
	await(t, 10*time.Second, "the pool is full", func() bool { return stub.InFlight() == 2 })
	second := endOf(t, d, createIn(t, c, fast, inProfile("fast")).ID)
	d.Client().CheckComplete(t, second, fast)
	close(release)
	d.Client().CheckComplete(t, endOf(t, d, first.ID), slow)
	if n := len(stub.AttemptList(slow)); n < 6 || n > 8 {
		t.Errorf("lines of the batch that was preempted were sent %d times, want 4, and 2 to 4 "+
			"again", n)
	}
	if n := len(stub.AttemptList(fast)); n != 4 {
		t.Errorf("lines of the other batch were sent %d times, want 4", n)
	}
}

// Lines go to pools of the providers that their profile prefers, in this order, and to those that
// the provider reclaims only if it allows that.
func TestProfileProviders(t *testing.T) {
	t.Parallel()
	spot, steady, dir := NewStub(t, "m"), NewStub(t, "m"), newRegistryDir(t)
	dir.profiles(
		profileOf("steady", "{}"),
		profileOf("any", "{scheduling: {allow_spot: true, provider_preference: [x, y]}}"),
		profileOf("turned", "{scheduling: {allow_spot: true, provider_preference: [y, x]}}"),
		profileOf("elsewhere", "{scheduling: {allow_spot: true, provider_preference: [z]}}"),
		profileOf("spotless", "{scheduling: {provider_preference: [x]}}"))
	cfg := filepath.Join(t.TempDir(), "tidefill.yaml")
	if err := os.WriteFile(cfg, fmt.Appendf(nil, `
upstreams: [{url: %q, pool: a}, {url: %q, pool: b}]
pools:
- {name: a, models: [m], max: 1, provider: x, reclaim: 0.5}
- {name: b, models: [m], max: 1, provider: y}
`, spot.URL, steady.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	d := NewDaemon(t, Options{Keys: "own=" + ownKey, Args: []string{"--config", cfg},
		Set: []string{"registry.dir=" + dir.path, "flowcontrol.policy=fixed",
			"flowcontrol.fixed.per_runner=2"}})
	c, client := sdk(d, ownKey, option.WithMaxRetries(0)), d.Client()

	elsewhere := createIn(t, c, NewLines("elsewhere", "m", 3), inProfile("elsewhere"))
	spotless := createIn(t, c, NewLines("spotless", "m", 3), inProfile("spotless"))
	for _, b := range []*openai.Batch{elsewhere, spotless} {
		client.Await(t, b.ID, 10*time.Second, func(b Batch) bool {
			return b.WaitsFor("no_open_pool")
		})
	}
	lines := NewLines("steady", "m", 40)
	client.CheckComplete(t, endIn(t, d, c, lines, inProfile("steady")), lines)
	if n := len(spot.AttemptList(lines)); n > 0 {
		t.Errorf("%d lines came to the pool that is reclaimed", n)
	}
	for profile, stubs := range map[string][]*Stub{"any": {spot, steady},
		"turned": {steady, spot}} {
		release := make(chan struct{})
		hold := func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
			select {
			case <-release:
			case <-r.Context().Done():
			}
			return false
		}
		spot.Intercept(hold)
		steady.Intercept(hold)
		few := NewLines("few-"+profile, "m", 2)
		b := createIn(t, c, few, inProfile(profile))
		await(t, 10*time.Second, "two lines are in flight", func() bool {
			return spot.InFlight()+steady.InFlight() == 2
		})
		if n := len(stubs[0].AttemptList(few)); n != 2 {
			t.Errorf("%s: %d of 2 lines came to the first choice", profile, n)
		}
		more := NewLines("more-"+profile, "m", 2)
		other := createIn(t, c, more, inProfile(profile))
		await(t, 10*time.Second, "four lines are in flight", func() bool {
			return spot.InFlight()+steady.InFlight() == 4
		})
		if n := len(stubs[1].AttemptList(more)); n != 2 {
			t.Errorf("%s: %d of 2 lines came to the second choice", profile, n)
		}
		close(release)
		client.CheckComplete(t, endOf(t, d, b.ID), few)
		client.CheckComplete(t, endOf(t, d, other.ID), more)
	}
	for _, b := range []*openai.Batch{elsewhere, spotless} {
		if now, err := client.Batch(b.ID); err != nil || !now.WaitsFor("no_open_pool") {
			t.Errorf("a batch that no pool is open to: %v, %+v", err, now)
		}
	}
}
