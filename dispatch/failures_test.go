package dispatch

import (
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/dispatch/work"
)

// Failures of runners are those of the last minutes, and refusals show nothing that users wrote.
func TestFailuresOfRunners(t *testing.T) {
	rf := &runnerFailures{runners: map[string]*[recentMinutes]minuteFailures{}}
	end := func(at int, runner string, outcome plan.Outcome, status int, body string) {
		f := &work.Flight{Failure: work.Failure{Status: status, Body: []byte(body)}}
		f.Start.Runner, f.Outcome, f.Status = runner, outcome, status
		rf.count(time.Unix(int64(at), 0), f)
	}
	pools := []plan.PoolStatus{{ID: "m", Runners: []plan.RunnerStatus{{ID: "a"},
		{ID: "b", Failing: true, Open: true, Bad: 37, Judged: 40, Failed: plan.RunnerFailure{
			Outcome: plan.Failed, Status: 502}}, {ID: "c"}}}}
	for i := range 100 {
		end(i, "a", plan.Succeeded, 200, "")
		end(i, "b", plan.Failed, 500, "boom")
		end(i, "c", plan.Shed, 503, "")
	}
	end(100, "a", plan.Refused, 400, `{"error":{"code":"bad","message":"my secret prompt"}}`)
	rf.publish(time.Unix(120, 0), pools)
	all := rf.all()
	if len(all) != 2 || all[0].Runner != "a" || all[0].Answered != 100 || all[0].Failed != 1 ||
		strings.Contains(all[0].Text(), "secret") || !strings.Contains(all[0].Text(), "400 bad") {
		t.Errorf("got %+v", all)
	}
	if got, want := all[1].Text(), `500 "boom", 37 of the last 40`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	rf.publish(time.Unix(100+60*(recentMinutes+1), 0), pools)
	if got, want := rf.all()[0].Text(), "502 (failed), 37 of the last 40"; got != want {
		t.Errorf("after the last minutes: %q, want %q", got, want)
	}
	pools[0].Runners[1].Failing = false
	rf.publish(time.Unix(100+60*(recentMinutes+1), 0), pools)
	if all := rf.all(); len(all) != 0 {
		t.Errorf("after the last minutes: %+v", all)
	}
	rf.publish(time.Unix(1000, 0), nil)
	if len(rf.runners) != 0 {
		t.Errorf("runners that are gone are kept: %d", len(rf.runners))
	}
}
