package app

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidefill/tidefill/config"
)

func TestDelayLetsRoutesChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &App{options: Options{}.withDefaults()}
		a.log = a.options.Logger
		a.running.Store(&config.Config{Shutdown: config.Shutdown{Delay: time.Hour}})
		ctx, cancel := context.WithCancel(t.Context())
		failing, fail := context.WithCancel(t.Context())
		waited := make(chan struct{})
		go func() {
			a.awaitEnd(ctx, failing)
			close(waited)
		}()
		synctest.Wait()
		if a.draining.Load() {
			t.Error("draining before the end")
		}
		cancel()
		time.Sleep(59 * time.Minute)
		synctest.Wait()
		if !a.draining.Load() {
			t.Error("not draining after the end")
		}
		select {
		case <-waited:
			t.Error("the delay was skipped")
		default:
		}
		fail() // a failed daemon has nothing to wait for
		<-waited
	})
}
