package app_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/internal/apptest"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/embedded"
)

// hangingBackend is the embedded backend with a bucket that does not answer while hangs is set.
const hangingBackend = "hanging"

var hangs atomic.Bool

func init() {
	hanging, err := store.FindBackend(embedded.Name)
	if err != nil {
		panic(err)
	}
	open := hanging.Open
	hanging.Open = func(ctx context.Context, o store.OpenOptions) (*store.Backend, error) {
		b, err := open(ctx, o)
		if err == nil {
			b.BucketAway = func(ctx context.Context) error {
				if !hangs.Load() {
					return nil
				}
				<-ctx.Done()
				return ctx.Err()
			}
		}
		return b, err
	}
	store.RegisterBackend(hangingBackend, hanging)
}

// A probe waits for no part of the store: one with the usual limit of a second would take all
// daemons out of service at once.
func TestReadinessIsKnownWhileTheBucketHangs(t *testing.T) {
	t.Parallel()
	cfg := apptest.Config(t.TempDir())
	cfg.Store.Backend, cfg.Store.Settings = hangingBackend, store.DefaultBackendSettings()
	a, _ := apptest.Start(t, cfg, app.Options{})
	hangs.Store(true)
	t.Cleanup(func() { hangs.Store(false) })
	var slowest time.Duration
	eventually(t, "the bucket to be reported", func() bool {
		began := time.Now()
		status, page := answerOf(t, http.MethodGet, a.AdminURL()+"/readyz")
		slowest = max(slowest, time.Since(began))
		return status == http.StatusOK &&
			strings.Contains(page, `"degraded":["the bucket: no answer within 2s"]`)
	})
	if slowest > time.Second {
		t.Errorf("/readyz took %v while the bucket hangs", slowest)
	}
}
