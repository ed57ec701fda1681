package dispatch

import (
	"fmt"
	"testing"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// What a runner's streams brought is reported also after their end, and nothing is kept of a runner
// without a request, however many runners come and go.
func TestCountersOfRunnersWithoutRequestsAreDropped(t *testing.T) {
	r := newRequests()
	stays := r.enter("stays")
	for i := range 100 {
		d := r.enter(fmt.Sprint("pod-", i))
		d.add(2, 1, 3)
		r.leave(d)
		got := r.report()
		want := plan.RequestsDecoded{Runner: fmt.Sprint("pod-", i), Tokens: 2, Gaps: 1, Time: 3}
		if len(got) != 1 || got[0] != want {
			t.Fatalf("reported %+v, want %+v", got, want)
		}
	}
	if len(r.decodedBy) != 1 {
		t.Errorf("%d counters are kept, want 1", len(r.decodedBy))
	}
	stays.add(1, 0, 0)
	if got := r.report(); len(got) != 1 || got[0].Runner != "stays" {
		t.Errorf("reported %+v, want what the request in flight has brought", got)
	}
}
