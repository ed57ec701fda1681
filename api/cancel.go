package api

import (
	"bytes"
	"io"
	"net/http"

	"github.com/tidefill/tidefill/store"
)

// cancelBatch answers POST /v1/batches/{id}/cancel. A second request may end the lines in flight
// that the first let finish.
func (s *Server) cancelBatch(w http.ResponseWriter, r *http.Request) error {
	finish, err := readCancel(r)
	if err != nil {
		return err
	}
	return s.changeBatch(w, r, "cancelled by a user", func(b *store.Batch) error {
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

// maxCancelBody limits the body of a request to cancel, in bytes.
const maxCancelBody = 16 << 10

// readCancel reads whether lines in flight may finish. Clients send bodies of all kinds, which
// OpenAI ignores, so only a `tidefill` object is read.
func readCancel(r *http.Request) (finish bool, err error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxCancelBody+1))
	if err != nil {
		return false, bodyFailure(r, err)
	}
	if !bytes.Contains(body, []byte(`"`+extensionsKey+`"`)) {
		return false, nil
	}
	if len(body) > maxCancelBody {
		return false, tooLarge("The body of a request to cancel is over the limit of %d bytes.",
			maxCancelBody)
	}
	request, err := readObject(body)
	if err != nil {
		return false, err
	}
	o, ok := request.object(extensionsKey)
	if !ok {
		return false, *request.fault
	}
	finish = o.boolean("finish_in_flight")
	return finish, o.finish()
}
