package sqlite_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"
)

func TestWakeOnChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tidefill.db")
	watching, changing := open(t, path, time.Now), open(t, path, time.Now)
	ctx, cancel := context.WithCancel(t.Context())
	woken, ended := make(chan struct{}, 100), make(chan error)
	go func() {
		ended <- watching.WakeOnChange(ctx, func() { woken <- struct{}{} })
	}()
	for range 5 {
		time.Sleep(100 * time.Millisecond) // it watches, and what was noticed has come
		for len(woken) > 0 {
			<-woken
		}
		began := time.Now()
		if _, err := changing.Register(t.Context(), "n", time.Minute); err != nil {
			t.Fatal(err)
		}
		select {
		case <-woken:
			t.Logf("noticed after %v", time.Since(began))
		case <-time.After(5 * time.Second):
			t.Fatal("a change was not noticed")
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("at its end: %v", err)
	}
}
