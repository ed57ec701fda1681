package batchfile

import "fmt"

// UnservedLines returns a fault for the first line of each model that has a sentence, which says
// why it can't be served.
func UnservedLines(x *Index, sentences map[string]string) (faults []Fault, err error) {
	left := map[string]string{}
	for _, model := range x.models {
		if sentence := sentences[model]; sentence != "" {
			left[model] = sentence
		}
	}
	if len(left) == 0 {
		return nil, nil
	}
	err = x.eachLine(func(line *Line) (done bool, err error) {
		if int(line.Model) >= len(x.models) {
			return false, fmt.Errorf("record %d: %w", line.Number, errTorn)
		}
		model := x.models[line.Model]
		if sentence, wanted := left[model]; wanted {
			delete(left, model)
			faults = append(faults, Fault{Code: CodeModelNotFound, Message: sentence,
				Param: fieldModel.String(), Line: int(line.Row)})
		}
		return len(left) == 0, nil
	})
	if err != nil {
		return nil, err
	}
	return faults, nil
}
