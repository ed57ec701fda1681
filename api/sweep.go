package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tidefill/tidefill/store"
)

// sweepPage is the number of objects that a sweep lists at once.
const sweepPage = 100

// uploadRetention is the time for which an upload can be read after it has ended.
const uploadRetention = 24 * time.Hour

// Run removes expired files, parts of ended uploads, batches past their retention, and blobs that a
// crash has left, until ctx ends. Each sweep retries what an earlier one could not remove. Run also
// saves when keys were last used.
func (s *Server) Run(ctx context.Context) error {
	var saving sync.WaitGroup
	saving.Go(func() { s.keepKeyUses(ctx) })
	defer saving.Wait()
	sweeps := time.NewTicker(s.config().SweepEvery)
	defer sweeps.Stop()
	var orphans <-chan time.Time // nil, and never ready, if orphans are not removed
	if every := s.config().OrphanAfter; every > 0 {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		orphans = ticker.C
	}
	s.runSweep(ctx, s.sweep)
	s.runSweep(ctx, s.sweepOrphans)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-sweeps.C:
			s.runSweep(ctx, s.sweep)
		case <-orphans:
			s.runSweep(ctx, s.sweepOrphans)
		}
	}
}

func (s *Server) runSweep(ctx context.Context, sweep func(context.Context) error) {
	if err := sweep(ctx); err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "sweep could not remove everything; the next one retries",
			"error", err)
	}
}

func (s *Server) sweep(ctx context.Context) error {
	return errors.Join(
		sweepAll(ctx, "expired files", s.meta.ExpiredFiles, s.purgeFile),
		sweepAll(ctx, "stale uploads", s.meta.StaleUploads,
			func(ctx context.Context, u store.Upload) error {
				return s.removeParts(ctx, u.ID)
			}),
		s.sweepUploads(ctx),
		s.sweepBatches(ctx),
	)
}

// maxSkipped limits the files that a sweep passes over because the storages of their profiles are
// away. They are listed again with each page.
const maxSkipped = 100 * sweepPage

// sweepAll lists and removes items page by page. It stops at a page of which it could not remove an
// item, because it would list that item again, unless the storage of a profile is away: then it
// goes on with larger pages.
func sweepAll[T any](
	ctx context.Context, what string, list func(context.Context, int) ([]T, error),
	remove func(context.Context, T) error,
) error {
	var away error // of the first item that was passed over
	for limit := sweepPage; ; {
		page, err := list(ctx, limit)
		if err != nil {
			return fmt.Errorf("sweep %s: %w", what, err)
		}
		var faults []error
		skipped := 0
		for _, item := range page {
			err := remove(ctx, item)
			if of := new(store.StorageError); errors.As(err, &of) {
				skipped++
				away = cmp.Or(away, err)
				continue
			}
			faults = append(faults, err)
		}
		if err := errors.Join(faults...); err != nil || len(page) < limit ||
			skipped > maxSkipped {
			return errors.Join(err, away)
		}
		if skipped > 0 {
			limit *= 2
		}
	}
}

// purgeFile removes an expired file: first its bytes, then its record, by which a later sweep finds
// bytes that could not be removed.
func (s *Server) purgeFile(ctx context.Context, f store.File) error {
	if err := s.removeBytes(ctx, f); err != nil {
		return err
	}
	return s.meta.PurgeFile(ctx, f.ID)
}

// sweepUploads deletes uploads that ended long ago, but none that a stored Idempotency-Key refers
// to.
func (s *Server) sweepUploads(ctx context.Context) error {
	before := s.deps.Expiry().Add(-max(uploadRetention, s.config().IdempotencyRetention))
	for {
		purged, err := s.meta.PurgeUploads(ctx, before, sweepPage)
		if err != nil {
			return fmt.Errorf("sweep old uploads: %w", err)
		}
		if purged < sweepPage {
			return nil
		}
	}
}

func (s *Server) sweepBatches(ctx context.Context) error {
	if s.config().BatchRetention == 0 {
		return nil
	}
	before := s.deps.Expiry().Add(-s.config().BatchRetention)
	return sweepAll(ctx, "old batches", func(ctx context.Context, limit int) ([]store.Batch,
		error) {
		return s.meta.StaleBatches(ctx, before, limit)
	}, s.purgeBatch)
}

// purgeBatch removes an ended batch and its journals. Its files expire by themselves.
func (s *Server) purgeBatch(ctx context.Context, b store.Batch) error {
	if err := s.deps.Journals.Remove(ctx, b.ID); err != nil {
		return fmt.Errorf("remove journals of batch %s: %w", b.ID, err)
	}
	if _, err := s.meta.DeleteBatch(ctx, b.Tenant, b.ID); err != nil && !errors.Is(err,
		store.ErrNotFound) {
		return fmt.Errorf("delete batch %s: %w", b.ID, err)
	}
	return nil
}
