package api

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/store"
)

// sweepPage is how many objects a sweep looks at between two looks at the clock of its context.
const sweepPage = 100

// uploadRetention is how long an upload can be asked for once it is over.
const uploadRetention = 24 * time.Hour

// Run removes what is over until ctx ends: expired files, parts of uploads that ended, batches past
// their retention, and bytes that a crash has left. What can't be removed now is tried again at the
// next sweep.
func (s *Server) Run(ctx context.Context) error {
	sweeps := time.NewTicker(s.config.SweepEvery)
	defer sweeps.Stop()
	var orphans <-chan time.Time // nil, and never ready, if they are to stay
	if every := s.config.OrphanAfter; every > 0 {
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
		s.log.WarnContext(ctx, "sweep left something behind", "error", err)
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

// sweepAll lists and removes page by page. It stops at a page of which something stays, or it would
// see that for ever.
func sweepAll[T any](
	ctx context.Context, what string, list func(context.Context, int) ([]T, error),
	remove func(context.Context, T) error,
) error {
	for {
		page, err := list(ctx, sweepPage)
		if err != nil {
			return fmt.Errorf("sweep %s: %w", what, err)
		}
		var faults []error
		for _, item := range page {
			faults = append(faults, remove(ctx, item))
		}
		if err := errors.Join(faults...); err != nil || len(page) < sweepPage {
			return err
		}
	}
}

// purgeFile removes an expired file: bytes first, so that the row keeps reminding of them until
// they are gone.
func (s *Server) purgeFile(ctx context.Context, f store.File) error {
	if err := s.removeBytes(ctx, f); err != nil {
		return err
	}
	return s.meta.PurgeFile(ctx, f.ID)
}

// sweepUploads forgets uploads that were over long ago, but none that an Idempotency-Key still
// stands for.
func (s *Server) sweepUploads(ctx context.Context) error {
	before := s.deps.Expiry().Add(-max(uploadRetention, s.config.IdempotencyRetention))
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
	if s.config.BatchRetention == 0 {
		return nil
	}
	before := s.deps.Expiry().Add(-s.config.BatchRetention)
	return sweepAll(ctx, "old batches", func(ctx context.Context, limit int) ([]store.Batch,
		error) {
		return s.meta.StaleBatches(ctx, before, limit)
	}, s.purgeBatch)
}

// purgeBatch removes an ended batch and its journals. Its files have lives of their own.
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
