package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/store"
)

// draft is a create request that parsed without errors. Its input files have not been looked up.
type draft struct {
	InputFileIDs []string
	Endpoint     string
	Window       string        // completion_window as the user wrote it
	WindowLength time.Duration // 0: best effort
	Metadata     map[string]string
	extensions
}

// readDraft reads the body of a create request.
func readDraft(body []byte, now time.Time) (draft, error) {
	o, err := readObject(body)
	if err != nil {
		return draft{}, err
	}
	d := readCreation(o, now)
	return d, o.finish()
}

// readCreation reads the members of a create request.
func readCreation(o *jsonObject, now time.Time) draft {
	d := draft{extensions: readExtensions(o, now)}
	d.InputFileIDs = readInputs(o, d.extensions)
	d.Endpoint = readEndpoint(o, "endpoint")
	d.Window, d.WindowLength = readWindow(o, "completion_window")
	d.Metadata = readMetadata(o, "metadata")
	d.Options.OutputLife = readExpiry(o, "output_expires_after")
	d.readReferences(o)
	d.checkEndpoint(o)
	return d
}

// readInputs reads input_file_id. It is optional if the request names several inputs, or objects of
// a bucket, for which there are no ids yet.
func readInputs(o *jsonObject, x extensions) []string {
	several, url := x.InputFileIDs, x.Options.InputURL
	if len(several) == 0 && url == "" {
		return []string{o.required("input_file_id")}
	}
	id, ok := o.text("input_file_id")
	switch {
	case url != "" && several != nil:
		o.wrongValue(inputURLParam, "the request has '%s.input_file_ids' too; keep one of them.",
			extensionsKey)
	case ok && url != "" && id != url:
		o.wrongValue("input_file_id", "%s is not '%s'; leave it out or repeat that.", quoted(id),
			inputURLParam)
	case ok && url == "" && id != several[0]:
		o.wrongValue("input_file_id",
			"%s is not the first of '%s.input_file_ids'; leave it out or repeat the first.",
			quoted(id), extensionsKey)
	}
	return several
}

func readEndpoint(o *jsonObject, key string) string {
	endpoint := o.required(key)
	if _, ok := batchfile.LookupEndpoint(endpoint); !ok && endpoint != "" {
		o.wrongValue(key, "%s is not a supported endpoint; use one of %s.", quoted(endpoint),
			endpointList())
	}
	return endpoint
}

func endpointList() string {
	var urls []string
	for _, e := range batchfile.Endpoints() {
		urls = append(urls, "'"+e.URL+"'")
	}
	return strings.Join(urls, ", ")
}

// OpenAI's limits on metadata. Keys and values are measured in characters, not bytes.
const (
	maxMetadataPairs = 16
	maxMetadataKey   = 64
	maxMetadataValue = 512
)

func readMetadata(o *jsonObject, key string) map[string]string {
	given, ok := o.object(key)
	if !ok {
		return nil
	}
	keys := given.keys()
	if len(keys) > maxMetadataPairs {
		o.wrongValue(key, "it has %d pairs, at most %d are allowed.", len(keys), maxMetadataPairs)
		return nil
	}
	metadata := make(map[string]string, len(keys))
	for _, k := range keys {
		if n := utf8.RuneCountInString(k); n > maxMetadataKey {
			o.wrongValue(key, "the key %s has %d characters, at most %d are allowed.", quoted(k), n,
				maxMetadataKey)
			return nil
		}
		value, ok := given.text(k)
		if !ok {
			given.wrongType(k, "a string", given.members[k])
		}
		if n := utf8.RuneCountInString(value); n > maxMetadataValue {
			given.wrongValue(k, "the value has %d characters, at most %d are allowed.", n,
				maxMetadataValue)
		}
		metadata[k] = value
	}
	return metadata
}

// readExpiry reads the time after their creation for which files are kept; 0 if absent.
func readExpiry(o *jsonObject, key string) time.Duration {
	expiry, ok := o.object(key)
	if !ok {
		return 0
	}
	if anchor := expiry.required("anchor"); anchor != "created_at" && anchor != "" {
		expiry.wrongValue("anchor", "the only anchor is 'created_at'.")
	}
	if !expiry.has("seconds") {
		expiry.missing("seconds")
	}
	seconds := expiry.integer("seconds", 3_600, 2_592_000, 0)
	_ = expiry.finish()
	return time.Duration(seconds) * time.Second
}

