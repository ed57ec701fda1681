package api

import (
	"net/http"
	"net/url"

	"github.com/tidefill/tidefill/store"
)

// cancelBatch answers POST /v1/batches/{id}/cancel. It ignores a body, as OpenAI does. A second
// request may end the lines in flight that the first let finish.
func (s *Server) cancelBatch(w http.ResponseWriter, r *http.Request) error {
	finish, err := readInFlight(r.URL.Query())
	if err != nil {
		return err
	}
	return s.changeBatch(w, r, func(b *store.Batch) error {
		if b.State.Terminal() {
			return wrongStatus("cancel", b)
		}
		if b.State == store.Cancelling {
			if finish || !b.FinishInFlight {
				return errUnchanged
			}
			b.FinishInFlight = false
			return nil
		}
		b.State, b.Ending, b.CancellingAt = store.Cancelling, store.Cancelled, s.now()
		b.Paused, b.FinishInFlight = false, finish
		return nil
	})
}

// readInFlight reads what becomes of lines in flight. finish reports whether they may finish.
func readInFlight(v url.Values) (finish bool, err error) {
	switch text := v.Get("in_flight"); text {
	case "", "abort":
		return false, nil
	case "finish":
		return true, nil
	default:
		return false, invalid("in_flight", "invalid_value",
			"Invalid 'in_flight': %s is neither 'abort' nor 'finish'.", quoted(text))
	}
}
