package api

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/store"
)

// BatchSearch selects batches of all tenants.
type BatchSearch struct {
	store.BatchSearch
	Model      string // a part of a name, in any case; empty: all
	Key, Value string // of the metadata; without Value any value, without Key all batches
}

const (
	// searchedBatches limits the batches that a search reads for their models and metadata.
	searchedBatches = 500
	// idsAtOnce is the number of ids that a search asks for at once.
	idsAtOnce = 100
)

// ReadSearch reads the parameters status, state, tenant, id, model, metadata[key] and after. known
// is false if they select nothing.
func ReadSearch(v url.Values) (q BatchSearch, known bool, err error) {
	q.Tenant, q.Prefix, q.Model, q.Before = v.Get("tenant"), v.Get("id"), v.Get("model"),
		v.Get("after")
	if q.States, err = readStates(v); err != nil {
		return q, false, err
	}
	q.Key, q.Value, err = readMetadataFilter(v)
	return q, q.Tenant+q.Prefix+q.Model+q.Before+q.Key != "" || len(q.States) > 0, err
}

// Search returns the ids of up to q.Limit batches, the newest first, and the id after which to
// continue; empty: there are no more. It may return fewer, and an id, if it has read many batches.
func (s *Server) Search(
	ctx context.Context, q BatchSearch,
) (found []string, next string, err error) {
	from := q.BatchSearch
	from.Limit = idsAtOnce
	for read := 0; ; {
		page, err := s.meta.SearchBatchIDs(ctx, from)
		if err != nil {
			return nil, "", err
		}
		for i, id := range page.Items {
			if len(found) == q.Limit || read == searchedBatches {
				return found, from.Before, nil
			}
			fits := true
			if q.Model+q.Key != "" {
				read++
				if fits, err = s.fits(ctx, id, q); err != nil {
					return nil, "", err
				}
			}
			if fits {
				found = append(found, id)
			}
			from.Before = page.Items[i]
		}
		if !page.More {
			return found, "", nil
		}
	}
}

// fits reports whether a batch has the model and the metadata.
func (s *Server) fits(ctx context.Context, id string, q BatchSearch) (bool, error) {
	b, err := s.meta.Batch(ctx, "", id)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil // it was deleted since
	}
	if err != nil {
		return false, fmt.Errorf("read batch %s: %w", id, err)
	}
	value, has := b.Metadata[q.Key]
	if q.Key != "" && (!has || q.Value != "" && value != q.Value) {
		return false, nil
	}
	part := strings.ToLower(q.Model)
	return slices.ContainsFunc(b.Models, func(m store.ModelLines) bool {
		return strings.Contains(strings.ToLower(m.Model), part)
	}) || part == "", nil
}
