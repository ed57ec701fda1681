package inline

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/scheduler/flows"
)

// rollout is a use case with 20 % of an adapter.
func rollout(sticky Sticky) UseCase {
	return UseCase{Name: "u", Sticky: sticky, Targets: []Target{{"base", 80}, {"adapter", 20}}}
}

// within reports whether the adapter's share of draws is within 2 points.
func within(t *testing.T, what string, share, adapter, all float64) {
	t.Helper()
	if got := adapter / all; got < share-0.02 || got > share+0.02 {
		t.Errorf("%s: the adapter has %.1f %%, want %.0f %%", what, 100*got, 100*share)
	}
}

func TestTargetsAreDrawnByWeight(t *testing.T) {
	var d draws
	adapter := 0.0
	for i := 1; i <= 1000; i++ {
		if d.target(rollout(Sticky{}), 0) == "adapter" {
			adapter++
		}
		if i%100 == 0 {
			within(t, fmt.Sprint(i, " requests"), 0.2, adapter, float64(i))
		}
	}
	for range 100 {
		if d.target(UseCase{Name: "v", Targets: []Target{{"base", 1}, {"off", 0}}}, 0) != "base" {
			t.Fatal("a target without weight was drawn")
		}
	}
}

// A key keeps its target. If the weights change, no more keys move than must.
func TestStickyTargets(t *testing.T) {
	var d draws
	u := rollout(Sticky{Prefix: true})
	drawn := map[uint64]string{}
	count := func() (adapter float64, moved int) {
		for key := uint64(1); key <= 1000; key++ {
			got := d.target(u, key*multiplier)
			if before := drawn[key]; before != "" && before != got {
				moved++
			}
			if drawn[key] = got; got == "adapter" {
				adapter++
			}
		}
		return adapter, moved
	}
	adapter, _ := count()
	within(t, "1000 prefixes", 0.2, adapter, 1000)
	if again, moved := count(); again != adapter || moved != 0 {
		t.Errorf("again %v, %d moved", again, moved)
	}
	u.Targets = []Target{{"base", 50}, {"adapter", 50}}
	adapter, moved := count()
	within(t, "after the change", 0.5, adapter, 1000)
	if moved != 300 {
		t.Errorf("%d of 1000 moved, want 300", moved)
	}
	u.Targets = []Target{{"adapter", 50}, {"other", 50}}
	if _, moved = count(); moved != 500 {
		t.Errorf("without base %d of 1000 moved, want 500", moved)
	}
	for key := range uint64(3 * maxAssigned) {
		d.target(u, key+1)
	}
	if n := d.cases["u"].recent.Len(); n != maxAssigned || len(d.cases["u"].assigned) != n {
		t.Errorf("%d keys are remembered", n)
	}
	total := 0
	for _, target := range d.cases["u"].targets {
		total += target.count
	}
	if total != maxAssigned {
		t.Errorf("the targets count %d keys", total)
	}
}

func TestStickyKeys(t *testing.T) {
	h := http.Header{"X-User": {"a"}}
	prompt := []byte(strings.Repeat("x", 3000))
	other := append([]byte("y"), prompt...)
	later := append(append([]byte{}, prompt...), "and more"...)
	key := func(by Sticky, h http.Header, tenant string, prompt []byte) uint64 {
		return stickyKey(by, h, tenant, prompt, prefixes(tenant, prompt))
	}
	byPrefix, byHeader := Sticky{Prefix: true}, Sticky{Header: "X-User", Prefix: true}
	if key(Sticky{}, h, "a", prompt) != 0 || key(byPrefix, h, "a", nil) != 0 {
		t.Error("a key without need")
	}
	if key(byPrefix, h, "a", prompt) != key(byPrefix, h, "a", later) {
		t.Error("a longer conversation has another key")
	}
	if key(byPrefix, h, "a", prompt) == key(byPrefix, h, "a", other) ||
		key(byPrefix, h, "a", prompt) == key(byPrefix, h, "b", prompt) ||
		key(byPrefix, h, "a", []byte("a")) == key(byPrefix, h, "a", []byte("b")) {
		t.Error("different prompts or tenants have the same key")
	}
	if key(byHeader, h, "a", prompt) != key(byHeader, h, "a", other) ||
		key(byHeader, nil, "a", prompt) != key(byPrefix, nil, "a", prompt) {
		t.Error("the header does not decide")
	}
}

