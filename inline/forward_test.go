package inline

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/dispatch/plan"
)

// newFollower serves interactive requests of a pool that another process leads.
func newFollower(t *testing.T, leader *service) *service {
	t.Helper()
	to, err := url.Parse(leader.url)
	if err != nil {
		t.Fatal(err)
	}
	all := newRunners(t)
	all.decide(func(context.Context, plan.Request) error { return &Elsewhere{URL: to} })
	return newService(t, all, nil)
}

// A request to a process that does not lead the pool is answered as by the leader, also if the part
// of its body that streams has a fault.
func TestForwardedAsOnTheLeader(t *testing.T) {
	engine := newRecorder(t)
	leader := newService(t, newRunners(t, engine.url), nil)
	follower := newFollower(t, leader)
	for name, body := range largeFaults {
		for _, length := range []int64{int64(len(body)), -1} {
			ask := func(s *service) (int, string, string) {
				answer, text := s.post("/v1/chat/completions", body, func(r *http.Request) {
					r.ContentLength = length
				})
				return answer.StatusCode, answer.Header.Get("Content-Type"), text
			}
			status, kind, text := ask(follower)
			wantStatus, wantKind, wantText := ask(leader)
			if status != http.StatusBadRequest || status != wantStatus || kind != wantKind ||
				text != wantText {
				t.Errorf("%s: got %d %s %s, want %d %s %s", name, status, kind, text, wantStatus,
					wantKind, wantText)
			}
			engine.none(t, name)
		}
	}
	body := `{"model":"m","p":"` + strings.Repeat("x", 3*holdBytes) + `"}`
	if answer, text := follower.post("/v1/chat/completions", body); answer.StatusCode != 200 {
		t.Errorf("a body without a fault: got %d %s", answer.StatusCode, text)
	}
	if got := <-engine.bodies; got != body {
		t.Errorf("the engine got %d bytes, want %d", len(got), len(body))
	}
}

// A request that goes to the leader counts there only, and its answer says what is left there.
func TestForwardedCountsOnce(t *testing.T) {
	engine := newRecorder(t)
	leader := newService(t, newRunners(t, engine.url), nil)
	follower := newFollower(t, leader)
	limit := api.DefaultConfig()
	limit.RequestsPerMinute = 10
	leader.api.SetConfig(limit)
	follower.api.SetConfig(limit)
	const left = "X-Ratelimit-Remaining-Requests"
	for i := range 11 {
		answer, text := follower.post("/v1/chat/completions", `{"model":"m"}`)
		status, want := http.StatusOK, []string{strconv.Itoa(9 - i)}
		if i == 10 {
			status, want = http.StatusTooManyRequests, []string{"0"}
		} else {
			<-engine.bodies
		}
		if got := answer.Header[left]; answer.StatusCode != status || !slices.Equal(got, want) {
			t.Errorf("request %d: got %d with %v left, want %d and %v: %s", i, answer.StatusCode,
				got, status, want, text)
		}
	}
	if answer, _ := follower.post("/v1/files", `{}`); answer.Header.Get(left) != "9" {
		t.Errorf("the process that passed them on has %q left, want 9", answer.Header.Get(left))
	}
}
