package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

const (
	// maxFaults bounds the faults that a batch shows.
	maxFaults = 1_000
	// maxEmbeddings is how many texts the lines of a batch may ask vectors for, all together.
	maxEmbeddings = 50_000
	// maxModels is how many models the lines of a batch may name, all together; of one file the
	// scanner allows no more.
	maxModels = 64
	// codeMoreFaults tells of faults that were left out.
	codeMoreFaults = "more_errors"
)

// faultList keeps the first faults and counts the others.
type faultList struct {
	kept  []batchfile.Fault
	total int
}

// add takes the kept faults of a source that found total of them.
func (l *faultList) add(kept []batchfile.Fault, total int) {
	l.kept = append(l.kept, kept[:min(len(kept), maxFaults-len(l.kept))]...)
	l.total += total
}

// list returns the faults for the user.
func (l *faultList) list() []batchfile.Fault {
	if hidden := l.total - len(l.kept); hidden > 0 {
		return append(l.kept, batchfile.Fault{
			Code:    codeMoreFaults,
			Message: fmt.Sprintf("%d more errors were found and are not listed.", hidden),
		})
	}
	return l.kept
}

// findFaults says everything that is wrong with the inputs of a batch. The upload has judged each
// line by itself; what is left is what only the batch can show. Files without faults are not
// opened, unless there are several to compare.
func (s *Server) findFaults(
	ctx context.Context, b store.Batch, files []store.File,
) ([]batchfile.Fault, error) {
	var faults faultList
	for _, file := range files {
		of, total, err := s.fileFaults(ctx, b.Endpoint, file)
		if err != nil {
			return nil, fmt.Errorf("file %s: %w", file.ID, err)
		}
		if len(files) > 1 {
			for i := range of {
				of[i].Message = fmt.Sprintf("File %s: %s", file.ID, of[i].Message)
			}
		}
		faults.add(of, total)
	}
	if b.Counts.Total > s.config.MaxBatchLines && len(files) > 1 {
		faults.add([]batchfile.Fault{{
			Code: batchfile.CodeTooManyTasks,
			Message: fmt.Sprintf(
				"The files have %d requests together, the limit is %d; split them into several batches.",
				b.Counts.Total, s.config.MaxBatchLines),
		}}, 1)
		return faults.list(), nil
	}
	if len(b.Models) > maxModels {
		faults.add([]batchfile.Fault{{
			Code: batchfile.CodeTooManyModels,
			Message: fmt.Sprintf(
				"The files name %d models together, the limit is %d; split them into several batches.", len(b.Models), maxModels),
		}}, 1)
	}
	if n := embeddings(b.Endpoint, files); n > maxEmbeddings {
		faults.add([]batchfile.Fault{{
			Code: batchfile.CodeTooManyTasks,
			Message: fmt.Sprintf(
				"The lines ask for %d embeddings, a batch may ask for %d; split it into several batches.",
				n, maxEmbeddings),
		}}, 1)
	}
	if len(files) > 1 && !b.Options.OutputPerInput {
		repeated, total, err := s.duplicateIDs(ctx, b.Inputs)
		if err != nil {
			return nil, fmt.Errorf("compare custom_ids: %w", err)
		}
		faults.add(repeated, total)
	}
	return faults.list(), nil
}

// fileFaults adds the lines with another url than the batch's endpoint to what the upload found, in
// order of lines.
func (s *Server) fileFaults(
	ctx context.Context, endpoint string, file store.File,
) (kept []batchfile.Fault, total int, err error) {
	kept, total = slices.Clone(file.Summary.Faults), file.Summary.FaultCount
	astray := 0
	for _, u := range file.Summary.URLs {
		if u.URL != endpoint {
			astray += u.Lines
		}
	}
	if astray == 0 {
		return kept, total, nil
	}
	sound := 0
	for _, m := range file.Summary.Models {
		sound += m.Lines
	}
	lines, err := openLines(ctx, s.blobs, file.BlobKey, file.IndexKey, sound)
	if err != nil {
		return nil, 0, inputDamaged(err, file.ID)
	}
	defer lines.Close()
	mismatched, err := batchfile.MismatchedLines(lines.index, endpoint, maxFaults)
	if err != nil {
		return nil, 0, err
	}
	kept = append(kept, mismatched...)
	slices.SortStableFunc(kept, func(a, b batchfile.Fault) int {
		return cmp.Compare(a.Line, b.Line)
	})
	return kept, total + astray, nil
}

func embeddings(endpoint string, files []store.File) (n int64) {
	if endpoint != "/v1/embeddings" {
		return 0
	}
	for _, file := range files {
		n += file.Summary.EmbeddingInputs
	}
	return n
}
