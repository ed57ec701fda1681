package dispatch

import "fmt"

// shedTooOften is the result of a line that the planner gave up because its runners shed it again
// and again.
func (a failure) shedTooOften() failure {
	return failure{customID: a.customID, taken: a.taken, code: "shed_too_often",
		message: fmt.Sprintf(
			"this request was answered %d again and again while others of its model "+
				"were served, more often than dispatch.retry.tuning.sheds allows; the last answer was %q",
			a.status, a.body[:min(len(a.body), 200)])}
}
