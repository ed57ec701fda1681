package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/internal/httpserver"
)

// echo answers interactive requests with their tenant and body, or blocks.
type echo struct {
	entered chan struct{}
	release chan struct{}
}

func (e *echo) Serve(w http.ResponseWriter, r *http.Request, tenant string, _ func()) error {
	if e.entered != nil {
		e.entered <- struct{}{}
		<-e.release
	}
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s", tenant, body)
	return http.NewResponseController(w).Flush()
}

func (e *echo) Models(tenant string) []string { return []string{"m", "chat-of-" + tenant} }

func TestInlineRoutes(t *testing.T) {
	s := newService(t, func(_ *Config, d *Deps) {
		d.Inline = &echo{}
		d.Models = func() []ModelInfo { return []ModelInfo{{ID: "m", OwnedBy: "engine"}} }
	})
	for _, url := range inlineURLs {
		answer, err := http.Post(s.url+url, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if string(body) != "default {}" || answer.Header.Get(requestIDHeader) == "" {
			t.Errorf("%s: got %q with %v", url, body, answer.Header)
		}
		if answer, err = http.Get(s.url + url); err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("GET %s: got %d", url, answer.StatusCode)
		}
	}
	answer, err := http.Get(s.url + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	const want = `{"object":"list","data":[` +
		`{"id":"m","object":"model","created":0,"owned_by":"engine"},` +
		`{"id":"chat-of-default","object":"model","created":0,"owned_by":"tidefill"}]}` + "\n"
	if body, _ := io.ReadAll(answer.Body); string(body) != want {
		t.Errorf("got %s, want %s", body, want)
	}
}

func TestInlineRoutesAreUnknownWithoutInline(t *testing.T) {
	s := newService(t)
	answer, err := http.Post(s.url+"/v1/chat/completions", "application/json",
		strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusNotFound {
		t.Errorf("got %d, want 404", answer.StatusCode)
	}
}

// Streams last long: they must not take the places of the API's own requests, nor wait for them.
func TestInlineRequestsPassNoGate(t *testing.T) {
	e := &echo{entered: make(chan struct{}), release: make(chan struct{})}
	s := newService(t, func(c *Config, d *Deps) {
		c.MaxRequests, d.Inline = 1, e
	})
	s.bound(httpserver.DefaultConfig())
	done := make(chan error, 2)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range 2 {
		go func() {
			r, _ := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/completions",
				strings.NewReader("{}"))
			answer, err := http.DefaultClient.Do(r)
			if err == nil {
				answer.Body.Close()
			}
			done <- err
		}()
		<-e.entered
	}
	answer, err := http.Get(s.url + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("beside two interactive requests /v1/models got %d", answer.StatusCode)
	}
	close(e.release)
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
