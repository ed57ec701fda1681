package dispatch

import "fmt"

// shedTooOften is the result of a line that the planner gave up because its runners shed it again and again.
func (a answer) shedTooOften() answer {
	return answer{code: "shed_too_often", message: fmt.Sprintf("this request was answered %d again and again while others of its model "+
		"were served, more often than dispatch.plan.retry.sheds allows; the last answer was %q", a.status, a.body[:min(len(a.body), 200)])}
}
