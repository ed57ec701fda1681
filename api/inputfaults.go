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
	// maxFaults limits the errors that a batch lists.
	maxFaults = 1_000
	// maxEmbeddings limits the texts of all embeddings requests of a batch together.
	maxEmbeddings = 50_000
	// maxModels limits the models that the lines of a batch name together. The scanner applies the
	// same limit to a single file.
	maxModels = 64
	// codeMoreFaults is the code of the entry that counts the errors not listed.
	codeMoreFaults = "more_errors"
	// codeInputTooLarge is the code of an input above the quota of a profile.
	codeInputTooLarge = "input_too_large"
)

// faultList holds the first faults and counts all.
type faultList struct {
	kept  []batchfile.Fault
	total int
}

// add adds the faults of a source that has found total faults and holds the first of them.
func (l *faultList) add(kept []batchfile.Fault, total int) {
	l.kept = append(l.kept, kept[:min(len(kept), maxFaults-len(l.kept))]...)
	l.total += total
}

// list returns the faults to show, with an entry for those that were left out.
func (l *faultList) list() []batchfile.Fault {
	if hidden := l.total - len(l.kept); hidden > 0 {
		return append(l.kept, batchfile.Fault{
			Code:    codeMoreFaults,
			Message: fmt.Sprintf("%d more errors were found and are not listed.", hidden),
		})
	}
	return l.kept
}

// findFaults returns the faults of a batch's input. Each line was checked at upload; findFaults
// adds what depends on the batch: its endpoint and its other files. Files without faults are not
// opened, unless there are several to compare.
func (s *Server) findFaults(
	ctx context.Context, b store.Batch, files []store.File,
) ([]batchfile.Fault, error) {
	var faults faultList
	unserved, err := s.unservedModels(ctx, b)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		of, total, err := s.fileFaults(ctx, b.Endpoint, unserved, file)
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
	if b.Counts.Total > s.config().MaxBatchLines && len(files) > 1 {
		faults.add([]batchfile.Fault{{
			Code: batchfile.CodeTooManyTasks,
			Message: fmt.Sprintf(
				"The files have %d requests together; the limit is %d. Split them into several "+
					"batches.",
				b.Counts.Total, s.config().MaxBatchLines),
		}}, 1)
		return faults.list(), nil
	}
	faults.add(quotaFaults(b, files))
	if len(b.Models) > maxModels {
		faults.add([]batchfile.Fault{{
			Code: batchfile.CodeTooManyModels,
			Message: fmt.Sprintf(
				"The files name %d models together; the limit is %d. Split them into several "+
					"batches.", len(b.Models), maxModels),
		}}, 1)
	}
	if n := embeddings(b.Endpoint, files); n > maxEmbeddings {
		faults.add([]batchfile.Fault{{
			Code: batchfile.CodeTooManyTasks,
			Message: fmt.Sprintf(
				"The lines ask for %d embeddings; the limit is %d. Split them into several "+
					"batches.",
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

// quotaFaults returns what of the input is over the quota of the batch's profile.
func quotaFaults(b store.Batch, files []store.File) (over []batchfile.Fault, total int) {
	if most := b.Options.MaxLines; most > 0 && b.Counts.Total > most {
		over = append(over, batchfile.Fault{Code: batchfile.CodeTooManyTasks,
			Message: fmt.Sprintf("The batch has %d requests; quota.max_requests_per_batch of "+
				"profile %s is %d. Split it into several batches.", b.Counts.Total,
				b.Resolved.Profile, most)})
	}
	bytes := int64(0)
	for _, file := range files {
		bytes += file.Bytes
	}
	if most := b.Options.MaxInputBytes; most > 0 && bytes > most {
		over = append(over, batchfile.Fault{Code: codeInputTooLarge,
			Message: fmt.Sprintf("The input has %d bytes; quota.max_input_size_mb of profile %s "+
				"is %d, which is %d bytes. Split it into several batches.", bytes,
				b.Resolved.Profile, most/1e6, most)})
	}
	return over, len(over)
}

// fileFaults returns the faults of a file found at upload, the lines whose url is not the batch's
// endpoint, and the first line of each unserved model, in the order of lines.
func (s *Server) fileFaults(
	ctx context.Context, endpoint string, unserved map[string]string, file store.File,
) (kept []batchfile.Fault, total int, err error) {
	kept, total = slices.Clone(file.Summary.Faults), file.Summary.FaultCount
	mismatches := 0
	for _, u := range file.Summary.URLs {
		if u.URL != endpoint {
			mismatches += u.Lines
		}
	}
	valid, lacking := 0, 0
	for _, m := range file.Summary.Models {
		valid += m.Lines
		if unserved[m.Name] != "" {
			lacking++
		}
	}
	if mismatches+lacking == 0 {
		return kept, total, nil
	}
	lines, err := openLines(ctx, s.blobs, file.BlobKey, file.IndexKey, valid)
	if err != nil {
		return nil, 0, damagedInputError(err, file.ID)
	}
	defer lines.Close()
	mismatched, err := batchfile.MismatchedLines(lines.index, endpoint, maxFaults)
	if err != nil {
		return nil, 0, err
	}
	kept = append(kept, mismatched...)
	if lacking > 0 {
		unservedLines, err := batchfile.UnservedLines(lines.index, unserved)
		if err != nil {
			return nil, 0, err
		}
		kept = append(kept, unservedLines...)
	}
	slices.SortStableFunc(kept, func(a, b batchfile.Fault) int {
		return cmp.Compare(a.Line, b.Line)
	})
	return kept, total + mismatches + lacking, nil
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
