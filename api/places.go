package api

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/store"
)

// Places opens the storages of profiles.
type Places interface {
	Of(s store.Storage) store.Blobs
}

// blobsOf returns the blobs that hold the bytes of a file.
func (s *Server) blobsOf(f store.File) (Blobs, error) {
	switch {
	case f.Storage == nil:
		return s.blobs, nil
	case s.deps.Places == nil:
		return nil, store.NoPlace(*f.Storage)
	}
	return s.deps.Places.Of(*f.Storage), nil
}

// profileStorages returns the storages that profiles name at present, each once.
func (s *Server) profileStorages() ([]store.Storage, error) {
	if s.deps.Catalogs == nil || s.deps.Places == nil {
		return nil, nil
	}
	catalogs, err := s.deps.Catalogs()
	if err != nil {
		return nil, err
	}
	var all []store.Storage
	for _, e := range catalogs.Profiles() {
		if from := e.Item.Spec.Storage; from != (registry.Storage{}) {
			if at := storageOf(from); !slices.Contains(all, at) {
				all = append(all, at)
			}
		}
	}
	return all, nil
}

// storageOf returns the storage of a profile as the store has it.
func storageOf(s registry.Storage) store.Storage {
	return store.Storage{Backend: s.Backend, Bucket: s.Bucket, Region: s.Region,
		EndpointURL: s.EndpointURL, Credentials: s.CredentialsSecretRef}
}

// sweepPlaces is sweepOrphans for the storages of profiles. Other installations may use one as
// well, so it removes only results of batches that have a record here and have ended.
func (s *Server) sweepPlaces(ctx context.Context) error {
	storages, err := s.profileStorages()
	if err != nil {
		return fmt.Errorf("sweep orphans in storages of profiles: %w", err)
	}
	var faults []error
	for _, at := range storages {
		faults = append(faults, s.sweepBlobs(ctx, s.deps.Places.Of(at), store.ResultPrefix,
			func(ctx context.Context, blobs []store.BlobInfo) ([]store.BlobInfo, error) {
				return s.orphanResults(ctx, blobs)
			}))
	}
	return errors.Join(faults...)
}

// orphanResults drops and returns the blobs that no record refers to, of ended batches.
func (s *Server) orphanResults(
	ctx context.Context, blobs []store.BlobInfo,
) (dropped []store.BlobInfo, err error) {
	ended := make(map[string]bool)
	var keys []string
	for _, b := range blobs {
		id := store.BatchOfResult(b.Key)
		is, known := ended[id]
		if !known {
			batch, err := s.meta.Batch(ctx, "", id)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return nil, err
			}
			is = err == nil && batch.State.Terminal()
			ended[id] = is
		}
		if is {
			keys = append(keys, b.Key)
		}
	}
	keys, err = s.dropInPages(ctx, keys)
	for _, b := range blobs {
		if slices.Contains(keys, b.Key) {
			dropped = append(dropped, b)
		}
	}
	return dropped, err
}
