package e2e

import (
	"strings"
	"testing"
	"time"
)

// A batch that gets a higher priority while others run goes before them. A restart keeps it.
func TestPriorityChangesWhileBatchesRun(t *testing.T) {
	t.Parallel()
	stub := NewStub(t, "m")
	stub.MinDelay, stub.MaxDelay = 30*time.Millisecond, 30*time.Millisecond
	d := NewDaemon(t, Options{Upstreams: []string{stub.URL}, Set: []string{
		"scheduler.policy=priority", "flowcontrol.policy=fixed", "flowcontrol.fixed.per_runner=1"}})
	c := d.Client()
	first := c.Submit(t, NewLines("first", "m", 400).Content, `{"priority":5}`)
	second := c.Submit(t, NewLines("second", "m", 20).Content, "")
	c.Await(t, first.ID, time.Minute, func(b Batch) bool { return b.RequestCounts.Completed > 0 })
	if b, err := c.Batch(second.ID); err != nil || b.RequestCounts.Completed > 0 {
		t.Fatalf("of the batch with the lower priority %d lines are done, %v",
			b.RequestCounts.Completed, err)
	}
	if output, status := d.Run("batch", "set", second.ID, "--priority", "50"); status != 0 {
		t.Fatalf("batch set: status %d, %s", status, output)
	}
	c.AwaitEnd(t, second.ID, time.Minute)
	if b, err := c.Batch(first.ID); err != nil || b.Ended() {
		t.Errorf("the other batch is %s, %v", b.Status, err)
	}
	if output, status := d.Run("batch", "set", second.ID, "--priority", "1"); status != 1 {
		t.Errorf("batch set of an ended batch: status %d, %s", status, output)
	}
	d.Run("batch", "set", first.ID, "--priority", "9")
	d.Kill()
	d.Start()
	d.AwaitReady()
	if output, _ := d.Run("batch", "get", first.ID, "-o", "json"); !strings.Contains(output,
		`"priority":9`) {
		t.Errorf("after a restart: %s", output)
	}
}