func TestPrefixes(t *testing.T) {
	a, b := strings.Repeat("a", 2048), strings.Repeat("b", 1024)
	one, two := prefixes("t", []byte(a+b)), prefixes("t", []byte(a+a))
	if len(one) != 3 || len(two) != 4 || one[0] != two[0] || one[1] != two[1] || one[2] == two[2] ||
		one[0] == one[1] {
		t.Errorf("got %x and %x", one, two)
	}
	if other := prefixes("v", []byte(a+b)); other[0] == one[0] {
		t.Error("two tenants have the same prefix")
	}
	if n := len(prefixes("t", []byte(strings.Repeat(a, 100)))); n != maxPrefixes {
		t.Errorf("%d hashes", n)
	}
}

func TestPromptTokens(t *testing.T) {
	estimate := func(body string) int {
		b, f := readPieces([]byte(body), 1000)
		if f != nil {
			t.Fatal(f)
		}
		return b.promptTokens()
	}
	words := strings.Repeat("word ", 800)
	text := estimate(`{"model":"m","prompt":"` + words + `"}`)
	if text < 1000 || text > 1010 {
		t.Errorf("4,000 bytes are %d tokens", text)
	}
	image := `{"image_url":{"url":"data:image/png;base64,` + strings.Repeat("A", 50_000) + `"}}`
	seen := estimate(`{"model":"m","messages":[` + image + `,` + image + `,"` + words + `"]}`)
	if seen < text+2*imageTokens || seen > text+2*imageTokens+50 {
		t.Errorf("with two images %d tokens, without %d", seen, text)
	}
}

func TestClasses(t *testing.T) {
	c := DefaultConfig()
	chat, vip := UseCase{}, UseCase{Class: flows.Critical}
	may := UseCase{Critical: true}
	for _, test := range []struct {
		of         UseCase
		tier, want string
	}{
		{chat, "", "standard"}, {chat, "auto", "standard"}, {chat, "default", "standard"},
		{chat, "flex", "flex"}, {chat, "priority", "standard"}, {may, "priority", "critical"},
		{vip, "", "critical"}, {vip, "flex", "flex"}, {UseCase{Implicit: true}, "", "flex"},
		{UseCase{Implicit: true}, "priority", "flex"}, {UseCase{Class: "gone"}, "", "flex"},
	} {
		if got, f := c.classOf(test.of, test.tier); f != nil || got != test.want {
			t.Errorf("%+v with %q: got %s %v, want %s", test.of, test.tier, got, f, test.want)
		}
	}
	if _, f := c.classOf(chat, "scale"); f == nil || f.code != "invalid_value" {
		t.Errorf("an unknown tier: %v", f)
	}
}

func TestDeadlines(t *testing.T) {
	c := DefaultConfig()
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "1h": time.Hour, "0s": 0,
		"2026-11-29T12:05:00Z":          5 * time.Minute,
		"2026-11-29T13:05:00+01:00":     5 * time.Minute,
		"Sun, 29 Nov 2026 12:05:00 GMT": 5 * time.Minute,
	} {
		got, f := c.deadline(header, tierFlex, now)
		if f != nil || !got.Equal(now.Add(want)) {
			t.Errorf("%s: got %v %v", header, got, f)
		}
	}
	for _, header := range []string{"soon", "-1s", "61m", "2026-11-29T11:59:59Z", "600"} {
		if got, f := c.deadline(header, tierFlex, now); f == nil {
			t.Errorf("%s: got %v", header, got)
		}
	}
	for _, tier := range []string{"", tierPriority} {
		if got, f := c.deadline("5m", tier, now); f != nil || !got.IsZero() {
			t.Errorf("of %q: got %v %v", tier, got, f)
		}
	}
}