// createBatch answers POST /v1/batches.
func (s *Server) createBatch(w http.ResponseWriter, r *http.Request) error {
	key, err := idempotencyKeyOf(r)
	if err != nil {
		return err
	}
	body, err := readBody(w, r)
	if err != nil {
		return err
	}
	dry, err := readDryRun(r.URL.Query())
	if err != nil {
		return err
	}
	now := s.now()
	d, err := readDraft(body, now)
	if err == nil {
		err = s.checkOptions(d.extensions)
	}
	if err != nil {
		return err
	}
	// Wait for the gate before the Idempotency-Key is stored, as a retry does.
	if err := s.limitImports(w, r, d); err != nil {
		return err
	}
	if dry {
		if err := s.resolve(r.Context(), &d); err != nil {
			return err
		}
		return s.dryRun(w, r, d, now)
	}
	d.Options.Traceparent = s.deps.Tracer.Traceparent(r.Header)
	tenant, id := tenantOf(r.Context()), newID(batchPrefix)
	b, _, err := createOnce(r.Context(), s, creation[store.Batch]{
		Key:         key,
		Fingerprint: fingerprint("batch", string(body)),
		ID:          id,
		Create: func(ctx context.Context, id string) (store.Batch, error) {
			if err := s.resolve(ctx, &d); err != nil {
				return store.Batch{}, err
			}
			return s.submitDraft(ctx, tenant, id, d, now)
		},
		Load: func(ctx context.Context, id string) (store.Batch, error) {
			return s.meta.Batch(ctx, tenant, id)
		},
	})
	if err != nil {
		return err
	}
	return s.writeBatch(r.Context(), w, b)
}

// submitDraft imports what a draft names in a bucket, and submits its batch.
func (s *Server) submitDraft(
	ctx context.Context, tenant, id string, d draft, now time.Time,
) (store.Batch, error) {
	if err := s.checkOutput(ctx, tenant, id, d); err != nil {
		return store.Batch{}, err
	}
	quota := s.openQuota(tenant)
	defer quota.release()
	files, made, err := s.inputs(ctx, quota, tenant, d)
	if err != nil {
		return store.Batch{}, err
	}
	b, err := s.submit(ctx, newBatch(tenant, id, d, files, now), files, made...)
	if err != nil {
		s.removeUnkept(ctx, made)
	}
	if errors.Is(err, store.ErrNotFound) && made == nil { // an input was deleted in the meantime
		if _, missing := s.inputFiles(ctx, tenant, d); missing != nil {
			err = missing
		}
	}
	return b, err
}

// inputs returns the input files of a draft. The records of those in made, which are imported, are
// not stored yet. After an error, none are made.
func (s *Server) inputs(
	ctx context.Context, quota *quotaReservation, tenant string, d draft,
) (files, made []store.File, err error) {
	if d.Options.InputURL == "" {
		files, err = s.inputFiles(ctx, tenant, d)
		return files, nil, err
	}
	made, err = s.importObjects(ctx, quota, tenant, d)
	return made, made, err
}

// submit checks a batch's input files, stores the batch and notifies dispatchers. The files in made
// are created together with the batch. A batch with errors in its input is stored with the status
// failed, so that the user can read all errors from it.
func (s *Server) submit(
	ctx context.Context, b store.Batch, files []store.File, made ...store.File,
) (store.Batch, error) {
	faults, err := s.findFaults(ctx, b, files)
	if err != nil {
		return store.Batch{}, fmt.Errorf("check the inputs of batch %s: %w", b.ID, err)
	}
	var predicted store.Forecast
	if len(faults) > 0 {
		b.State, b.FailedAt, b.Errors = store.Failed, b.CreatedAt, faults
		b.Counts = store.Counts{} // no line of the batch runs
		b.Models = b.Models[:min(len(b.Models), maxModels)]
	} else if predicted, err = s.admit(ctx, b, files); err != nil {
		return store.Batch{}, err
	}
	if err := s.meta.CreateBatch(ctx, b, made...); err != nil {
		return store.Batch{}, fmt.Errorf("create batch %s: %w", b.ID, err)
	}
	b.Version = 1
	s.predictions.add(b.ID, predicted, s.now())
	s.audit(ctx, "batch created", b.LogArgs()...)
	if b.State.Terminal() {
		s.log.InfoContext(ctx, "batch ended", b.EndLogArgs()...)
		s.deps.Tracer.BatchEnded(&b)
	}
	s.nudge(b.ID)
	return b, nil
}

