package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// retryBatch answers POST /v1/batches/{id}/retry: it creates a batch of the lines in the error
// files of an ended one. The optional body can replace completion_window, metadata,
// output_expires_after and `tidefill`.
func (s *Server) retryBatch(w http.ResponseWriter, r *http.Request) error {
	key, err := idempotencyKeyOf(r)
	if err != nil {
		return err
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	b, err := s.batch(r)
	if err != nil {
		return err
	}
	if !b.State.Terminal() {
		return wrongStatus("retry", &b)
	}
	options, err := s.options(r.Context(), b)
	if err != nil {
		return err
	}
	now := s.now()
	d, err := readRetryDraft(b, options, body, now)
	if err == nil {
		err = s.checkOptions(d.extensions)
	}
	if err != nil {
		return err
	}
	// Wait for the gate before the Idempotency-Key is stored, so that little time passes between
	// storing the key and storing the batch.
	if err := enterGate(w, r, &s.gates.copies); err != nil {
		return err
	}
	d.Options.Traceparent = s.deps.Tracer.Traceparent(r.Header)
	id := newID(batchPrefix)
	retried, _, err := createOnce(r.Context(), s, creation[store.Batch]{
		Key:         key,
		Fingerprint: fingerprint("retry", b.ID, string(body)),
		ID:          id,
		Create: func(ctx context.Context, id string) (store.Batch, error) {
			if err := s.resolve(ctx, &d); err != nil {
				return store.Batch{}, err
			}
			return s.submitRetry(ctx, b, id, d, now)
		},
		Load: func(ctx context.Context, id string) (store.Batch, error) {
			return s.meta.Batch(ctx, b.Tenant, id)
		},
	})
	if err != nil {
		return err
	}
	return s.writeBatch(r.Context(), w, retried)
}

// readRetryDraft reads the body like that of a create request. Members that the body does not have
// are taken from b and from options, the `tidefill` object of b.
func readRetryDraft(
	b store.Batch, options json.RawMessage, body []byte, now time.Time,
) (draft, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	o, err := readObject(body)
	if err != nil {
		return draft{}, err
	}
	if !o.has("completion_window") {
		o.members["completion_window"] = jsonText(b.Window)
	}
	if !o.has(extensionsKey) && options != nil {
		o.members[extensionsKey], err = retryExtensions(options, now, o.has(referenceKey))
		if err != nil {
			return draft{}, fmt.Errorf("read the options of batch %s: %w", b.ID, err)
		}
	}
	d := draft{Endpoint: b.Endpoint, Metadata: b.Metadata, extensions: readExtensions(o, now)}
	if d.extensions.InputFileIDs != nil {
		o.fail(extensionsKey+".input_file_ids", "invalid_value",
			"Invalid '%s.input_file_ids': a retry sends lines of the batch again.", extensionsKey)
	}
	if d.Options.InputURL != "" {
		o.fail(inputURLParam, "invalid_value", "Invalid '%s': a retry sends lines of the batch "+
			"again.", inputURLParam)
	}
	d.Window, d.WindowLength = readWindow(o, "completion_window")
	if metadata := readMetadata(o, "metadata"); metadata != nil {
		d.Metadata = metadata
	}
	d.Options.OutputLife = b.Options.OutputLife
	if o.has("output_expires_after") {
		d.Options.OutputLife = readExpiry(o, "output_expires_after")
	}
	d.readReferences(o)
	if from := b.Resolved; from != nil {
		d.Tier = cmp.Or(d.Tier, from.Tier)
		if d.Reference == nil && from.Request != nil {
			o.members[referenceKey] = from.Request
			d.readReferences(o)
		}
	}
	// If b has results for each input, lines of different inputs may have the same custom_id. Then
	// the retry has results for each input too.
	d.Options.OutputPerInput = b.Options.OutputPerInput
	d.Options.RetryOf = b.ID
	d.checkEndpoint(o)
	return d, o.finish()
}

// retryExtensions returns the `tidefill` object of a batch for its retry. It leaves out the inputs,
// times in the past and, if the retry has another one, the reference to a template and a profile.
// Durations are counted from now.
func retryExtensions(
	given json.RawMessage, now time.Time, referenced bool,
) (json.RawMessage, error) {
	members, err := decodeMembers(given)
	if err != nil {
		return nil, err
	}
	delete(members, "input_file_ids")
	delete(members, inputURLKey)
	delete(members, csvKey)
	if referenced {
		delete(members, registryKey)
	}
	for _, key := range []string{"deadline", "start_by"} {
		if at, err := parseInstant(members[key], now); err != nil || !at.After(now) {
			delete(members, key)
		}
	}
	return json.Marshal(members)
}

// submitRetry creates the input files of the retry, one for each input of b with failed lines, and
// submits the batch. The files become visible together with the batch. After an error, none remain.
func (s *Server) submitRetry(
	ctx context.Context, b store.Batch, id string, d draft, now time.Time,
) (retried store.Batch, err error) {
	var made []store.File
	defer func() {
		if err != nil {
			s.removeUnkept(ctx, made)
		}
	}()
	if err := s.checkOutput(ctx, b.Tenant, id, d); err != nil {
		return store.Batch{}, err
	}
	quota := s.openQuota(b.Tenant)
	defer quota.release()
	failed := pullFailed(s.failedLines(ctx, b))
	defer failed.stop()
	for i, input := range b.Inputs {
		f, err := s.copyFailed(ctx, quota, b.Tenant, input, failedInInput{failed, i},
			retryName(b, i))
		if err != nil {
			return store.Batch{}, fmt.Errorf("copy the failed lines of file %s: %w", input.FileID,
				err)
		}
		if f.ID != "" {
			made = append(made, f)
		}
	}
	if failed.err != nil {
		return store.Batch{}, failed.err
	}
	if failed.more {
		return store.Batch{}, fmt.Errorf(
			"error files of batch %s contain %s, which is not in its inputs or not in their order",
			b.ID, quoted(failed.next.id))
	}
	if len(made) == 0 {
		return store.Batch{}, invalid("", "nothing_failed",
			"The batch has no failed lines, so there is nothing to retry.")
	}
	return s.submit(ctx, newBatch(b.Tenant, id, d, made, now), made, made...)
}

// retryName returns the name of the retry's input file with the given index.
func retryName(b store.Batch, input int) string {
	if len(b.Inputs) == 1 {
		return "retry-of-" + b.ID + ".jsonl"
	}
	return fmt.Sprintf("retry-of-%s-%d.jsonl", b.ID, input+1)
}

// copyFailed copies the failed lines of one input byte for byte into a new file, whose record is
// not stored yet. It returns the zero File if no line of the input has failed.
func (s *Server) copyFailed(
	ctx context.Context, quota *quotaReservation, tenant string, input store.Input,
	failed failedInInput, name string,
) (store.File, error) {
	if !failed.has() {
		return store.File{}, nil
	}
	if _, err := s.meta.File(ctx, tenant, input.FileID); err != nil {
		return store.File{}, inputError(err, input.FileID)
	}
	from, err := openLines(ctx, s.blobs, input.BlobKey, input.IndexKey, input.Lines)
	if err != nil {
		return store.File{}, inputError(err, input.FileID)
	}
	defer from.Close()
	id := newID(filePrefix)
	in, err := s.newIntake(ctx, fileKey(id), true, nil, quota)
	if err != nil {
		return store.File{}, err
	}
	defer in.abort()
	next, stop := iter.Pull2(from.filter(ctx, failed.takes))
	defer stop()
	limit := s.fileLimit(purposeBatch)
	err = in.copyFrom(ctx, &sequenceReader{next: next}, limit)
	if errors.Is(err, errOverLimit) { // the limit was higher when the input was uploaded
		return store.File{}, fileTooLarge(purposeBatch, limit)
	}
	if err != nil {
		return store.File{}, inputError(err, input.FileID)
	}
	if in.size == 0 { // all failed lines left belong to later inputs
		return store.File{}, nil
	}
	if err := in.finish(purposeBatch); err != nil {
		return store.File{}, err
	}
	return s.commitFile(ctx, in, store.File{ID: id, Purpose: purposeBatch, Filename: name}, 0)
}

// inputError converts an error of reading an input file to the API's error if the file was deleted
// or damaged, and returns other errors as they are.
func inputError(err error, fileID string) error {
	if errors.Is(err, store.ErrNotFound) {
		return invalid("input_file_id", "input_file_gone",
			"The input file %s was deleted, so its lines cannot be sent again.", fileID)
	}
	return damagedInputError(err, fileID)
}

// damagedInputError converts an error of reading an input file to the API's error if the file was
// damaged, and returns other errors as they are.
func damagedInputError(err error, fileID string) error {
	if errors.Is(err, batchfile.ErrDamaged) {
		return invalid("input_file_id", "input_file_damaged",
			"The input file %s was damaged on the server's disk, so its lines cannot be sent; "+
				"upload it again. %v.", fileID, err)
	}
	return err
}

// sequenceReader reads a sequence of byte slices as one stream. It requests a slice only after the
// previous one was copied, so the sequence may use its memory again.
type sequenceReader struct {
	next func() ([]byte, error, bool) // as from iter.Pull2
	rest []byte                       // of the last slice, not yet copied
}

func (r *sequenceReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		next, err, more := r.next()
		if !more {
			return 0, io.EOF
		}
		if err != nil {
			return 0, err
		}
		r.rest = next
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
