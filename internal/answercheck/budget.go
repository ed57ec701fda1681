package answercheck

import "errors"

// budget counts the cost of checking an answer. A schema may apply to a value in exponentially many
// ways.
type budget struct{ instructions, steps int }

const (
	// maxSteps limits the schemas that are applied to values, and instructionsPerStep of patterns
	// that are applied to bytes. It is about 0.2 s.
	maxSteps            = 1 << 18
	instructionsPerStep = 64
)

// errTooCostly reports that a check has spent its budget. The library for schemas can't be ended in
// another way than by a panic with it.
var errTooCostly = errors.New("it takes too many steps to check this; make the rule simpler")

// within calls check until it spends its budget.
func within(check func() error) (err error) {
	defer func() {
		switch r := recover(); r {
		case nil:
		case errTooCostly:
			err = errTooCostly
		default:
			panic(r)
		}
	}()
	return check()
}

// spend adds steps. It panics with errTooCostly.
func (b *budget) spend(steps int) {
	if b.steps += steps; b.steps > maxSteps {
		panic(errTooCostly)
	}
}