// inputFiles returns the input files. It keeps at most maxFaults of their errors.
func (s *Server) inputFiles(ctx context.Context, tenant string, d draft) ([]store.File, error) {
	files, left := make([]store.File, len(d.InputFileIDs)), maxFaults
	for i, id := range d.InputFileIDs {
		param := "input_file_id"
		if d.extensions.InputFileIDs != nil {
			param = fmt.Sprintf("%s.input_file_ids[%d]", extensionsKey, i)
		}
		file, err := s.meta.File(ctx, tenant, id)
		if errors.Is(err, store.ErrNotFound) {
			return nil, invalid(param, "", "No such File object: %s", shortened(id))
		}
		if err != nil {
			return nil, fmt.Errorf("look up input file %s: %w", id, err)
		}
		if file.Purpose != "batch" {
			return nil, invalid(param, "invalid_value",
				"File '%s' has the purpose '%s'; upload it with the purpose 'batch'.",
				id, file.Purpose)
		}
		if file.Summary == nil {
			return nil, fmt.Errorf("input file %s has the purpose batch and no summary",
				id)
		}
		faults := file.Summary.Faults[:min(len(file.Summary.Faults), left)]
		file.Summary.Faults = slices.Clone(faults)
		left -= len(faults)
		files[i] = file
	}
	return files, nil
}

// newBatch returns the batch of a draft and its input files.
func newBatch(tenant, id string, d draft, files []store.File, now time.Time) store.Batch {
	b := store.Batch{
		ID:          id,
		Tenant:      tenant,
		State:       store.Validating,
		Endpoint:    d.Endpoint,
		Window:      d.Window,
		Metadata:    d.Metadata,
		Options:     d.Options,
		OptionsJSON: d.Shown,
		Apart:       d.Apart,
		CreatedAt:   now,
		StartBy:     d.StartBy,
		Deadline:    d.Deadline,
		Resolved:    d.Resolved,
	}
	if d.Apart != nil || d.Parameters.Template != nil {
		b.Parameters = &d.Parameters
	}
	if end := now.Add(d.WindowLength); d.WindowLength > 0 && (b.Deadline.IsZero() ||
		end.Before(b.Deadline)) {
		b.Deadline = end
	}
	for _, file := range files {
		b.Inputs = append(b.Inputs, store.Input{
			FileID:   file.ID,
			BlobKey:  file.BlobKey,
			IndexKey: file.IndexKey,
			First:    b.Counts.Total,
			Lines:    file.Summary.Lines,
		})
		b.Counts.Total += file.Summary.Lines
		for _, m := range file.Summary.Models {
			b.Models = addModel(b.Models, m)
			b.PromptBytes += m.PromptBytes
			b.MaxTokens += m.MaxTokens
		}
	}
	outputs := 1
	if d.Options.OutputPerInput {
		outputs = len(files)
	}
	for i := range outputs {
		if !d.Options.OutputPerInput {
			i = -1
		}
		b.Outputs = append(b.Outputs, store.Output{Input: i, OutputID: newID(filePrefix),
			ErrorID: newID(filePrefix)})
	}
	return b
}

func addModel(models []store.ModelLines, m batchfile.ModelSummary) []store.ModelLines {
	i := slices.IndexFunc(models, func(known store.ModelLines) bool {
		return known.Model == m.Name
	})
	if i < 0 {
		return append(models, store.ModelLines{Model: m.Name, Lines: m.Lines})
	}
	models[i].Lines += m.Lines
	return models
}
