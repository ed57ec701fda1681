package api

import (
	"strings"
	"testing"

	"github.com/tidefill/tidefill/store"
)

func TestCancelReadsWhatBecomesOfLinesInFlight(t *testing.T) {
	s := newService(t)
	id := s.create(line("a"))["id"].(string)
	path := "/v1/batches/" + id + "/cancel"
	stored := func() store.Batch {
		b, err := s.meta.Batch(t.Context(), "", id)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for body, want := range map[string][3]string{
		`{"tidefill": {"finish_in_flight": 1}}`: {"tidefill.finish_in_flight", "invalid_type",
			"expected a boolean, got a number"},
		`{"tidefill": {"finish_in_fligth": true}}`: {"tidefill.finish_in_fligth",
			"unknown_parameter", "Did you mean 'tidefill.finish_in_flight'?"},
		`{"tidefill": true}`: {"tidefill", "invalid_type", "expected an object"},
		`{"tidefill": {`:     {"", "invalid_json", "could not parse"},
	} {
		s.post(path, body).refused(400, want[0], want[1], want[2])
	}
	s.post(path, `{"tidefill": {}}`+strings.Repeat(" ", maxCancelBody)).refused(413, "", "",
		"over the limit of 16384 bytes")
	if b := stored(); b.State != store.Validating {
		t.Fatalf("a faulty request left the batch %s", b.State)
	}
	for _, step := range []struct {
		body string
		want bool
	}{
		{`{"tidefill": {"finish_in_flight": true}, "reason": "of the client"}`, true},
		{`{"tidefill": {"finish_in_flight": true}}`, true},
		{"", false},
		{`{"tidefill": {"finish_in_flight": true}}`, false},
		{`{"tidefill": null}`, false},
		{"no JSON at all", false},
	} {
		if got := s.post(path, step.body).ok()["status"]; got != "cancelling" {
			t.Errorf("body %q: got status %v", step.body, got)
		}
		if b := stored(); b.FinishInFlight != step.want {
			t.Errorf("body %q: lines may finish: %v, want %v", step.body, b.FinishInFlight,
				step.want)
		}
	}
}
