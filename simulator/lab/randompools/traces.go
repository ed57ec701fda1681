package randompools

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/simulator/lab/random"
	"github.com/tidefill/tidefill/simulator/workload"
)

// traceFormats are the formats of traces, by how the names of their files begin.
var traceFormats = []struct {
	prefix string
	format workload.Format
}{{"azure", workload.CSV}, {"mooncake", workload.Mooncake}}

// OpenTraces reads the traces in a directory, in the order of their names. Files whose names do not
// begin with a format's name are left out. No directory has no traces.
func OpenTraces(dir string) ([]random.Trace, error) {
	if dir == "" {
		return nil, nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	var traces []random.Trace
	for _, entry := range entries {
		for _, f := range traceFormats {
			if !strings.HasPrefix(entry.Name(), f.prefix) {
				continue
			}
			t := random.Trace{File: filepath.Join(dir, entry.Name()), Format: f.format}
			if t.Content, err = readTrace(t.File, t.Format); err != nil {
				return nil, err
			}
			traces = append(traces, t)
		}
	}
	if len(traces) == 0 {
		return nil, fmt.Errorf("traces: %s holds no file whose name begins with %s", dir,
			strings.Join(slices.Collect(func(yield func(string) bool) {
				for _, f := range traceFormats {
					if !yield(f.prefix) {
						return
					}
				}
			}), " or "))
	}
	return traces, nil
}

func readTrace(file string, format workload.Format) (*workload.Trace, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return workload.Read(file, format, in)
}
