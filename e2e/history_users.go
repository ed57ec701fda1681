package e2e

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// userCall is a call of a user about one batch or file.
type userCall struct {
	object string
	what   string // create, get, cancel, pause, resume or delete
}

// userAnswer is what the user got.
type userAnswer struct {
	unknown bool // no answer, or one that leaves open whether it took effect
	missing bool // 404
	refused bool // 409: the batch was in another state
	status  string
	paused  bool
}

// userState is what is known of an object. An object proceeds by itself, so the status is the least
// that it can have.
type userState struct {
	exists, deleted bool
	cancelled       bool // a cancellation was accepted
	paused          bool
	status          string
}

// ranks order the states of a batch. Final ones are equal, and do not follow each other.
var ranks = map[string]int{"": 0, "validating": 1, "in_progress": 2, "finalizing": 3,
	"cancelling": 4, "completed": 5, "failed": 5, "expired": 5, "cancelled": 5}

const finalRank = 5

// userModel says which answers the calls of users may have.
var userModel = porcupine.NondeterministicModel{
	Partition: partition(func(input any) string { return input.(userCall).object }),
	Init:      func() []any { return []any{userState{}} },
	Step: func(state, input, output any) []any {
		s, call, answer := state.(userState), input.(userCall), output.(userAnswer)
		if answer.unknown { // it happened, or not
			after := append(stepUser(s, call, userAnswer{status: s.status, paused: s.paused}), s)
			if call.what == "cancel" && s.exists && ranks[s.status] < finalRank {
				after = append(after, stepUser(s, call, userAnswer{status: "cancelling"})...)
			}
			return after
		}
		return stepUser(s, call, answer)
	},
	DescribeOperation: func(input, output any) string {
		return fmt.Sprintf("%+v: %+v", input, output)
	},
}

// stepUser returns the states after a call that took effect with an answer; none: it can't be.
func stepUser(s userState, call userCall, answer userAnswer) []any {
	if answer.missing {
		if s.exists && !s.deleted {
			return nil
		}
		return []any{s}
	}
	if call.what == "create" {
		if s.exists { // its key answers again what it was at first, or is now
			return []any{s}
		}
		s.exists = true
		return []any{s}
	}
	if !s.exists || s.deleted {
		return nil
	}
	if call.what == "delete" {
		s.deleted = true
		return []any{s}
	}
	if answer.refused { // it is finalizing, or has ended
		if call.what == "pause" || call.what == "resume" || call.what == "cancel" {
			return []any{s}
		}
		return nil
	}
	if call.what == "cancel" {
		s.cancelled = true
	}
	switch before, after := ranks[s.status], ranks[answer.status]; {
	case after < before, before == finalRank && s.status != answer.status,
		s.cancelled && after < ranks["cancelling"],
		!s.cancelled && (answer.status == "cancelling" || answer.status == "cancelled"):
		return nil
	}
	s.status = answer.status
	switch call.what {
	case "pause":
		s.paused = true
	case "resume":
		s.paused = false
	case "get":
		if ranks[s.status] <= ranks["in_progress"] && s.paused != answer.paused {
			return nil
		}
	}
	return []any{s}
}
