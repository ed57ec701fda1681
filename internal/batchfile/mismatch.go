package batchfile

import "fmt"

// MismatchedLines returns a fault for each line, at most limit, whose URL is not the batch's
// endpoint, or a single one if all lines have the same URL.
func MismatchedLines(x *Index, endpoint string, limit int) (faults []Fault, err error) {
	if len(x.urls) == 0 || len(x.urls) == 1 && x.urls[0] == endpoint || limit <= 0 {
		return nil, nil
	}
	if len(x.urls) == 1 {
		return []Fault{{
			Code: CodeURLMismatch,
			Message: fmt.Sprintf("All lines have the url %q, not the batch's endpoint %q; create "+
				"the batch with the endpoint of its lines.", x.urls[0], endpoint),
			Param: fieldURL.String(),
		}}, nil
	}
	err = x.eachLine(func(line *Line) (done bool, err error) {
		if int(line.URL) >= len(x.urls) {
			return false, fmt.Errorf("record %d: %w", line.Number, errTorn)
		}
		if url := x.urls[line.URL]; url != endpoint {
			faults = append(faults, Fault{
				Code: CodeURLMismatch,
				Message: fmt.Sprintf("The url %q of this line is not the batch's endpoint %q; "+
					"give every line of a batch the batch's endpoint.", url, endpoint),
				Param: fieldURL.String(),
				Line:  int(line.Row),
			})
		}
		return len(faults) == limit, nil
	})
	if err != nil {
		return nil, err
	}
	return faults, nil
}
