package api

import (
	"context"
	"fmt"

	"github.com/tidefill/tidefill/store"
)

// unservedModels returns a sentence for each model of a batch that no upstream serves; none if
// batches wait for such models, or if it is not known yet what the upstreams serve. Then the
// dispatcher decides later.
func (s *Server) unservedModels(
	ctx context.Context, b store.Batch,
) (sentences map[string]string, err error) {
	if b.Resolved != nil && b.Resolved.Template != "" {
		return notOfTemplate(b), nil // its lines go where the template says
	}
	if s.config().UnknownModels == WaitUnknownModels || s.deps.UnservedModels == nil ||
		len(b.Models) > maxModels {
		return nil, nil
	}
	models := make([]string, len(b.Models))
	for i, m := range b.Models {
		models[i] = m.Model
	}
	if sentences, err = s.deps.UnservedModels(ctx, models); err != nil {
		return nil, fmt.Errorf("find the models that no upstream serves: %w", err)
	}
	return sentences, nil
}
