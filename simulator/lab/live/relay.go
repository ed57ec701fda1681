package live

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
)

// relay passes queries on to Prometheus. While it is frozen it repeats the last answer to each of
// them, with the times of that answer: a cache that nobody fills any more, or a Prometheus whose
// storage stands still.
type relay struct {
	target, address string
	server          *http.Server

	mu     sync.Mutex
	frozen bool
	last   map[string]answer // by query
}

// answer is one of Prometheus.
type answer struct {
	status      int
	contentType string
	body        []byte
}

// largestQuery bounds a query, in bytes.
const largestQuery = 1 << 20

func startRelay(target string) (*relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &relay{target: target, address: listener.Addr().String(), last: map[string]answer{}}
	r.server = &http.Server{Handler: r}
	go r.server.Serve(listener)
	return r, nil
}

func (r *relay) stop() { r.server.Shutdown(context.Background()) }

func (r *relay) url() string { return "http://" + r.address }

func (r *relay) freeze(frozen bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frozen = frozen
}

func (r *relay) ServeHTTP(w http.ResponseWriter, asked *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, asked.Body, largestQuery))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	key := queryOf(asked, body)
	r.mu.Lock()
	a, repeat := r.last[key]
	repeat = repeat && r.frozen
	r.mu.Unlock()
	if !repeat {
		if a, err = r.pass(asked, body); err != nil {
			panic(http.ErrAbortHandler) // nobody is there, as where Prometheus was killed
		}
		r.mu.Lock()
		if !r.frozen {
			r.last[key] = a
		}
		r.mu.Unlock()
	}
	w.Header().Set("Content-Type", a.contentType)
	w.WriteHeader(a.status)
	w.Write(a.body)
}

// queryOf identifies a query. The time that it asks for changes with each, so it is left out.
func queryOf(r *http.Request, body []byte) string {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return r.Method + " " + r.URL.String() + " " + string(body)
	}
	form.Del("time")
	return r.Method + " " + r.URL.String() + " " + form.Encode()
}

// pass asks Prometheus.
func (r *relay) pass(asked *http.Request, body []byte) (answer, error) {
	request, err := http.NewRequestWithContext(asked.Context(), asked.Method,
		r.target+asked.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Content-Type", asked.Header.Get("Content-Type"))
	response, err := asker.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header.Get("Content-Type"), text}, err
}
