package work

import (
	"strings"
	"testing"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// The cause of a failure is the same whether it is read from the answer or, later, from the error
// file.
func TestCausesOfFailures(t *testing.T) {
	for _, test := range []struct {
		f    Failure
		want store.Failure
	}{
		{Failure{Status: 500, Body: []byte("boom\n")}, store.Failure{Status: 500, Sample: "boom"}},
		{Failure{Status: 500, Body: nil}, store.Failure{Status: 500}},
		{Failure{Status: 400, Body: []byte(
			`{"error":{"message":"too  long","type":"x","code":"context_length_exceeded"}}`)},
			store.Failure{Status: 400, Code: "context_length_exceeded", Sample: "too long"}},
		{Failure{Status: 404, Body: []byte(`{"object":"error","message":"no such","code":404}`)},
			store.Failure{Status: 404, Sample: "no such"}},
		{Failure{Status: 400, Body: []byte(`{"error":"model not found"}`)},
			store.Failure{Status: 400, Sample: "model not found"}},
		{Failure{Status: 422, Body: []byte(`{"detail":[{"msg":"x"}]}`)},
			store.Failure{Status: 422, Sample: `{"detail":[{"msg":"x"}]}`}},
		{Failure{Code: "upstream_timeout", Message: "no answer"},
			store.Failure{Code: "upstream_timeout", Sample: "no answer"}},
		{Failure{Status: 200, Body: []byte("{}"), Code: "check_failed", Message: "pattern: why"},
			store.Failure{Status: 200, Code: "check_failed", Sample: "pattern: why"}},
		{Failure{Status: 500, Body: []byte("a\x1b[31m\u202eb")},
			store.Failure{Status: 500, Sample: "a\uFFFD[31m\uFFFDb"}},
	} {
		test.want.Count = 1
		if got := test.f.Cause(""); got != test.want {
			t.Errorf("of %d %q: got %+v, want %+v", test.f.Status, test.f.Body, got, test.want)
		}
		row := batchfile.AppendResult(nil, batchfile.Result{ID: "x", CustomID: []byte(`"a"`),
			Status: test.f.Status, Body: test.f.Body, ErrorCode: test.f.Code,
			ErrorMessage: test.f.Message})
		if got := CauseOf(row); got != test.want {
			t.Errorf("of the row %s: got %+v, want %+v", row, got, test.want)
		}
	}
	long := Failure{Status: 500, Body: []byte(strings.Repeat("é", 1000))}
	if got := long.Cause("").Sample; len(got) > maxSample+5 || !strings.HasSuffix(got, "…") {
		t.Errorf("a long sample is %q", got)
	}
}

func FuzzCauseOf(f *testing.F) {
	f.Add([]byte(`{"response":{"status_code":500,"body":"x"}}`))
	f.Add([]byte(`{"error":{"code":"a","message":"b"}}`))
	f.Fuzz(func(t *testing.T, row []byte) {
		if c := CauseOf(row); c.Count != 1 || len(c.Sample) > 4*maxSample {
			t.Errorf("%q: %+v", row, c)
		}
	})
}
