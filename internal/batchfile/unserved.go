package batchfile

import (
	"fmt"
	"io"
)

// UnservedLines returns a fault for the first line of each model that has a sentence, which says
// why it can't be served.
func UnservedLines(x *Index, sentences map[string]string) ([]Fault, error) {
	wanted := 0
	for _, model := range x.models {
		if sentences[model] != "" {
			wanted++
		}
	}
	var faults []Fault
	found := make([]bool, len(x.models))
	window := make([]Line, 1024)
	for first := 0; len(faults) < wanted; {
		n, err := x.Read(first, window)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		for _, line := range window[:n] {
			if int(line.Model) >= len(x.models) {
				return nil, fmt.Errorf("record %d: %w", line.Number, errTorn)
			}
			sentence := sentences[x.models[line.Model]]
			if sentence == "" || found[line.Model] {
				continue
			}
			found[line.Model] = true
			faults = append(faults, Fault{Code: CodeModelNotFound, Message: sentence,
				Param: fieldModel.String(), Line: int(line.Row)})
		}
		first += n
	}
	return faults, nil
}