// What the planner is asked for, end to end.
func TestPlanRequest(t *testing.T) {
	all := newRunners(t, startRunner(t))
	u := &useCases{cases: map[string]UseCase{"tenant-a/u": {Class: flows.Critical, Weight: 3,
		Objective: 40 * time.Millisecond, Pools: []string{"p"}, Targets: []Target{{"n", 1}},
		Sticky: Sticky{Prefix: true}}}}
	s := newService(t, all, u)
	answer, text := s.post("/v1/completions",
		`{"model":"u","prompt":"`+strings.Repeat("x", 2100)+`","max_tokens":9}`)
	r := all.last()
	if answer.StatusCode != 200 || r.Model != "n" || r.Objective != 40*time.Millisecond ||
		fmt.Sprint(r.Pools) != "[p]" || r.MaxTokens != 9 || r.PromptTokens < 500 ||
		len(r.Prefix) != 2 || !r.Deadline.IsZero() || r.Flow != (flows.Flow{Class: "critical",
		UseCase: "u", Tenant: "tenant-a", Weight: 3}) {
		t.Errorf("got %d %s for %+v", answer.StatusCode, text, r)
	}
	for name, want := range map[string]string{"X-Tidefill-Use-Case": "u",
		"X-Tidefill-Class": "critical", "X-Tidefill-Target": "n"} {
		if got := answer.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if s.counted("tidefill_inline_requests_total", "u") != 1 {
		t.Error("the request is not counted")
	}
	_, _ = s.post("/v1/completions", `{"model":"u","service_tier":"flex","prompt":"a"}`,
		func(r *http.Request) { r.Header.Set(deadlineHeader, "90s") })
	if r := all.last(); r.Flow.Class != "flex" || time.Until(r.Deadline) < 80*time.Second {
		t.Errorf("asked for %+v", r)
	}
	models, _ := client.Do(func() *http.Request {
		r := s.request(t.Context(), "/v1/models/u", "")
		r.Method = http.MethodGet
		return r
	}())
	models.Body.Close()
	if models.StatusCode != http.StatusOK {
		t.Errorf("its use case is no model: %d", models.StatusCode)
	}
}

// A request may name an InferenceObjective, which sets its class, and raises it only where the use
// case may be critical.
func TestObjectivesSetTheClass(t *testing.T) {
	all := newRunners(t, startRunner(t))
	s := newService(t, all, &useCases{cases: map[string]UseCase{
		"/m":    {Class: "standard"},
		"/m2":   {Class: "standard", Critical: true, Targets: []Target{{"m", 1}}},
		"/last": {Class: "critical", Critical: true, Targets: []Target{{"m", 1}}},
	}})
	for _, c := range []struct{ model, header, name, want string }{
		{"m", "X-Gateway-Inference-Objective", "flex", "flex"},
		{"m", "X-Gateway-Inference-Objective", "critical", "standard"},
		{"m2", "X-Gateway-Inference-Objective", "critical", "critical"},
		{"m2", "X-Llm-D-Inference-Objective", "critical", "critical"},
		{"last", "X-Llm-D-Inference-Objective", "standard", "standard"},
		{"last", "X-Llm-D-Inference-Objective", "unknown", "critical"},
	} {
		answer, text := s.post("/v1/completions", `{"model":"`+c.model+`","prompt":"a"}`,
			func(r *http.Request) { r.Header.Set(c.header, c.name) })
		if got := all.last().Flow.Class; answer.StatusCode != 200 || got != c.want {
			t.Errorf("%s with %s: class %s, want %s: %s", c.model, c.name, got, c.want, text)
		}
	}
}
