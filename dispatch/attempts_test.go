package dispatch_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/store"
)

// breakOff ends a connection in the middle of a request, as an engine does that dies.
func breakOff(t *testing.T, w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	conn.Close()
}

func TestAttemptsAreTheRequestsThatUpstreamsSaw(t *testing.T) {
	for name, change := range map[string]func(*dispatch.Config,
		*dispatch.Deps){"plain": nil, "streamed": watch()} {
		t.Run(name, func(t *testing.T) {
			var up *upstream
			up = serve(t, func(w http.ResponseWriter, r *http.Request) {
				raw, _ := io.ReadAll(r.Body)
				body := string(raw)
				up.mu.Lock()
				seen := up.bodies[body]
				up.mu.Unlock()
				switch {
				case strings.Contains(body, `"stream":true`):
					http.Error(w, `{"error":{"message":"no stream here"}}`, 400)
				case strings.Contains(body, "say deadly"):
					breakOff(t, w)
				case strings.Contains(body, "say failing"):
					http.Error(w, `{"error":{}}`, 500)
				case strings.Contains(body, "say shed") && seen < 4:
					w.Header().Set("Retry-After-Ms", "1")
					http.Error(w, `{"error":{}}`, http.StatusTooManyRequests)
				default:
					io.WriteString(w, okBody)
				}
			}, "m")
			w := newWorld(t)
			w.dispatcher("a", change, up.URL)
			lines := append(chatLines(100, "m"), chatLine("failing", "m"), chatLine("shed", "m"))
			for _, id := range []string{"1", "2", "3", "4", "5"} {
				lines = append(lines, chatLine("deadly "+id, "m"))
			}
			id := w.submit(lines, nil)
			b := w.awaitEnd(id)
			w.results(id)
			deadly := 0
			for body, times := range up.bodies {
				if strings.Contains(body, "say deadly") && !strings.Contains(
					body, `"stream":true`) {
					deadly += times
				}
			}
			if deadly != 25 {
				t.Errorf(
					"%d deadly requests were sent, want 5 of each of the 5 lines (retry.deaths)",
					deadly)
			}
			if b.State != store.Completed || b.Counts.Failed != 6 || b.Attempts != int64(
				up.requests()) {
				t.Errorf("got %s, %+v, %d attempts; the upstream saw %d requests", b.State,
					b.Counts, b.Attempts, up.requests())
			}
		})
	}
}

func TestRequestsOfLinesWithoutAResultAreCounted(t *testing.T) {
	up := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if raw, _ := io.ReadAll(r.Body); strings.Contains(string(raw), "say line-0") {
			<-r.Context().Done()
			return
		}
		http.Error(w, `{"error":{}}`, http.StatusServiceUnavailable)
	}, "m")
	w := newWorld(t)
	w.dispatcher("a", func(c *dispatch.Config, _ *dispatch.Deps) { c.CancelGrace = 0 }, up.URL)
	id := w.submit(chatLines(4, "m"), nil)
	w.await(id, "sending", func(store.Batch) bool {
		return w.progress(id).Attempts >= 10 && w.progress(id).InFlight > 0
	})
	w.modify(id, func(b *store.Batch) {
		b.State, b.Ending, b.CancellingAt = store.Cancelling, store.Cancelled, time.Now()
	})
	b := w.awaitEnd(id)
	if b.Counts.Failed != 4 || b.Attempts != int64(up.requests()) {
		t.Errorf("got %+v, %d attempts; the upstream saw %d requests", b.Counts, b.Attempts,
			up.requests())
	}
}
