package finish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tidefill/tidefill/dispatch/work"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/buckets"
)

// Buckets finds the buckets that users may name.
type Buckets interface {
	Find(tenant string, u buckets.URL, use buckets.Use) (buckets.Place, error)
}

const (
	// awayFor is the time, from the beginning of the end of a batch, in which a bucket may be away.
	// It outlasts a night in which nobody repairs the storage. The results are files of the API
	// anyway, and whoever waits for the batch needs to know.
	awayFor = 24 * time.Hour
	// refusedFor is the time for which a bucket may refuse the results. Only an operator or the
	// owner of the bucket can end that, and a change of credentials takes minutes.
	refusedFor = 10 * time.Minute
)

// delivery is where the results of a batch are delivered.
type delivery struct {
	buckets.Place
	batch string
}

// deliveryOf returns where the results of a batch are delivered, as the configuration says now.
func (fz *Finalizer) deliveryOf(b *store.Batch) (*delivery, error) {
	u, err := buckets.ParseURL(b.Options.OutputURL)
	if err != nil {
		return nil, fmt.Errorf("output_url of batch %s: %w", b.ID, err)
	}
	place, err := fz.Buckets.Find(b.Tenant, u, buckets.Write)
	if err != nil {
		return nil, &store.StorageError{Storage: store.Storage{Backend: "s3", Bucket: u.Bucket},
			Cause: err.Error(), Err: fmt.Errorf("%w: %w", store.ErrRefused, err), Delivery: true}
	}
	return &delivery{place, b.ID}, nil
}

// name returns the name of an object with results.
func (d *delivery) name(kind string, output store.Output) string {
	name := d.Name + d.batch + "/" + kind
	if output.Input >= 0 {
		name += fmt.Sprintf("-%04d", output.Input+1)
	}
	return name + ".jsonl"
}

// failure returns an error of the bucket with what users are to know of it.
func (d *delivery) failure(err error) error {
	var away *store.StorageError
	switch {
	case errors.As(err, &away):
		marked := *away
		marked.Delivery = true
		return &marked
	case errors.Is(err, store.ErrNotFound):
		return &store.StorageError{Storage: store.Storage{Backend: "s3", Bucket: d.Bucket},
			Cause: "it refuses the names of the results",
			Err:   fmt.Errorf("%w: %w", store.ErrRefused, err), Delivery: true}
	}
	return err
}

// tryDelivery returns why results can't be delivered now, before anything is written for it.
func (fz *Finalizer) tryDelivery(ctx context.Context, b *store.Batch) error {
	if b.Options.OutputURL == "" {
		return nil
	}
	to, err := fz.deliveryOf(b)
	if err == nil {
		if err = to.CheckWrite(ctx, to.name("output", b.Outputs[0])); err != nil {
			err = to.failure(err)
		}
	}
	return err
}

// giveUp returns the error of a delivery if the batch is to end without, or else as err, if the
// delivery is to be tried again.
func (fz *Finalizer) giveUp(r *work.Run, b *store.Batch, failed error) (
	final *store.StorageError, err error,
) {
	if !errors.As(failed, &final) || !final.Delivery {
		r.DeliveryRefused(false)
		return nil, failed
	}
	limit := fz.RefusedFor
	if limit == 0 {
		limit = refusedFor
	}
	refused := r.DeliveryRefused(errors.Is(failed, store.ErrRefused))
	began := b.FinalizingAt
	if began.IsZero() {
		began = b.CancellingAt
	}
	if refused < limit && fz.Expiry().Sub(began) < awayFor {
		return nil, failed
	}
	return final, nil
}

// deliver copies the result files of a batch to the bucket that it names. A repetition, as after a
// crash, writes the same objects. Without an error the batch may end.
func (e *ending) deliver(ctx context.Context) error {
	b := &e.batch
	if b.Options.OutputURL == "" {
		return nil
	}
	given, err := e.fz.giveUp(e.run, b, e.copyResults(ctx))
	if err != nil {
		e.fz.Metrics.Delivered(DeliveryFailed)
		return err
	}
	e.delivery = &store.Delivery{Delivered: given == nil}
	if given == nil {
		e.fz.Metrics.Delivered(Delivered)
	} else {
		e.fz.Metrics.Delivered(DeliveryGivenUp)
		e.delivery.Error = given.Cause
		e.fz.Log.ErrorContext(ctx, "the results of a batch are not delivered to the bucket that "+
			"it names; they are files of the API", "batch_id", b.ID, "url", b.Options.OutputURL,
			"error", given)
	}
	return nil
}

// copyResults copies the result files that write has written.
func (e *ending) copyResults(ctx context.Context) error {
	to, err := e.fz.deliveryOf(&e.batch)
	if err != nil {
		return err
	}
	keys := make(map[string]string, len(e.files)) // of blobs, by file
	for _, f := range e.files {
		keys[f.ID] = f.BlobKey
	}
	for _, output := range e.outputs {
		for kind, id := range map[string]string{"output": output.OutputID,
			"errors": output.ErrorID} {
			if key, written := keys[id]; written {
				if err := e.copyResult(ctx, to, to.name(kind, output), key); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// copyResult copies one result file. Errors of the bucket are marked.
func (e *ending) copyResult(ctx context.Context, to *delivery, name, key string) error {
	from, err := e.target.Open(ctx, key)
	if err != nil {
		return err
	}
	defer from.Close()
	object, err := to.Create(ctx, name)
	if err != nil {
		return to.failure(err)
	}
	defer object.Abort()
	source := &failingReader{from: io.NewSectionReader(from, 0, from.Size())}
	if _, err := io.Copy(object, source); err != nil {
		if source.err != nil {
			return source.err
		}
		return to.failure(err)
	}
	if err := object.Commit(ctx); err != nil {
		return to.failure(err)
	}
	return nil
}

// failingReader remembers the error of its reader, which a copy mixes with those of the writer.
type failingReader struct {
	from io.Reader
	err  error
}

func (r *failingReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}
