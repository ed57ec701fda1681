package oracle

import (
	"github.com/tidefill/tidefill/simulator"
)

// SearchVersion identifies the searches of E and G. It changes when they find other results for the
// same scenario, so that cached results are not reused.
const SearchVersion = 3

// Finding is the result of a search, and how to reproduce it.
type Finding struct {
	Bound Bound
	// Policy attains G's bound; nil: another oracle, or nothing was found.
	Policy *simulator.Policy `json:",omitempty"`
	// Pacing attains E's bound; nil likewise.
	Pacing *Pacing `json:",omitempty"`
}

// PriorRun is the run of a policy on the same scenario and seed.
type PriorRun struct {
	Policy simulator.Policy
	Result simulator.Result
}

// Reproduces simulates the finding again and reports whether the result is the same. If not,
// engines, users or policies have changed since, and the finding is worthless. A search
// that found nothing has nothing to run, so its result stands; a harvest without a policy or pacing
// does not reproduce.
func (f Finding) Reproduces(s simulator.Setup, noBatch simulator.NoBatch) (bool, error) {
	var got trial
	switch {
	case f.Pacing != nil:
		var err error
		if got, err = runFilled(s, noBatch, *f.Pacing); err != nil {
			return false, err
		}
	case f.Policy != nil:
		s.Outputs, s.Policy = simulator.Outputs{}, *f.Policy
		r, err := simulator.RunAgainst(noBatch, s, func(float64) error { return nil })
		if err != nil {
			return false, err
		}
		got = trialOf(r)
	default:
		return f.Bound.Useful == 0, nil
	}
	return got.useful == f.Bound.Useful && got.work == f.Bound.Work && got.loss == f.Bound.Loss, nil
}
