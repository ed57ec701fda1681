package batchfile

import (
	"fmt"
	"io"
)

// MismatchedLines returns a fault for each line, at most limit, whose URL is not the batch's
// endpoint.
func MismatchedLines(x *Index, endpoint string, limit int) ([]Fault, error) {
	if len(x.urls) == 0 || len(x.urls) == 1 && x.urls[0] == endpoint {
		return nil, nil
	}
	var faults []Fault
	window := make([]Line, 1024)
	for first := 0; len(faults) < limit; {
		n, err := x.Read(first, window)
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		for _, line := range window[:n] {
			if int(line.URL) >= len(x.urls) {
				return nil, fmt.Errorf("record %d: %w", line.Number, errTorn)
			}
			if url := x.urls[line.URL]; url != endpoint && len(faults) < limit {
				faults = append(faults, Fault{
					Code: CodeURLMismatch,
					Message: fmt.Sprintf("The url %q of this line is not the batch's endpoint %q; "+
						"give every line of a batch the batch's endpoint.", url, endpoint),
					Param: fieldURL.String(),
					Line:  int(line.Row),
				})
			}
		}
		first += n
	}
	return faults, nil
}
