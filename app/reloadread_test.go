package app

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// A read that takes long is logged once and shows in the gauge until it returns; one that does not
// return is left alone when the daemon ends.
func TestSlowReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		a := &App{options: Options{}.withDefaults(), log: slog.New(slog.NewTextHandler(&log, nil))}
		var err error
		if a.reloads, err = newReloads(a.options); err != nil {
			t.Fatal(err)
		}
		release := make(chan struct{})
		read := func() (int, error) {
			<-release
			return 7, nil
		}
		returned := make(chan int)
		go func() {
			value, err := blockable(t.Context(), a, "f.yaml", read)
			if err != nil {
				t.Error(err)
			}
			returned <- value
		}()
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := testutil.ToFloat64(a.reloads.successful); got != 0 {
			t.Errorf("the gauge is %v during a slow read, want 0", got)
		}
		if n := strings.Count(log.String(), "a read does not return"); n != 1 {
			t.Errorf("the log has %d rows of it, want one:\n%s", n, &log)
		}
		release <- struct{}{}
		if got := <-returned; got != 7 {
			t.Errorf("got %d, want 7", got)
		}
		if got := testutil.ToFloat64(a.reloads.successful); got != 1 {
			t.Errorf("the gauge is %v after the read, want 1", got)
		}

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := blockable(ctx, a, "f.yaml", read); err == nil {
			t.Error("a daemon that ends reads on")
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := blockable(ctx, a, "f.yaml", read); err == nil {
			t.Error("a daemon that ends waits for a read")
		}
		close(release)
	})
}
