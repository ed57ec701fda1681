package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"time"

	"github.com/tidefill/tidefill/internal/csvlines"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/buckets"
)

const (
	inputURLKey   = "input_url"
	inputURLParam = extensionsKey + "." + inputURLKey
	outputURLKey  = "output_url"
)

// readBucketURL reads a URL s3://BUCKET/NAME; empty: it is absent.
func readBucketURL(o *jsonObject, key string) string {
	text, ok := o.text(key)
	if !ok {
		return ""
	}
	if _, err := buckets.ParseURL(text); err != nil {
		o.wrongValue(key, "%s: %v.", quoted(text), err)
		return ""
	}
	return text
}

// bucketUse is what a request wants of a bucket.
type bucketUse struct {
	server *Server
	param  string // that names the URL
	place  buckets.Place
}

// findBucket returns the place that a tenant names in a parameter.
func (s *Server) findBucket(tenant, param, url string, use buckets.Use) (*bucketUse, error) {
	u, err := buckets.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("read %s again: %w", param, err) // it was read before
	}
	place, err := s.deps.Buckets.Find(tenant, u, use)
	if err != nil {
		return nil, invalid(param, "bucket_not_allowed", "Invalid '%s': %v.", param, err)
	}
	return &bucketUse{s, param, place}, nil
}

// failure returns the answer to an error of an object. An error of the daemon's own store, or the
// end of the request, is returned unchanged.
func (b *bucketUse) failure(ctx context.Context, at buckets.URL, err error) error {
	var away *store.StorageError
	switch {
	case errors.Is(err, store.ErrNotFound):
		return invalid(b.param, "object_not_found", "Invalid '%s': there is no object %s.", b.param,
			at)
	case !errors.As(err, &away):
		return err
	}
	b.server.log.WarnContext(ctx, "could not use a bucket that a request names", "entry",
		b.place.Entry, "object", at.String(), "error", err)
	if errors.Is(err, store.ErrRefused) {
		e := invalid(b.param, "bucket_access_denied", "The server may not use %s: of the bucket "+
			"'%s' of its configuration, %s. Ask its operator to check the bucket and the "+
			"credentials.", at, b.place.Entry, away.Cause)
		e.Status = http.StatusForbidden
		return e
	}
	return &httpError{
		Status: http.StatusServiceUnavailable, Type: serverError, Code: "storage_away",
		Param: b.param, RetryAfter: 10 * time.Second,
		Message: fmt.Sprintf("The bucket of %s can't be used: %s; send the request again later.",
			at, away.Cause),
	}
}

// maxListed limits the names that are searched for inputs below a prefix: enough for results and
// other objects beside maxInputs inputs, and ten requests to the storage.
const maxListed = 10_000

// objects returns the URLs of the inputs: that of the place or, if it names several, those of the
// objects below it, in the order of their names.
func (b *bucketUse) objects(ctx context.Context) (found []buckets.URL, err error) {
	if !b.place.Several() {
		return []buckets.URL{b.place.URL}, nil
	}
	const page = 1000
	for after, listed := "", 0; ; {
		objects, err := b.place.List(ctx, b.place.Name, after, page)
		if err != nil {
			return nil, b.failure(ctx, b.place.URL, err)
		}
		for _, o := range objects {
			if after = o.Key; !isInput(o.Key) {
				continue
			}
			if found = append(found, buckets.URL{Bucket: b.place.Bucket, Name: o.Key}); len(found) >
				maxInputs {
				return nil, b.invalid("there are more than %d inputs below it; name some of them",
					maxInputs)
			}
		}
		if listed += len(objects); listed >= maxListed {
			return nil, b.invalid("there are more than %d objects below it; put the inputs below "+
				"a name of their own", maxListed)
		}
		if len(objects) < page {
			break
		}
	}
	if len(found) == 0 {
		return nil, b.invalid("there is no object below it whose name ends in .jsonl or .csv")
	}
	for _, u := range found {
		if _, err := buckets.ParseURL(u.String()); err != nil {
			return nil, b.invalid("%v", err)
		}
	}
	return found, nil
}

func (b *bucketUse) invalid(format string, args ...any) error {
	return invalid(b.param, "invalid_value", "Invalid '%s': %s: %s.", b.param, b.place.URL,
		fmt.Sprintf(format, args...))
}

// isInput reports whether an object may be an input, by its name.
func isInput(name string) bool { return isJSONL(name) || isCSV(name) }

// checkOutput returns why results of a batch can't be delivered where its draft says.
func (s *Server) checkOutput(ctx context.Context, tenant, batch string, d draft) error {
	if d.Options.OutputURL == "" {
		return nil
	}
	to, err := s.findBucket(tenant, extensionsKey+"."+outputURLKey, d.Options.OutputURL,
		buckets.Write)
	if err != nil {
		return err
	}
	// The longest name that a result may have.
	longest := buckets.URL{Bucket: to.place.Bucket, Name: to.place.Name + cmp.Or(batch,
		newID(batchPrefix)) + "/output-0001.jsonl"}
	if _, err := buckets.ParseURL(longest.String()); err != nil {
		return to.invalid("of a result below it, %v", err)
	}
	if err := to.place.CheckWrite(ctx, longest.Name); err != nil {
		return to.failure(ctx, longest, err)
	}
	return nil
}

