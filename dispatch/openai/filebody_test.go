package openai

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// A server waits for the rest of a body that can't be read, so its answer must not be awaited. No
// runner is to blame.
func TestUnreadableBodyEndsItsRequest(t *testing.T) {
	readAll := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err == nil {
			io.WriteString(w, "{}")
		}
	})
	const size = 300 << 10
	for name, body := range map[string]func() io.Reader{
		"at once": func() io.Reader { return iotest.ErrReader(syscall.EIO) },
		"after 10 KB": func() io.Reader {
			return io.MultiReader(strings.NewReader(strings.Repeat("x", 10<<10)),
				iotest.ErrReader(syscall.EIO))
		},
		"cut": func() io.Reader { return strings.NewReader(strings.Repeat("x", 10<<10)) },
	} {
		for _, protocol := range []string{"plain", "TLS", "HTTP/2"} {
			t.Run(name+" over "+protocol, func(t *testing.T) {
				s := httptest.NewUnstartedServer(readAll)
				s.EnableHTTP2 = protocol == "HTTP/2"
				if protocol == "plain" {
					s.Start()
				} else {
					s.StartTLS()
				}
				t.Cleanup(s.Close)
				c := newClient(t, Config{URL: s.URL, MaxAnswer: 1 << 20})
				if protocol != "plain" {
					trust(t, c)
				}
				r := Request{Path: path, Size: size, ID: "batch_req_1",
					NewBody: func() io.ReadCloser { return FileBody(body(), size) }}
				began := time.Now()
				ctx := t.Context()
				time.AfterFunc(5*time.Second, s.CloseClientConnections)
				a, err := c.Send(ctx, r, &Scratch{})
				if got := Classify(ctx, a, err); got != plan.Evicted ||
					!errors.Is(err, ErrUnreadable) || time.Since(began) > 3*time.Second {
					t.Errorf("got %v (%v) after %v, want evicted at once", got, err,
						time.Since(began))
				}
			})
		}
	}
}
