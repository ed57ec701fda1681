package dispatch_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/store"
)

// unlisted is a server whose GET /v1/models has a status of its own. It counts the lines that it
// gets by model.
type unlisted struct {
	*httptest.Server
	asked events
	mu    sync.Mutex
	got   map[string]int
}

func serveUnlisted(t *testing.T, status int) *unlisted {
	u := &unlisted{got: map[string]int{}}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			u.asked.add()
			http.Error(w, "no such page", status)
			return
		}
		var body struct{ Model string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		u.mu.Lock()
		u.got[body.Model]++
		u.mu.Unlock()
		io.WriteString(w, okBody)
	}))
	t.Cleanup(u.Close)
	return u
}

func (u *unlisted) lines(model string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.got[model]
}

// logged collects what a dispatcher logs.
type logged struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

func (l *logged) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.out.String(), text)
}

func TestUpstreamWithoutAListGetsWhatNoOtherLists(t *testing.T) {
	for _, status := range []int{404, 405, 501} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			listing, other := serve(t, nil, "small"), serveUnlisted(t, status)
			w := newWorld(t)
			var log logged
			w.dispatcher("a", func(c *dispatch.Config, d *dispatch.Deps) {
				c.ModelsEvery = 5 * time.Millisecond
				d.Logger = slog.New(slog.NewTextHandler(&log, nil))
			}, listing.URL, other.URL)
			first := w.submit(append(chatLines(3, "small"), chatLines(7, "large")[3:]...), nil)
			if b := w.awaitEnd(first); b.Counts.Completed != 7 {
				t.Fatalf("the first batch: %+v", b.Counts)
			}
			// another model that comes later
			if b := w.awaitEnd(w.submit(chatLines(5, "huge"), nil)); b.Counts.Completed != 5 {
				t.Fatalf("the second batch: %+v", b.Counts)
			}
			for model, want := range map[string]int{"small": 0, "large": 4, "huge": 5} {
				if got := other.lines(model); got != want {
					t.Errorf("the server without a list got %d lines of %s, want %d", got, model,
						want)
				}
			}
			other.asked.await(t, other.asked.count()+2)
			if n := log.count("no list of models; it is sent"); n != 1 {
				t.Errorf("%d records of where its models come from, want 1", n)
			}
		})
	}
}

func TestUpstreamWithoutAListServesConfiguredModels(t *testing.T) {
	up := serveUnlisted(t, 404)
	w := newWorld(t)
	var log logged
	w.dispatcher("a", func(_ *dispatch.Config, d *dispatch.Deps) {
		d.Upstreams = []dispatch.Upstream{{URL: up.URL, Models: []string{"small"}}}
		d.Logger = slog.New(slog.NewTextHandler(&log, nil))
	})
	if b := w.awaitEnd(w.submit(chatLines(3, "small"), nil)); b.Counts.Completed != 3 {
		t.Fatalf("got %+v, want 3 lines completed", b.Counts)
	}
	if n := log.count("serves the models of upstreams[].models"); n != 1 {
		t.Errorf("%d records of where its models come from, want 1", n)
	}
}

// Another upstream that has not answered yet may list the model.
func TestUpstreamWithoutAListWaitsForTheOthers(t *testing.T) {
	other := serveUnlisted(t, 404)
	late := serve(t, nil, "small")
	addr := late.Listener.Addr().String()
	late.Close()
	w := newWorld(t)
	w.dispatcher("a", nil, other.URL, "http://"+addr)
	id := w.submit(chatLines(3, "small"), nil)
	w.await(id, "in progress", func(b store.Batch) bool { return b.State == store.InProgress })
	other.asked.await(t, 1)
	serveAt(t, addr, "small")
	if b := w.awaitEnd(id); b.Counts.Completed != 3 {
		t.Fatalf("got %+v, want 3 lines completed", b.Counts)
	}
	if n := other.lines("small"); n != 0 {
		t.Errorf("the server without a list got %d lines of a model that another lists", n)
	}
}

// A model that another upstream begins to list is not sent to the one without a list any more, also
// if that has no other model left.
func TestUpstreamWithoutAListLosesWhatAnotherLists(t *testing.T) {
	listing, other := newChanging(t, "small"), serveUnlisted(t, 404)
	var listed atomic.Int64
	listing.answer = func(w http.ResponseWriter, _ *http.Request) {
		listed.Add(1)
		io.WriteString(w, okBody)
	}
	w := newWorld(t)
	w.dispatcher("a", listing.often, listing.URL, other.URL)
	w.awaitEnd(w.submit(chatLines(3, "large"), nil))
	if n := other.lines("large"); n != 3 {
		t.Fatalf("the server without a list got %d lines, want 3", n)
	}
	listing.list("large", "small")
	for listed.Load() == 0 {
		w.awaitEnd(w.submit(chatLines(40, "large"), nil)) // more than one runner takes
	}
	before := other.lines("large")
	w.awaitEnd(w.submit(chatLines(40, "large"), nil))
	if n := other.lines("large") - before; n != 0 {
		t.Errorf("the server without a list got %d lines of a model that another lists", n)
	}
}
