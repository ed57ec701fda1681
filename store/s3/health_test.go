package s3_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	servers "github.com/tidefill/tidefill/internal/testservers/s3"
	"github.com/tidefill/tidefill/store"
)

// Away follows the storage, also if nobody uses it otherwise.
func TestAwayFollowsTheStorage(t *testing.T) {
	p := servers.StartProxy(t, servers.Start(t))
	b := open(t, impatient(t, p))
	away := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		return b.Away(ctx)
	}
	becomes := func(what string, is func(error) bool) {
		t.Helper()
		var err error
		for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(
			50 * time.Millisecond) {
			if err = away(); is(err) {
				return
			}
		}
		t.Fatalf("%s: got %v", what, err)
	}
	if err := away(); err != nil {
		t.Fatal(err)
	}
	for name, fault := range map[string]servers.Fault{"SlowDown": servers.SlowDown,
		"no answer": servers.Stall} {
		p.Choose(func(*http.Request) servers.Fault { return fault })
		becomes(name, func(err error) bool {
			return errors.Is(err, store.ErrUnavailable) ||
				errors.Is(err, context.DeadlineExceeded)
		})
		p.Choose(nil)
		becomes("back after "+name, func(err error) bool { return err == nil })
	}
	// A request that finds nothing, or that its caller has ended, is none that failed.
	if _, err := b.Blobs().Open(t.Context(), "d/none"); !errors.Is(err, store.ErrNotFound) {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := b.Blobs().Open(ended, "d/none"); err == nil {
		t.Fatal("opened a blob within a context that has ended")
	}
	if err := away(); err != nil {
		t.Errorf("after a request without an object: %v", err)
	}
}
