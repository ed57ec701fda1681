package console

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/tidefill/tidefill/store"
)

// forget drops what was learned of a pool.
func (c *Console) forget(w http.ResponseWriter, r *http.Request) error {
	pool := r.PathValue("pool")
	err := c.deps.Forget(r.Context(), pool)
	var elsewhere interface {
		error
		Leader() string
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return unknownPool(pool, c.poolNames(r.Context()), c.deps.Problems())
	case errors.As(err, &elsewhere):
		return &httpError{Status: http.StatusConflict, Type: "invalid_request_error",
			Param: "pool", Code: "pool_led_elsewhere",
			Message: fmt.Sprintf("Node %s leads pool %s; send the request to that node.",
				quoted(elsewhere.Leader()), quoted(pool))}
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}
