package inline

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

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
