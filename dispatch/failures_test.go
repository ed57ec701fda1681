package dispatch

import (
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// The cause of a failure is the same whether it is read from the answer or, later, from the error
// file.
func TestCausesOfFailures(t *testing.T) {
	for _, test := range []struct {
		f    failure
		want store.Failure
	}{
		{failure{status: 500, body: []byte("boom\n")}, store.Failure{Status: 500, Sample: "boom"}},
		{failure{status: 500, body: nil}, store.Failure{Status: 500}},
		{failure{status: 400, body: []byte(
			`{"error":{"message":"too  long","type":"x","code":"context_length_exceeded"}}`)},
			store.Failure{Status: 400, Code: "context_length_exceeded", Sample: "too long"}},
		{failure{status: 404, body: []byte(`{"object":"error","message":"no such","code":404}`)},
			store.Failure{Status: 404, Sample: "no such"}},
		{failure{status: 400, body: []byte(`{"error":"model not found"}`)},
			store.Failure{Status: 400, Sample: "model not found"}},
		{failure{status: 422, body: []byte(`{"detail":[{"msg":"x"}]}`)},
			store.Failure{Status: 422, Sample: `{"detail":[{"msg":"x"}]}`}},
		{failure{code: "upstream_timeout", message: "no answer"},
			store.Failure{Code: "upstream_timeout", Sample: "no answer"}},
		{failure{status: 500, body: []byte("a\x1b[31m\u202eb")},
			store.Failure{Status: 500, Sample: "a\uFFFD[31m\uFFFDb"}},
	} {
		test.want.Count = 1
		if got := test.f.cause(""); got != test.want {
			t.Errorf("of %d %q: got %+v, want %+v", test.f.status, test.f.body, got, test.want)
		}
		row := batchfile.AppendResult(nil, batchfile.Result{ID: "x", CustomID: []byte(`"a"`),
			Status: test.f.status, Body: test.f.body, ErrorCode: test.f.code,
			ErrorMessage: test.f.message})
		if got := causeOf(row); got != test.want {
			t.Errorf("of the row %s: got %+v, want %+v", row, got, test.want)
		}
	}
	long := failure{status: 500, body: []byte(strings.Repeat("é", 1000))}
	if got := long.cause("").Sample; len(got) > maxSample+5 || !strings.HasSuffix(got, "…") {
		t.Errorf("a long sample is %q", got)
	}
}

func FuzzCauseOf(f *testing.F) {
	f.Add([]byte(`{"response":{"status_code":500,"body":"x"}}`))
	f.Add([]byte(`{"error":{"code":"a","message":"b"}}`))
	f.Fuzz(func(t *testing.T, row []byte) {
		if c := causeOf(row); c.Count != 1 || len(c.Sample) > 4*maxSample {
			t.Errorf("%q: %+v", row, c)
		}
	})
}

// Failures of runners are those of the last minutes, and refusals show nothing that users wrote.
func TestFailuresOfRunners(t *testing.T) {
	rf := &runnerFailures{runners: map[string]*[recentMinutes]minuteFailures{}}
	end := func(at int, runner string, outcome plan.Outcome, status int, body string) {
		f := &flight{failure: failure{status: status, body: []byte(body)}}
		f.Start.Runner, f.Outcome, f.Status = runner, outcome, status
		rf.count(time.Unix(int64(at), 0), f)
	}
	pools := []plan.PoolStatus{{ID: "m", Runners: []plan.RunnerStatus{{ID: "a"},
		{ID: "b", Failing: true, Open: true, Bad: 37, Judged: 40}, {ID: "c"}}}}
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
	if got, want := all[1].Text(), `failing: 500 "boom", 37 of the last 40`; got != want {
		t.Errorf("got %q, want %q", got, want)
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
