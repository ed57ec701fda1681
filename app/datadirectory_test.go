package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/internal/apptest"
)

// A start does not wait for a data directory that waiting does not give.
func TestStartRefusesAFileAsDataDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	late := time.AfterFunc(10*time.Second, func() { close(stop) })
	defer late.Stop()
	opened, err := app.New(apptest.Config(file, apptest.StartRunner(t, nil)),
		app.Options{Stop: stop})
	if err == nil {
		opened.Close()
	}
	if err == nil || strings.Contains(err.Error(), "stopped") ||
		!strings.Contains(err.Error(), "choose another --data") {
		t.Errorf("got %v", err)
	}
}
