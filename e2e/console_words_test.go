package e2e

import (
	"testing"
	"time"
)

// The list of batches says why a batch failed before any line ran. What a line holds is left out.
func TestConsoleSaysWhyBatchesFailed(t *testing.T) {
	t.Parallel()
	admin := freeAddress(t)
	d := NewDaemon(t, Options{Admin: admin, Upstreams: []string{NewStub(t, "m").URL}})
	b := NewBrowser(t)
	b.Open(t, "http://"+admin+"/console")
	for _, test := range []struct {
		content string
		want    []string
	}{
		{string(NewLines("unserved", "other", 2).Content), []string{
			"model not found in line 1: ", "other"}},
		{"\n", []string{"empty file: The file has no requests"}},
		{"{\"custom_id\": \"secret\n{\n", []string{"invalid JSON in line 1 (and 1 more)"}},
	} {
		batch := d.Client().Submit(t, []byte(test.content), "")
		b.Await(t, time.Minute, "#batch-rows tr", append(test.want, batch.ID, "failed")...)
	}
	if got := b.Evaluate(t, "document.body.innerText.includes('secret')"); got != "false" {
		t.Error("the page shows what a line holds")
	}
	if faults := b.Faults(); len(faults) > 0 {
		t.Errorf("the page reports %q", faults)
	}
}

// Lines that a cancelled batch did not run are no failed ones.
func TestConsoleCountsLinesThatDidNotRun(t *testing.T) {
	t.Parallel()
	gate, admin := make(chan struct{}), freeAddress(t)
	stub := newHalfStub(t, "m", gate) // which refuses each second line, and answers no other
	d := NewDaemon(t, Options{Admin: admin, Upstreams: []string{stub.URL}, Set: with(
		"flowcontrol.policy=fixed", "flowcontrol.fixed.per_runner=16")})
	c := d.Client()
	batch := c.Submit(t, NewLines("stopped", "m", 10).Content, "")
	c.Await(t, batch.ID, time.Minute, func(b Batch) bool { return b.RequestCounts.Failed == 5 })
	if answer, err := c.Do("POST", "/v1/batches/"+batch.ID+"/cancel", "", nil); err != nil ||
		answer.Status != 200 {
		t.Fatalf("cancel the batch: status %d, %v", answer.Status, err)
	}
	ended := c.AwaitEnd(t, batch.ID, time.Minute)
	if ended.RequestCounts.Failed != 10 { // as OpenAI counts
		t.Errorf("%d lines failed, want 10", ended.RequestCounts.Failed)
	}
	const want = "5 failed, 5 not run"
	b := NewBrowser(t)
	b.Open(t, "http://"+admin+"/console")
	b.Await(t, time.Minute, "#batch-rows tr", "cancelled", "5 of 10 (50 %), "+want)
	if got := b.Evaluate(t, "document.querySelector('#batch-rows .failed').style.width"); got !=
		"50%" {
		t.Errorf("the part of failed lines is %s wide", got)
	}
	b.Open(t, "http://"+admin+"/console#batch/"+batch.ID)
	b.Await(t, time.Minute, "#batch .figures", "5 of 10", want)
	b.Await(t, time.Minute, "#batch table", "failed\t5\t50.0 %", "not run\t5\t50.0 %")
	b.Open(t, d.URL+"/")
	b.Await(t, time.Minute, "#rows tr", "cancelled", "5 of 10, "+want, "Retry failed")
	if faults := b.Faults(); len(faults) > 0 {
		t.Errorf("the page reports %q", faults)
	}
}
