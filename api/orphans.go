package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/store"
)

// orphanPage is how many blobs are judged at a time.
const orphanPage = 4096

// sweepOrphans removes the blobs that nobody will ever ask for: what a process leaves that is killed between the commit of
// a blob and its row, or between the end of a row and the removal of its blob.
//
// A blob is judged once it was committed OrphanAfter ago, at least a minute. Its row is written within seconds of the
// commit, or never, so uploads under way are out of the question: an old blob has its row, or belongs to a batch that
// lives, or is an orphan for ever, as nothing but a row or a batch leads to a blob.
func (s *Server) sweepOrphans(ctx context.Context) error {
	if s.config.OrphanAfter == 0 {
		return nil
	}
	return errors.Join(
		s.sweepBlobs(ctx, "files", s.orphanFiles),
		s.sweepBlobs(ctx, "uploads", func(ctx context.Context, blobs []store.BlobInfo) ([]store.BlobInfo, error) {
			return unowned(ctx, blobs, s.isPending)
		}),
		// What dispatchers keep beside a batch while they work on it.
		s.sweepBlobs(ctx, "batches", func(ctx context.Context, blobs []store.BlobInfo) ([]store.BlobInfo, error) {
			return unowned(ctx, blobs, s.isLiving)
		}),
	)
}

// sweepBlobs removes, of the old blobs below a prefix, those that orphans returns.
func (s *Server) sweepBlobs(ctx context.Context, prefix string, orphans func(context.Context, []store.BlobInfo) ([]store.BlobInfo, error)) error {
	before := s.now().Add(-s.config.OrphanAfter)
	var faults []error
	for after, more := "", true; more; {
		page, err := s.blobs.List(ctx, prefix, after, orphanPage)
		if err != nil {
			return errors.Join(append(faults, fmt.Errorf("sweep orphans: %w", err))...)
		}
		if more = len(page) == orphanPage; more {
			after = page[len(page)-1].Key
		}
		old := slices.DeleteFunc(page, func(b store.BlobInfo) bool { return !b.CommittedAt.Before(before) })
		found, err := orphans(ctx, old)
		if err != nil {
			return errors.Join(append(faults, fmt.Errorf("sweep orphans below %s: %w", prefix, err))...)
		}
		for _, b := range found {
			if err := s.blobs.Delete(ctx, b.Key); err != nil {
				faults = append(faults, err)
				continue
			}
			s.log.InfoContext(ctx, "removed bytes that nothing knows", "key", b.Key, "bytes", b.Bytes, "committed_at", b.CommittedAt)
		}
	}
	return errors.Join(faults...)
}

// orphanFiles returns the blobs that neither belong to a file nor are read or written by a living batch. It looks for rows
// twice, before and after it looks at the batches. The inputs of a batch that is created only then have rows the first
// time, even if they are deleted at once; the results of one that has ended by then have rows the second time, as these
// are made before the end.
func (s *Server) orphanFiles(ctx context.Context, blobs []store.BlobInfo) ([]store.BlobInfo, error) {
	suspects, err := unowned(ctx, blobs, s.isFile)
	if err != nil || len(suspects) == 0 {
		return nil, err
	}
	needed, err := s.blobsOfLivingBatches(ctx)
	if err != nil {
		return nil, err
	}
	suspects = slices.DeleteFunc(suspects, func(b store.BlobInfo) bool { return needed[b.Key] })
	return unowned(ctx, suspects, s.isFile)
}

// blobsOfLivingBatches returns the keys of all inputs, and of the result files that are written before their rows.
func (s *Server) blobsOfLivingBatches(ctx context.Context) (map[string]bool, error) {
	ids, _, err := s.meta.ChangedBatches(ctx, 0, 0)
	if err != nil {
		return nil, err
	}
	keys := make(map[string]bool)
	for _, id := range ids {
		b, err := s.meta.Batch(ctx, "", id)
		if errors.Is(err, store.ErrNotFound) { // it has ended and was deleted since
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, input := range b.Inputs {
			keys[input.BlobKey], keys[input.IndexKey] = true, true
		}
		for _, output := range b.Outputs {
			keys[fileKey(output.OutputID)], keys[fileKey(output.ErrorID)] = true, true
		}
	}
	return keys, nil
}

// unowned returns the blobs whose owner, named in their key, owns denies or doesn't find.
func unowned(ctx context.Context, blobs []store.BlobInfo, owns func(ctx context.Context, id string) (bool, error)) (left []store.BlobInfo, err error) {
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

// ownerOf returns the id in a key: files/<id>, files/<id>.index, uploads/<id>/<part>, batches/<id>/order.
func ownerOf(key string) string {
	_, rest, _ := strings.Cut(key, "/")
	id, _, _ := strings.Cut(rest, "/")
	return strings.TrimSuffix(id, indexSuffix)
}

func (s *Server) isFile(ctx context.Context, id string) (bool, error) {
	_, err := s.meta.File(ctx, "", id)
	return err == nil, err
}

func (s *Server) isPending(ctx context.Context, uploadID string) (bool, error) {
	u, err := s.meta.Upload(ctx, "", uploadID)
	return err == nil && u.State == store.UploadPending, err
}

func (s *Server) isLiving(ctx context.Context, batchID string) (bool, error) {
	b, err := s.meta.Batch(ctx, "", batchID)
	return err == nil && !b.State.Terminal(), err
}
