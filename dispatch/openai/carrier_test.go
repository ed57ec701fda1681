package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// fakeCarrier answers every request with the same, and notes the last one.
type fakeCarrier struct {
	body     string
	sent     bool
	err      error
	request  *http.Request
	deadline time.Time
}

func (c *fakeCarrier) Carry(r *http.Request, deadline time.Time) (*http.Response, bool, error) {
	c.request, c.deadline = r, deadline
	if c.err != nil {
		return nil, c.sent, c.err
	}
	return &http.Response{StatusCode: http.StatusOK, ProtoMajor: 2, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(c.body)), ContentLength: -1}, true, nil
}

func TestOutcomesOfACarrier(t *testing.T) {
	evicted, evict := context.WithCancelCause(t.Context())
	evict(ErrEvicted)
	for name, test := range map[string]struct {
		ctx  context.Context
		c    fakeCarrier
		want plan.Outcome
	}{
		"answered": {t.Context(), fakeCarrier{body: `{"choices":[]}`}, plan.Succeeded},
		"not sent": {t.Context(), fakeCarrier{err: errors.New("no worker")}, plan.Unreachable},
		"lost":     {t.Context(), fakeCarrier{sent: true, err: errors.New("lost")}, plan.Died},
		"evicted":  {evicted, fakeCarrier{err: ErrEvicted}, plan.Evicted},
	} {
		c := newClient(t, Config{URL: "http://engine", MaxAnswer: 1000, Carrier: &test.c,
			Header: http.Header{"X-Own": {"yes"}}})
		line := lineOf("x")
		line.Path, line.Deadline = "/v1/chat/completions", time.Unix(9, 0)
		a, err := c.Send(test.ctx, line, &Scratch{})
		if got := Classify(test.ctx, a, err); got != test.want {
			t.Errorf("%s: got %v (%v), want %v", name, got, err, test.want)
		}
		if !test.c.deadline.Equal(line.Deadline) || test.c.request.Header.Get("X-Own") != "yes" {
			t.Errorf("%s: carried with the deadline %v and the header %v", name, test.c.deadline,
				test.c.request.Header)
		}
	}
}

func TestForward(t *testing.T) {
	s, _ := start(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s %s", r.Method, r.URL.Path, r.Header.Get("X-Given"),
			r.Header.Get("Authorization"), body)
	})
	c := newClient(t, Config{URL: s.URL + "/base/v1", APIKey: "own"})
	for _, test := range []struct{ method, path, body, want string }{
		{"POST", "/v1/embeddings", "{ }", "POST /base/v1/embeddings yes Bearer own { }"},
		{"GET", "/v1/models", "", "GET /base/v1/models yes Bearer own "},
	} {
		answer, sent, err := c.Forward(t.Context(), ForwardedRequest{Method: test.method,
			Path: test.path, Header: http.Header{"X-Given": {"yes"},
				"Authorization": {"Bearer daemon"}}, Body: []byte(test.body)})
		if err != nil || !sent {
			t.Fatalf("%s: %v, sent %v", test.path, err, sent)
		}
		got, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if string(got) != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
	if _, sent, err := c.Forward(t.Context(), ForwardedRequest{Method: "POST",
		Path: "/admin"}); err == nil || sent {
		t.Errorf("a path outside /v1/: %v, sent %v", err, sent)
	}
	s.Close()
	_, sent, err := c.Forward(t.Context(), ForwardedRequest{Method: "POST", Path: "/v1/score"})
	if err == nil || sent {
		t.Errorf("without a server: %v, sent %v", err, sent)
	}
}
