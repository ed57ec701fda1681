package randompools

import (
	"errors"
	"fmt"

	"github.com/tidefill/tidefill/simulator"
)

// Failure is a pool without a result.
type Failure struct {
	Number int    `json:"number"`
	Error  string `json:"error"`
}

// failuresOf returns those of errors by the index of their pool.
func failuresOf(numbers []int, errs []error) (failures []Failure) {
	for i, err := range errs {
		if err != nil {
			failures = append(failures, Failure{numbers[i], err.Error()})
		}
	}
	return failures
}

// asError returns an error that lists the failures; nil if there are none.
func asError(failures []Failure) error {
	var all []error
	for _, f := range failures {
		all = append(all, fmt.Errorf("pool %d: %s", f.Number, f.Error))
	}
	return errors.Join(all...)
}

// unfit reports whether a run failed because the pool cannot measure a policy: it misses its
// objectives without batch work, or nobody comes.
func unfit(err error) bool {
	missed := (*simulator.UnfitError)(nil)
	return errors.As(err, &missed) || errors.Is(err, simulator.ErrNoRequests)
}
