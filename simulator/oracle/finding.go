package oracle

import (
	"github.com/tidefill/tidefill/simulator"
)

// SearchVersion says which searches E and G are. It changes when they find other things on the same
// day, so that what was found before is not taken for what would be found now.
const SearchVersion = 2

// Found is what a search found, and how to tell it again.
type Finding struct {
	Bound Bound
	// Policy is what harvests G's bound; nil: this is another oracle's, or nothing was found.
	Policy *simulator.Policy `json:",omitempty"`
	// Tempo is what harvests E's; nil likewise.
	Pacing *Pacing `json:",omitempty"`
}

// Seen is a policy's run on the same day, told before.
type PriorRun struct {
	Policy simulator.Policy
	Result simulator.Result
}

// Again tells what was found once more, and says whether the same came of it: if not, engines,
// users or policies have changed since it was found, and it is worth nothing. A bound of which
// nobody knows how it came about does not come out again.
func (f Finding) Reproduces(s simulator.Setup, quiet simulator.NoBatch) (bool, error) {
	var got trial
	switch {
	case f.Pacing != nil:
		var err error
		if got, err = runFilled(s, quiet, *f.Pacing); err != nil {
			return false, err
		}
	case f.Policy != nil:
		s.Outputs, s.Policy = simulator.Outputs{}, *f.Policy
		r, err := simulator.RunAgainst(quiet, s, func(float64) error { return nil })
		if err != nil {
			return false, err
		}
		got = trialOf(r)
	default:
		return false, nil
	}
	return got.useful == f.Bound.Useful && got.work == f.Bound.Work && got.loss == f.Bound.Loss, nil
}
