package dispatch_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidefill/tidefill/store"
)

// A server that lists a model may not know it: vLLM after an adapter was unloaded, or a gateway
// whose list is stale. It fails no line, from the start or in the midst of a batch, beside a good
// one or alone. The reason says what is wrong until the model is back.
func TestServerThatDoesNotKnowTheModelItLists(t *testing.T) {
	const lines = 300
	for name, answer := range map[string]struct {
		status int
		body   string
		reason string
	}{
		"vLLM": {404, `{"error":{"message":"The model ` + "`m`" +
			` does not exist.","type":"NotFoundError","param":"model","code":404}}`, "404"},
		"route": {404, `{"error":{"message":"Not Found","code":404}}`, "404"},
		"page":  {404, "404 page not found", "404"},
		"key":   {401, `{"error":{"message":"no","code":"invalid_api_key"}}`, "401"},
	} {
		for _, after := range []int64{0, lines / 3} {
			for _, beside := range []bool{false, true} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					var answered atomic.Int64
					var back atomic.Bool
					bad := serve(t, func(w http.ResponseWriter, _ *http.Request) {
						if answered.Add(1) > after && !back.Load() {
							w.WriteHeader(answer.status)
							io.WriteString(w, answer.body)
							return
						}
						w.Write([]byte(okBody))
					}, "m")
					urls := []string{bad.URL}
					if beside {
						urls = append(urls, serve(t, nil, "m").URL)
					}
					w := newWorld(t)
					w.dispatcher("a", nil, urls...)
					id := w.submit(chatLines(lines, "m"), nil)
					if !beside {
						w.await(id, "waiting with the reason", func(store.Batch) bool {
							why := w.progress(id).Waiting
							return strings.HasPrefix(why, "runners_failing: ") &&
								strings.Contains(why, " answered "+answer.reason)
						})
						back.Store(true)
					}
					if b := w.awaitEnd(id); b.Counts.Completed != lines {
						t.Errorf("%+v, want all %d lines completed", b.Counts, lines)
					}
				})
			}
		}
	}
}

// A batch whose model is gone everywhere waits until its deadline, and costs few requests.
func TestBatchOfAModelThatIsGoneExpires(t *testing.T) {
	var asked atomic.Int64
	up := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(404)
		io.WriteString(w, `{"error":{"message":"gone","code":"model_not_found"}}`)
	}, "m")
	w := newWorld(t)
	w.dispatcher("a", nil, up.URL)
	id := w.submit(chatLines(5000, "m"), func(b *store.Batch) {
		b.Deadline = time.Now().Add(3 * time.Second)
	})
	b := w.awaitEnd(id)
	_, errs := w.results(id)
	if b.State != store.Expired || b.Counts.Failed != 5000 ||
		errs[0].Error.Code != "batch_expired" {
		t.Errorf("got %s, %+v, %s", b.State, b.Counts, errs[0].Error.Code)
	}
	if n := asked.Load(); n > 100 {
		t.Errorf("%d requests, want only trials", n)
	}
}
