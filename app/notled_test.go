package app_test

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/internal/apptest"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/embedded"
)

// A process that serves users says that nobody works on their batches, and shows nothing of a
// leader that has probably ended as if it were so now.
func TestBatchesThatNobodyLeads(t *testing.T) {
	t.Parallel()
	cfg := apptest.Config(t.TempDir())
	cfg.Roles = []config.Role{config.RoleAPI}
	cfg.Dispatch.LeaseTTL = time.Hour
	a, _ := apptest.Start(t, cfg, app.Options{})
	c, batch := apptest.Submit(t, a, 5)
	await := func(what string, is func(client.Batch) bool) {
		t.Helper()
		eventually(t, what, func() bool {
			b, err := c.Batch(t.Context(), batch.ID)
			if err != nil {
				t.Fatal(err)
			}
			return is(b)
		})
	}
	page := func(path string) string {
		_, text := answerOf(t, http.MethodGet, a.AdminURL()+path)
		return text
	}
	await("no_dispatcher", func(b client.Batch) bool {
		return strings.HasPrefix(b.Tidefill.Waiting, "no_dispatcher: ")
	})
	const problem = `["no_dispatcher: No process with the role dispatch runs. Batches that wait ` +
		`for one: 1. Start one."]`
	// The pages are written from what the process checks every few seconds.
	for path, want := range map[string]string{
		"/readyz":      `"degraded":` + problem,
		"/admin/pools": `"problems":` + problem,
		"/metrics":     "\ntidefill_batches_without_dispatcher 1\n",
	} {
		eventually(t, path+" with "+want, func() bool { return strings.Contains(page(path), want) })
	}
	if got := page("/readyz"); !strings.Contains(got, `{"ready":true`) {
		t.Errorf("/readyz: %s", got)
	}

	backend, err := store.FindBackend(embedded.Name)
	if err != nil {
		t.Fatal(err)
	}
	other, err := backend.Open(t.Context(), store.OpenOptions{Config: embedded.DefaultConfig(),
		Directory: cfg.Data, Node: "n2", Expiry: time.Now,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	owner, err := other.Records.Register(t.Context(), "n2", 30*time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := other.Records.Lead(t.Context(), owner, []string{"model/m"}); err != nil {
		t.Fatal(err)
	}
	err = other.Progress.PostProgress(t.Context(), owner, map[string]store.ProgressPost{
		batch.ID: {Progress: store.Progress{InFlight: 4, LinesPerSecond: 12, Leads: true,
			Forecast: store.Forecast{Finish: time.Now().Add(time.Hour)}}}})
	if err != nil {
		t.Fatal(err)
	}
	await("no_leader", func(b client.Batch) bool {
		d := b.Tidefill
		return strings.HasPrefix(d.Waiting, "no_leader: Process n2 leads and does not renew its "+
			"lease, which lasts until ") && d.InFlight == 0 && d.Rate == 0 && d.ETA == 0
	})
	eventually(t, "/readyz with no_leader", func() bool {
		return strings.Contains(page("/readyz"), `"degraded":["no_leader: Process n2`)
	})
	if err := other.Records.Renew(t.Context(), owner, time.Hour); err != nil {
		t.Fatal(err)
	}
	await("the leader is back", func(b client.Batch) bool {
		return b.Tidefill.Waiting == "" && b.Tidefill.InFlight == 4 && b.Tidefill.Rate == 12
	})
	eventually(t, "/readyz with a leader", func() bool {
		return strings.Contains(page("/readyz"),
			`"degraded":[],"roles":{"api":{"ready":true,"waiting":[],`)
	})
}
