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
