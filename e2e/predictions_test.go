package e2e

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// The plain installation, upstreams without pools, says when a batch will be done: one that runs,
// one without a deadline, and one that is not created.
func TestPlainInstallationPredicts(t *testing.T) {
	t.Parallel()
	stub := NewStub(t, "m")
	stub.MinDelay, stub.MaxDelay = 100*time.Millisecond, 100*time.Millisecond
	d := NewDaemon(t, Options{Upstreams: []string{stub.URL},
		Set: []string{"flowcontrol.policy=fixed", "flowcontrol.fixed.per_runner=4"}})
	c := d.Client()
	b := c.Submit(t, NewLines("predicted", "m", 800).Content, "")
	const half = 400
	c.Await(t, b.ID, time.Minute, func(b Batch) bool {
		return b.RequestCounts.Completed >= half && b.Tidefill.Finish != nil
	})
	seen := time.Now()
	running, err := c.Batch(b.ID)
	if err != nil {
		t.Fatal(err)
	}
	is := running.Tidefill
	switch {
	case is.Verdict == nil || *is.Verdict != "ok":
		t.Errorf("the verdict is %v, want ok", is.Verdict)
	case is.Finish == nil || is.ETA == nil || *is.ETA != *is.Finish:
		t.Errorf("the finish %v is not the ETA %v", is.Finish, is.ETA)
	case len(is.Band) != 2 || is.Band[0] > *is.Finish || is.Band[1] < *is.Finish:
		t.Errorf("the band is %v around %v", is.Band, is.Finish)
	}

	input, err := c.Upload(NewLines("asked", "m", 300).Content)
	if err != nil {
		t.Fatal(err)
	}
	post := func(path, window string) (Answer, error) {
		return c.Do("POST", path, "application/json", strings.NewReader(`{"input_file_id":"`+
			input.ID+`","endpoint":"/v1/chat/completions","completion_window":"`+window+`"}`))
	}
	answer, err := post("/v1/batches?dry_run=true", "1h")
	var asked struct {
		Verdict *string
		Finish  *int64 `json:"predicted_finish"`
		Nearest *struct {
			Deadline int64
		}
	}
	if err == nil {
		err = json.Unmarshal(answer.Body, &asked)
	}
	if err != nil || asked.Verdict == nil || *asked.Verdict != "ok" || asked.Finish == nil ||
		asked.Nearest == nil || asked.Nearest.Deadline == 0 {
		t.Errorf("a dry run: %s, %v", answer.Body, err)
	}

	c.AwaitEnd(t, b.ID, time.Minute)
	took := time.Since(seen).Seconds()
	if predicted := float64(*is.Finish - seen.Unix()); predicted < 0.4*took-2 ||
		predicted > 2.5*took+2 {
		t.Errorf("half of the lines took %.0f s, predicted were %.0f s", took, predicted)
	}

	var free Batch
	if answer, err = post("/v1/batches", "best_effort"); err == nil {
		err = json.Unmarshal(answer.Body, &free)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Await(t, free.ID, time.Minute, func(b Batch) bool {
		return b.Tidefill.Finish != nil && b.Tidefill.Verdict == nil
	})
}
