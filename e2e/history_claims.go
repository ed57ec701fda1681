package e2e

import (
	"fmt"

	"github.com/anishathalye/porcupine"

	"github.com/tidefill/tidefill/store"
)

// claimCall is a call of a store about one chunk, or about one name that owners lead.
type claimCall struct {
	object string
	what   string // claim, finish, release, read, lead or resign
	owner  store.Owner
	epoch  int64 // of the claim that is finished or released
	// leased are the owners whose leases certainly lasted from the call to its answer, by the
	// times of their renewals.
	leased map[store.Owner]bool
	// superseded: the owner's node had certainly registered again before the call. maySupersede:
	// it may have before the answer.
	superseded, maySupersede bool
}

// claimAnswer is what the caller got.
type claimAnswer struct {
	unknown bool // no answer
	fenced  bool
	epoch   int64  // of a new claim, of a leadership, or of what was read
	done    bool   // of what was read
	leader  string // the node that leads, if it is another
}

// claimState is a chunk, or the leadership of a name.
type claimState struct {
	epoch int64
	owner store.Owner
	held  bool
	done  bool
}

// claimModel says which answers the calls about claims and leaders may have.
var claimModel = porcupine.NondeterministicModel{
	Partition: partition(func(input any) string { return input.(claimCall).object }),
	Init:      func() []any { return []any{claimState{}} },
	Step: func(state, input, output any) []any {
		s, call, answer := state.(claimState), input.(claimCall), output.(claimAnswer)
		if !answer.unknown {
			return stepClaim(s, call, answer)
		}
		// It happened, or not. A leadership's epoch is not known: it is above the one before, and
		// the next answer shows it.
		answer.unknown, answer.epoch = false, s.epoch+1
		return append(stepClaim(s, call, answer), s)
	},
	DescribeOperation: func(input, output any) string {
		call := input.(claimCall)
		return fmt.Sprintf("%s %s by %v, epoch %d, leased %v: %+v", call.what, call.object,
			call.owner, call.epoch, call.leased, output)
	},
}

// stepClaim returns the states after a call that took effect with an answer; none: it can't be.
func stepClaim(s claimState, call claimCall, answer claimAnswer) []any {
	valid := s.epoch == call.epoch && s.owner == call.owner && s.held
	switch call.what {
	case "read":
		if s.epoch != answer.epoch || s.done != answer.done {
			return nil
		}
		return []any{s}
	case "claim", "lead":
		switch {
		case answer.fenced:
			return []any{s}
		case answer.leader != "":
			if !s.held || s.owner.Node != answer.leader {
				return nil
			}
			return []any{s}
		case s.done, call.superseded:
			return nil
		case s.held && s.owner != call.owner && call.leased[s.owner]:
			return nil // it was taken from one whose lease lasts
		case call.what == "claim" && answer.epoch != s.epoch+1:
			return nil
		case call.what == "lead" && answer.epoch == s.epoch && (!s.held || s.owner != call.owner),
			answer.epoch < s.epoch:
			return nil
		}
		return []any{claimState{epoch: answer.epoch, owner: call.owner, held: true}}
	case "resign":
		if s.owner == call.owner {
			s.held = false
		}
		return []any{s}
	}
	switch {
	case answer.fenced && valid && !call.maySupersede && !(call.what == "release" && s.done):
		return nil
	case answer.fenced:
		return []any{s}
	case !valid, call.superseded:
		return nil
	}
	if call.what == "finish" {
		s.done = true
		return []any{s}
	}
	if s.done { // a release does not end what is done
		return nil
	}
	s.held = false
	return []any{s}
}
