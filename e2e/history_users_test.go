package e2e

import (
	"testing"

	"github.com/anishathalye/porcupine"
)

// The model of users' calls accepts what may happen, and finds what must not.
func TestHistoryOfUsers(t *testing.T) {
	t.Parallel()
	type call struct {
		what       string
		from, to   int64
		answer     userAnswer
		unanswered bool
	}
	status := func(s string) userAnswer { return userAnswer{status: s} }
	missing, unknown := userAnswer{missing: true}, userAnswer{unknown: true}
	create := call{what: "create", from: 0, to: 1, answer: status("validating")}
	for _, c := range []struct {
		name  string
		calls []call
		want  bool
	}{
		{"a batch ends", []call{create,
			{what: "get", from: 2, to: 3, answer: status("in_progress")},
			{what: "get", from: 4, to: 5, answer: status("completed")}}, true},
		{"a batch runs after its end", []call{create,
			{what: "get", from: 2, to: 3, answer: status("completed")},
			{what: "get", from: 4, to: 5, answer: status("in_progress")}}, false},
		{"concurrent calls see both", []call{create,
			{what: "get", from: 2, to: 9, answer: status("completed")},
			{what: "get", from: 4, to: 5, answer: status("in_progress")}}, true},
		{"a batch ends twice", []call{create,
			{what: "get", from: 2, to: 3, answer: status("completed")},
			{what: "get", from: 4, to: 5, answer: status("failed")}}, false},
		{"a cancelled batch runs on", []call{create,
			{what: "cancel", from: 2, to: 3, answer: status("cancelling")},
			{what: "get", from: 4, to: 5, answer: status("in_progress")}}, false},
		{"a batch is cancelled by nobody", []call{create,
			{what: "get", from: 4, to: 5, answer: status("cancelled")}}, false},
		{"an unanswered cancellation takes effect later", []call{create,
			{what: "cancel", from: 2, answer: unknown, unanswered: true},
			{what: "get", from: 4, to: 5, answer: status("in_progress")},
			{what: "get", from: 6, to: 7, answer: status("cancelled")}}, true},
		{"a deleted file is back", []call{create, {what: "delete", from: 2, to: 3},
			{what: "get", from: 4, to: 5}}, false},
		{"a file is gone by itself", []call{create,
			{what: "get", from: 4, to: 5, answer: missing}}, false},
		{"a pause is forgotten", []call{create,
			{what: "pause", from: 2, to: 3, answer: status("in_progress")},
			{what: "get", from: 4, to: 5, answer: status("in_progress")}}, false},
	} {
		h := NewHistory()
		for _, one := range c.calls {
			if one.unanswered {
				h.AddUnknown(one.from, userCall{"x", one.what}, one.answer)
				continue
			}
			h.add(porcupine.Operation{Input: userCall{"x", one.what}, Call: one.from,
				Output: one.answer, Return: one.to})
		}
		if got := porcupine.CheckOperations(userModel.ToModel(), h.Calls()); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
