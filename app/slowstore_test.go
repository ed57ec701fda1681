package app_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/internal/apptest"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/embedded"
)

// slowBackend is the embedded backend, opened as slowly as on a busy disk.
const slowBackend = "slow"

func init() {
	slow, err := store.FindBackend(embedded.Name)
	if err != nil {
		panic(err)
	}
	open := slow.Open
	slow.Open = func(ctx context.Context, o store.OpenOptions) (*store.Backend, error) {
		time.Sleep(1500 * time.Millisecond)
		return open(ctx, o)
	}
	store.RegisterBackend(slowBackend, slow)
}

// A daemon opens its listeners beside a store that takes long.
func TestSlowStoreIsOpenedBesideTheListeners(t *testing.T) {
	cfg := apptest.Config(t.TempDir())
	cfg.Store.Backend, cfg.Store.Settings = slowBackend, store.DefaultBackendSettings()
	a, _ := apptest.Start(t, cfg, app.Options{})
	answer, err := http.Get(a.URL() + "/v1/batches")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("the API answers %d, want 200", answer.StatusCode)
	}
}
