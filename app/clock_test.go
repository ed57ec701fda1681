package app_test

import (
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/internal/apptest"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/disk"
	"github.com/tidefill/tidefill/store/sqlite"
)

// leaveExpiring stores a file as of ten days ago. It has expired since.
func leaveExpiring(t *testing.T, data string) (id string) {
	t.Helper()
	past := time.Now().Add(-10 * 24 * time.Hour)
	files, err := disk.Open(data, disk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	meta, err := sqlite.Open(t.Context(), filepath.Join(data, "tidefill.db"),
		sqlite.Options{Now: func() time.Time { return past }})
	if err != nil {
		t.Fatal(err)
	}
	id = "file-old"
	w, err := files.Blobs().Create(t.Context(), "files/"+id)
	if err == nil {
		_, err = io.WriteString(w, "x")
	}
	if err = errors.Join(err, w.Commit(t.Context())); err != nil {
		t.Fatal(err)
	}
	err = meta.CreateFile(t.Context(), store.File{ID: id, Tenant: api.DefaultTenant,
		Purpose: "evals", Filename: "a", Bytes: 1,
		CreatedAt: past, ExpiresAt: past.Add(24 * time.Hour), BlobKey: "files/" + id})
	if err = errors.Join(err, meta.Close(), files.Close()); err != nil {
		t.Fatal(err)
	}
	return id
}

// metric reads a gauge without labels.
func metric(t *testing.T, a *app.App, name string) float64 {
	t.Helper()
	answer, err := http.Get(a.AdminURL() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindSubmatch(page)
	if found == nil {
		t.Fatalf("no metric %s", name)
	}
	value, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestLongStopExpiresNothingAtOnce(t *testing.T) {
	data := t.TempDir()
	id := leaveExpiring(t, data)
	cfg := apptest.Config(data, apptest.StartRunner(t, nil))
	cfg.API.SweepEvery = 10 * time.Millisecond
	a, stop := apptest.Start(t, cfg, app.Options{})
	if lag := metric(t, a, "tidefill_expiry_lag_seconds"); lag < 9*24*3600 {
		t.Errorf("expiry lags by %v s, want ten days", lag)
	}
	for range 20 { // some sweeps
		if status := get(t, a.URL()+"/v1/files/"+id+"/content"); status != http.StatusOK {
			t.Fatalf("the file is %d before the time is confirmed", status)
		}
		time.Sleep(10 * time.Millisecond)
	}
	stop()

	data = t.TempDir()
	id = leaveExpiring(t, data)
	cfg = apptest.Config(data, apptest.StartRunner(t, nil))
	cfg.Clock.ConfirmAfter = 0
	a, _ = apptest.Start(t, cfg, app.Options{})
	if status := get(t, a.URL()+"/v1/files/"+id); status != http.StatusNotFound {
		t.Errorf("the expired file is %d, want 404", status)
	}
	if lag := metric(t, a, "tidefill_expiry_lag_seconds"); lag != 0 {
		t.Errorf("expiry lags by %v s, want 0", lag)
	}
}
