package fit

import "github.com/tidefill/tidefill/costmodel"

// split divides observations into those that are fitted and those that are predicted.
type split struct {
	Name  string
	Train func(Observation) bool
}

// splits: the second half checks whether a cost model extrapolates, the twentieths whether it
// interpolates.
var splits = []split{
	{"second half of each run, fitted on the first", func(o Observation) bool {
		return 2*o.At < o.Length
	}},
	{"every other twentieth of each run, fitted on those between", func(o Observation) bool {
		return 20*o.At/max(1, o.Length)%2 == 0
	}},
}

// HeldOut is the error of a split's cost model on what it was not fitted to.
type HeldOut struct {
	Split     string          `json:"split"`
	Fitted    int             `json:"fitted"` // exact iterations
	CostModel costmodel.Model `json:"cost_model"`
	Error     Error           `json:"error"`
	Ranges    []Range         `json:"ranges"`
	Fault     string          `json:"fault,omitempty"` // why there is no figure
}

// CrossValidate evaluates the method: each split's cost model on the exact iterations it has not
// seen.
func CrossValidate(obs Observations, opt Options) []HeldOut {
	opt.Resamples = -1
	var held []HeldOut
	for _, split := range splits {
		train, test := obs, []Observation{}
		train.All = nil
		h := HeldOut{Split: split.Name}
		for _, o := range sorted(obs.All) {
			switch {
			case split.Train(o):
				train.All = append(train.All, o)
				if o.Exact() {
					h.Fitted++
				}
			case o.Exact():
				test = append(test, o)
			}
		}
		r, err := Fit(train, opt)
		switch {
		case err != nil:
			h.Fault = err.Error()
		case len(test) == 0:
			h.Fault = "no iterations to judge on"
		default:
			h.CostModel, h.Error, h.Ranges = r.CostModel, evaluate(r.CostModel, test),
				evaluateRanges(r.CostModel, test)
		}
		held = append(held, h)
	}
	return held
}
