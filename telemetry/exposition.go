package telemetry

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// page holds the samples of a metrics page by the name of their metric.
type page map[model.LabelValue]model.Vector

// Limits of a metrics page. That of vLLM has about 100 KB, of which some 100 rows are used for each
// rank.
const (
	largestPage = 16 << 20 // bytes
	longestRow  = 64 << 10 // bytes
	maxRows     = 20_000   // of metrics that are used
	maxBytes    = 4 << 20  // of these rows
)

// parsePage parses a metrics page in the text format of Prometheus, whatever type its header names:
// no other was requested. It keeps the metrics that are wanted, so that a page costs little memory
// however large it is. Rows of other metrics must look like samples, or else the page is something
// else, and what it lacks is not absent. Samples without a timestamp get the timestamp 0.
func parsePage(r io.Reader, wanted map[string]bool) (page, error) {
	rows := bufio.NewReaderSize(r, longestRow)
	var kept bytes.Buffer
	count := 0
	for number := 1; ; number++ {
		row, err := rows.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("row %d is longer than %d bytes: %w", number, longestRow,
				errTooLarge)
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		}
		name, sample := sampleName(row)
		switch {
		case !sample:
			return nil, fmt.Errorf("row %d, %.60q, is no sample: %w", number, row, errGarbled)
		case wanted[name]:
			if count++; count > maxRows || kept.Len()+len(row) > maxBytes {
				return nil, fmt.Errorf("row %d: there are too many series of %s: %w", number, name,
					errTooLarge)
			}
			kept.Write(bytes.TrimRight(row, "\r\n"))
			kept.WriteByte('\n')
		}
		if err != nil {
			return parseRows(&kept)
		}
	}
}

// sampleName returns the name of the metric of a row. It is empty for a comment, an empty row and a
// name in quotes, which no engine has. ok is false if the row can't be a sample.
func sampleName(row []byte) (name string, ok bool) {
	row = bytes.TrimSpace(row)
	if len(row) == 0 || row[0] == '#' {
		return "", true
	}
	last := row[bytes.LastIndexAny(row, " \t}")+1:]
	if _, err := strconv.ParseFloat(string(last), 64); len(last) == len(row) ||
		err != nil && !errors.Is(err, strconv.ErrRange) {
		return "", false
	}
	if row[0] == '{' {
		return "", true
	}
	end := bytes.IndexAny(row, "{ \t")
	if end <= 0 { // a brace that closes nothing
		return "", false
	}
	name = string(row[:end])
	return name, !strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
			r == '_' || r == ':')
	})
}

// parseRows parses rows without comments, so that every sample stands for itself.
func parseRows(rows io.Reader) (page, error) {
	p := page{}
	samples := expfmt.SampleDecoder{Opts: &expfmt.DecodeOptions{},
		Dec: expfmt.NewDecoder(rows, expfmt.NewFormat(expfmt.TypeTextPlain))}
	for {
		var family model.Vector
		if err := samples.Decode(&family); errors.Is(err, io.EOF) {
			return p, nil
		} else if err != nil {
			return nil, fmt.Errorf("%w, counting the rows of metrics that are used (%w)", err,
				errGarbled)
		}
		for _, sample := range family {
			name := sample.Metric[model.MetricNameLabel]
			p[name] = append(p[name], sample)
		}
	}
}
