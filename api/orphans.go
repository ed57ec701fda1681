package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/store"
)

// orphanPage is the number of blobs that are checked at a time.
const orphanPage = 4096

// sweepOrphans removes the blobs that no record refers to. A process leaves them if it is killed
// between the commit of a blob and the creation of its record, or between the deletion of a record
// and the removal of its blob.
//
// It checks blobs that were committed at least OrphanAfter ago. A record is created within seconds
// of the commit, or never. If a process was suspended for longer, the creation of its record fails,
// because the blob was dropped.
func (s *Server) sweepOrphans(ctx context.Context) error {
	if s.config().OrphanAfter == 0 {
		return nil
	}
	if s.deps.Older != nil {
		if err := s.deps.Older(ctx); err != nil {
			return fmt.Errorf("leave blobs that no record refers to: %w", err)
		}
	}
	return errors.Join(
		s.sweepBlobs(ctx, s.blobs, "files", s.orphanFiles),
		s.sweepBlobs(ctx, s.blobs, "uploads", func(ctx context.Context, blobs []store.BlobInfo) (
			[]store.BlobInfo, error) {
			return unowned(ctx, blobs, s.isPending)
		}),
		// Files of dispatchers, which exist while a batch runs.
		s.sweepBlobs(ctx, s.blobs, "batches", func(ctx context.Context, blobs []store.BlobInfo) (
			[]store.BlobInfo, error) {
			return unowned(ctx, blobs, s.isActive)
		}),
		s.sweepPlaces(ctx),
	)
}

// sweepBlobs removes those of the old blobs below a prefix that orphans returns.
func (s *Server) sweepBlobs(
	ctx context.Context, from Blobs, prefix string,
	orphans func(context.Context, []store.BlobInfo) ([]store.BlobInfo, error),
) error {
	before := s.deps.Expiry().Add(-s.config().OrphanAfter)
	var faults []error
	for after, more := "", true; more; {
		page, err := from.List(ctx, prefix, after, orphanPage)
		if err != nil {
			return errors.Join(append(faults, fmt.Errorf("sweep orphans: %w", err))...)
		}
		if more = len(page) == orphanPage; more {
			after = page[len(page)-1].Key
		}
		old := slices.DeleteFunc(page, func(b store.BlobInfo) bool {
			return !b.CommittedAt.Before(before)
		})
		found, err := orphans(ctx, old)
		if err != nil {
			return errors.Join(append(faults, fmt.Errorf("sweep orphans below %s: %w", prefix,
				err))...)
		}
		for _, b := range found {
			if err := from.Delete(ctx, b.Key); err != nil {
				faults = append(faults, err)
				continue
			}
			s.log.InfoContext(ctx, "removed a blob that no record refers to", "key", b.Key,
				"bytes", b.Bytes, "committed_at", b.CommittedAt)
		}
	}
	return errors.Join(faults...)
}

// orphanFiles drops and returns the blobs that no record refers to, except those that may be
// results of running batches, whose records are created last. The order matters: a batch that has
// ended before the running ones are listed has created the records of its results before that.
func (s *Server) orphanFiles(
	ctx context.Context, blobs []store.BlobInfo,
) ([]store.BlobInfo, error) {
	if len(blobs) == 0 {
		return nil, nil
	}
	expected, err := s.resultsOfActiveBatches(ctx)
	if err != nil {
		return nil, err
	}
	candidates := make(map[string]store.BlobInfo, len(blobs))
	keys := make([]string, 0, len(blobs))
	for _, b := range blobs {
		if !expected[ownerOf(b.Key)] {
			candidates[b.Key], keys = b, append(keys, b.Key)
		}
	}
	keys, err = s.dropInPages(ctx, keys)
	dropped := make([]store.BlobInfo, len(keys))
	for i, key := range keys {
		dropped[i] = candidates[key]
	}
	return dropped, err
}

// dropInPages drops the blobs that no record refers to, in small steps, so that other writes are
// not delayed.
func (s *Server) dropInPages(ctx context.Context, keys []string) (dropped []string, err error) {
	for step := range slices.Chunk(keys, sweepPage) {
		some, err := s.meta.DropBlobs(ctx, "", step...)
		if err != nil {
			return nil, err
		}
		dropped = append(dropped, some...)
	}
	return dropped, nil
}

// resultsOfActiveBatches returns the ids of the files that running batches may be writing.
func (s *Server) resultsOfActiveBatches(ctx context.Context) (map[string]bool, error) {
	active, _, err := s.meta.ChangedBatches(ctx, "", 0)
	if err != nil {
		return nil, err
	}
	ids := make(map[string]bool)
	for _, id := range active {
		b, err := s.meta.Batch(ctx, "", id)
		if errors.Is(err, store.ErrNotFound) { // ended and deleted in the meantime
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, output := range b.Outputs {
			ids[output.OutputID], ids[output.ErrorID] = true, true
		}
	}
	return ids, nil
}

// unowned returns the blobs for which owns, called with the id in their key, returns false or
// ErrNotFound.
func unowned(
	ctx context.Context, blobs []store.BlobInfo, owns func(ctx context.Context, id string) (bool,
		error),
) (left []store.BlobInfo, err error) {
	answers := make(map[string]bool)
	for _, b := range blobs {
		id := ownerOf(b.Key)
		owned, known := answers[id]
		if !known {
			owned, err = owns(ctx, id)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return nil, err
			}
			answers[id] = owned
		}
		if !owned {
			left = append(left, b)
		}
	}
	return left, nil
}

// ownerOf returns the id in a key: files/<id>, files/<id>.index, files/<id>.<epoch>,
// uploads/<id>/<part>, batches/<id>/order.
func ownerOf(key string) string {
	_, rest, _ := strings.Cut(key, "/")
	id, _, _ := strings.Cut(rest, "/")
	id, _, _ = strings.Cut(id, ".")
	return id
}

func (s *Server) isPending(ctx context.Context, uploadID string) (bool, error) {
	u, err := s.meta.Upload(ctx, "", uploadID)
	return err == nil && u.State == store.UploadPending, err
}

func (s *Server) isActive(ctx context.Context, batchID string) (bool, error) {
	b, err := s.meta.Batch(ctx, "", batchID)
	return err == nil && !b.State.Terminal(), err
}