// limitImports passes the gate of uploads first if a request imports objects.
func (s *Server) limitImports(w http.ResponseWriter, r *http.Request, d draft) error {
	if d.Options.InputURL == "" {
		return nil
	}
	return s.moveToGate(w, r, &s.gates.uploads)
}

// importObjects copies the objects that a draft names into files, whose records are not stored yet.
// After an error, none remain.
func (s *Server) importObjects(
	ctx context.Context, quota *quotaReservation, tenant string, d draft,
) (made []store.File, err error) {
	defer func() {
		if err != nil {
			s.removeUnkept(ctx, made)
			made = nil
		}
	}()
	from, err := s.findBucket(tenant, inputURLParam, d.Options.InputURL, buckets.Read)
	if err != nil {
		return nil, err
	}
	objects, err := from.objects(ctx)
	if err == nil {
		err = from.checkKinds(objects, d.CSV)
	}
	if err != nil {
		return nil, err
	}
	for _, u := range objects {
		f, err := from.copyObject(ctx, quota, u, d)
		if err != nil {
			return made, fmt.Errorf("import %s: %w", u, err)
		}
		made = append(made, f)
	}
	return made, nil
}

// copyObject copies an object, or the lines of its rows, into a file as an upload does. An object
// that is replaced meanwhile is an error.
func (b *bucketUse) copyObject(
	ctx context.Context, quota *quotaReservation, u buckets.URL, d draft,
) (store.File, error) {
	s := b.server
	if !isInput(u.Name) {
		return store.File{}, b.invalid("the name of the object must end in .jsonl or .csv")
	}
	base := path.Base(u.Name)
	if isCSV(base) {
		base += ".jsonl" // as which it is stored
	}
	name, err := cleanFilename(base)
	if err != nil {
		return store.File{}, b.invalid("the last part of its name is over the limit of %d bytes",
			maxFilename)
	}
	object, err := b.place.Open(ctx, u.Name)
	if err != nil {
		return store.File{}, b.failure(ctx, u, err)
	}
	defer object.Close()
	limit := s.fileLimit(purposeBatch)
	if object.Size() > limit {
		return store.File{}, fileTooLarge(purposeBatch, limit)
	}
	if err := quota.expect(ctx, object.Size()); err != nil {
		return store.File{}, err
	}
	id := newID(filePrefix)
	in, err := s.newIntake(ctx, fileKey(id), true, nil, quota)
	if err != nil {
		return store.File{}, err
	}
	defer in.abort()
	var from io.Reader = io.NewSectionReader(object, 0, object.Size())
	var rows *csvlines.Reader // nil: the object has lines
	if isCSV(u.Name) {
		if rows, err = csvlines.NewReader(from, d.CSV, d.Endpoint); err != nil {
			return store.File{}, b.readFailure(ctx, u, err)
		}
		from = rows
	}
	err = in.copyFrom(ctx, from, limit)
	s.metrics.uploaded.Add(float64(in.size))
	var source readError
	switch {
	case errors.As(err, &source):
		return store.File{}, b.readFailure(ctx, u, source.error)
	case errors.Is(err, errOverLimit):
		return store.File{}, fileTooLarge(purposeBatch, limit)
	case err != nil:
		return store.File{}, err
	}
	if err := in.finish(purposeBatch); err != nil {
		return store.File{}, err
	}
	if rows != nil {
		addRowFaults(in.summary, rows)
	}
	return s.commitFile(ctx, in, store.File{ID: id, Purpose: purposeBatch, Filename: name}, 0)
}

// readFailure returns the answer to an error of reading an open object.
func (b *bucketUse) readFailure(ctx context.Context, u buckets.URL, err error) error {
	if wrong := (*csvlines.Error)(nil); errors.As(err, &wrong) {
		return invalid(csvParam, "invalid_value", "Invalid '%s': %s: %v.", csvParam, u, wrong)
	}
	if errors.Is(err, store.ErrNotFound) {
		e := invalid(b.param, "object_changed", "The object %s was replaced or deleted while it "+
			"was read; send the request again.", u)
		e.Status = http.StatusConflict
		return e
	}
	return b.failure(ctx, u, err)
}

// removeUnkept removes the bytes of files whose records were not stored, even after the end of ctx.
func (s *Server) removeUnkept(ctx context.Context, made []store.File) {
	var keys []string
	for _, f := range made {
		keys = append(keys, f.BlobKey, f.IndexKey)
	}
	if len(keys) == 0 {
		return
	}
	ctx, cancel := cleanupContext(ctx)
	defer cancel()
	// those that are in use stay: an error of a write may hide that it was made
	if err := store.RemoveBlobs(ctx, s.meta, s.blobs, "", keys...); err != nil {
		s.log.WarnContext(ctx, "could not remove the bytes of files that are not kept",
			"first_file", made[0].ID, "error", err)
	}
}
