package api

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/internal/csvlines"
	"github.com/tidefill/tidefill/store/buckets"
)

const (
	csvKey   = "csv"
	csvParam = extensionsKey + "." + csvKey
)

// codeInvalidRow is the code of a row that becomes no line.
const codeInvalidRow = "invalid_row"

// readCSV reads the template of lines; nil: there is none.
func readCSV(o *jsonObject, key string) *csvlines.Template {
	given, ok := o.object(key)
	if !ok {
		return nil
	}
	id, _ := given.text("custom_id")
	if _, ok := given.object("body"); !ok {
		given.missing("body")
		return nil
	}
	_ = given.finish()
	template, err := csvlines.Parse(id, given.members["body"])
	if err != nil {
		given.wrongValue("body", "%v.", err)
		return nil
	}
	return template
}

func isCSV(name string) bool { return strings.HasSuffix(strings.ToLower(name), ".csv") }

// checkKinds returns an error unless the objects are of the kinds that a request is about.
func (b *bucketUse) checkKinds(objects []buckets.URL, template *csvlines.Template) error {
	at := slices.IndexFunc(objects, func(u buckets.URL) bool { return isCSV(u.Name) })
	switch {
	case template == nil && at >= 0:
		return invalid(csvParam, "missing_required_parameter", "%s is a CSV file; say in '%s' how "+
			"its rows become lines.", objects[at], csvParam)
	case template != nil && at < 0:
		return invalid(csvParam, "invalid_value", "Invalid '%s': no name of an object of %s ends "+
			"in .csv; leave it out.", csvParam, b.place.URL)
	}
	return nil
}

// addRowFaults adds the faults of rows to those of their lines that an intake has found.
func addRowFaults(s *batchfile.Summary, rows *csvlines.Reader) {
	first, count := rows.Faults()
	if count == 0 {
		return
	}
	// Lines of faulty rows are blank; without any other the file seems to be empty.
	faults := slices.DeleteFunc(s.Faults, func(f batchfile.Fault) bool {
		return f.Code == batchfile.CodeEmptyFile
	})
	count += s.FaultCount - (len(s.Faults) - len(faults))
	for _, f := range first {
		faults = append(faults, batchfile.Fault{Code: codeInvalidRow, Message: f.Message,
			Line: f.Row})
	}
	slices.SortStableFunc(faults, func(a, b batchfile.Fault) int {
		return cmp.Compare(a.Line, b.Line)
	})
	s.Faults, s.FaultCount = faults[:min(len(faults), maxFaults)], count
}
