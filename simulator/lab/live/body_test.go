package live

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/runner/emulator"
	"github.com/tidefill/tidefill/simulator/workload"
)

// Runners count as many tokens as the workload asks for.
func TestBodiesHaveTheLengthsOfTheWorkload(t *testing.T) {
	runner := newRunner(t)
	for i, r := range []workload.Request{
		{Input: 1, Output: 1}, {Input: 7, Output: 3}, {Input: 900, Output: 12},
		{Input: 500, Output: 2, Prefix: []uint64{1, 2}, Segment: 200},
	} {
		body, err := newBody(r, uint64(i), false)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		runner.Handler().ServeHTTP(w, httptest.NewRequest("POST", "/v1/completions",
			strings.NewReader(string(body))))
		var answer struct {
			Usage struct {
				Prompt     int `json:"prompt_tokens"`
				Completion int `json:"completion_tokens"`
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
			t.Fatalf("%v: %s", err, w.Body)
		}
		if u := answer.Usage; u.Prompt != r.Input || u.Completion != r.Output {
			t.Errorf("%+v became %d and %d tokens", r, u.Prompt, u.Completion)
		}
	}
}

// Requests share the text of the segments that they share, and no more.
func TestPromptsShareTheirSegments(t *testing.T) {
	a := prompt(workload.Request{Input: 100, Prefix: []uint64{1, 2}, Segment: 20}, 1)
	b := prompt(workload.Request{Input: 100, Prefix: []uint64{1, 3}, Segment: 20}, 2)
	shared := 0
	for shared < len(a) && a[shared] == b[shared] {
		shared++
	}
	if want := int(20 * bytesPerToken); shared < want || shared > want+4 {
		t.Errorf("the first %d bytes are equal, want %d", shared, want)
	}
}

func newRunner(t *testing.T) *emulator.Server {
	t.Helper()
	c := emulator.DefaultConfig()
	c.Profile, c.Models = emulator.Instant, []string{servedModel}
	c.Output = emulator.Lengths{Median: 1, Max: 1}
	runner, err := emulator.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return runner
}
