package live

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

func TestRouterChoosesTheLeastLoad(t *testing.T) {
	r := &router{kind: scenario.LeastRequests, loads: []load{{value: 2}, {value: 0}, {value: 1}},
		last: -1}
	var got []int
	for range 4 {
		got = append(got, r.choose(workload.Request{Input: 1}, nil))
	}
	// 1 gets the first; then 2 and 1 have as many, and 2 is next; then 1; then all have two.
	if want := [4]int{1, 2, 1, 2}; [4]int(got) != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestRouterAvoidsRunnersThatAreAway(t *testing.T) {
	r := &router{kind: scenario.LeastWork, loads: make([]load, 2), last: -1}
	r.lost(0)
	for range 3 {
		if i := r.choose(workload.Request{Input: 100}, nil); i != 1 {
			t.Errorf("runner %d got a request", i)
		}
	}
	if i := r.choose(workload.Request{Input: 1}, map[int]bool{1: true}); i < 0 {
		t.Error("with no runner left, none was chosen; the last resort is any")
	}
}

func TestRouterSendsPromptsToTheirHome(t *testing.T) {
	r := &router{kind: scenario.PrefixAffinity, loads: make([]load, 4), last: -1}
	request := workload.Request{Input: 100, Prefix: []uint64{1, 7}, Segment: 64}
	home := r.choose(request, nil)
	for range 5 {
		if i := r.choose(request, nil); i != home {
			t.Errorf("runner %d, want %d, which has the beginning of the prompt", i, home)
		}
	}
	homes := map[int]bool{}
	for name := range uint64(50) {
		request.Prefix[1] = name
		homes[r.home(request, nil)] = true
	}
	if len(homes) != 4 {
		t.Errorf("%d of 4 runners are homes", len(homes))
	}
	request.Prefix[1] = 7
	r.loads[home].value = 3000
	if i := r.choose(request, nil); i == home {
		t.Error("the home has clearly more work than another, and got the request")
	}
	r.loads[home] = load{away: true}
	if i := r.choose(request, nil); i == home {
		t.Error("the home is away, and got the request")
	}
}

// What a runner holds counts for routers that are aware of KV caches, not for those that count
// requests.
func TestRouterReadsKVCaches(t *testing.T) {
	const page = "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running %d\n" +
		"# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc %g\n"
	var address []string
	for _, text := range []string{fmt.Sprintf(page, 2, 0.9), fmt.Sprintf(page, 3, 0.1)} {
		runner := httptest.NewServer(http.HandlerFunc(
			func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }))
		defer runner.Close()
		address = append(address, strings.TrimPrefix(runner.URL, "http://"))
	}
	for kind, want := range map[scenario.Router]int{scenario.LeastRequests: 0,
		scenario.LeastWork: 1, scenario.PrefixAffinity: 1} {
		r := newRouter(scenario.Pool{Router: kind}, engine.Config{
			Profile: engine.Profile{KVTokens: 400_000}}, &runners{address: address})
		r.read(t.Context(), 0)
		r.read(t.Context(), 1)
		if got := r.choose(workload.Request{Input: 100}, nil); got != want {
			t.Errorf("%s: runner %d, want %d", kind, got, want)
		}
	}
}
