package store

import (
	"fmt"
	"testing"
)

func TestFailuresAreJoinedByCause(t *testing.T) {
	var f Failures
	for i := range 10 {
		f.Add(Failure{Count: 1, Status: 500, Sample: fmt.Sprintf("boom %d", i), Runner: "r1"})
	}
	f.Add(Failure{Count: 4, Status: 500, Sample: "boom 99", Runner: "r2"})
	f.Add(Failure{Count: 3, Status: 400, Sample: "too long"})
	f.Add(Failure{Count: 2, Code: "upstream_timeout", Sample: "no answer"})
	f.Add(Failure{Count: 1, Status: 422, Sample: "odd"})
	top := f.Top()
	if top[0] != (Failure{14, 500, "", "boom 0", "r1"}) || top[1].Count != 3 || top[2].Count != 2 {
		t.Errorf("got %+v", top)
	}
	if r := f.RunnerOf(Failure{Status: 500, Sample: "boom"}); r != "" {
		t.Errorf("another text is of %q", r)
	}
	if r := f.RunnerOf(Failure{Status: 500, Sample: "boom 7"}); r != "r1" {
		t.Errorf("the text is of %q", r)
	}
}

func TestFailuresAreBounded(t *testing.T) {
	var f Failures
	sum := 0
	for i := range 10_000 {
		f.Add(Failure{Count: 1, Status: 400, Sample: fmt.Sprintf("%c%c", 'a'+i%26, 'a'+i/26%26)})
	}
	for _, x := range f {
		sum += x.Count
	}
	if len(f) > 2*maxFailures || sum != 10_000 {
		t.Errorf("%d causes with %d failures", len(f), sum)
	}
	if top := f.Top(); top[0].Sample != "" || top[0].Status != 400 {
		t.Errorf("got %+v", top[0])
	}
}
