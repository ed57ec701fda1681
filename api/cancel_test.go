package api

import (
	"testing"

	"github.com/tidefill/tidefill/store"
)

func TestCancelReadsWhatBecomesOfLinesInFlight(t *testing.T) {
	s := newService(t)
	id := s.create(line("a"))["id"].(string)
	path := "/v1/batches/" + id + "/cancel"
	s.do("POST", path+"?in_flight=later", nil).refused(400, "in_flight", "invalid_value",
		"'later' is neither 'abort' nor 'finish'")
	stored := func() store.Batch {
		b, err := s.meta.Batch(t.Context(), "", id)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if b := stored(); b.State != store.Validating {
		t.Fatalf("a faulty request left the batch %s", b.State)
	}
	for _, step := range []struct {
		query string
		want  bool
	}{{"?in_flight=finish", true}, {"?in_flight=finish", true}, {"", false},
		{"?in_flight=finish", false}, {"?in_flight=abort", false}} {
		if got := s.do("POST", path+step.query, nil).ok()["status"]; got != "cancelling" {
			t.Errorf("query %q: got status %v", step.query, got)
		}
		if b := stored(); b.FinishInFlight != step.want {
			t.Errorf("query %q: lines may finish: %v, want %v", step.query, b.FinishInFlight,
				step.want)
		}
	}
}
