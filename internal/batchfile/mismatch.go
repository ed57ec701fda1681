package batchfile

import "fmt"

// MismatchedLines returns a fault for each line, at most limit, whose URL is not the batch's
// endpoint. If all lines have the same URL, it returns a single one, for the first line.
func MismatchedLines(x *Index, endpoint string, limit int) (faults []Fault, err error) {
	if len(x.urls) == 0 || len(x.urls) == 1 && x.urls[0] == endpoint || limit <= 0 {
		return nil, nil
	}
	alike := len(x.urls) == 1 && x.Len() > 1
	err = x.eachLine(func(line *Line) (done bool, err error) {
		if int(line.URL) >= len(x.urls) {
			return false, fmt.Errorf("record %d: %w", line.Number, errTorn)
		}
		if url := x.urls[line.URL]; url != endpoint {
			of, remedy := "this line", "give every line of a batch the batch's endpoint"
			if alike {
				of, remedy = "all lines", "create the batch with the endpoint of its lines"
			}
			faults = append(faults, Fault{
				Code: CodeURLMismatch,
				Message: fmt.Sprintf("The url %q of %s is not the batch's endpoint %q; %s.", url,
					of, endpoint, remedy),
				Param: fieldURL.String(),
				Line:  int(line.Row),
			})
		}
		return alike || len(faults) == limit, nil
	})
	if err != nil {
		return nil, err
	}
	return faults, nil
}
