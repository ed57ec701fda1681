package emulator

import (
	"context"
	"net"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tidefill/tidefill/internal/httpserver"
)

// serveDrain is the longest time of answers in flight when Serve ends.
const serveDrain = 5 * time.Second

// Serve runs an emulated runner on a listener until ctx ends. It closes the listener.
func Serve(ctx context.Context, c Config, listener net.Listener) error {
	r, err := New(c)
	if err != nil {
		listener.Close()
		return err
	}
	// The number of connections is unbounded: the only client is the daemon, which bounds its own.
	bounds := httpserver.Config{Tuning: httpserver.Tuning{
		Grace: time.Minute, BodyTimeout: time.Minute}}
	server, err := httpserver.New(bounds, r.Handler(), httpserver.Options{Logger: c.Logger})
	if err != nil {
		listener.Close()
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return r.Run(ctx) })
	group.Go(func() error { return server.Serve(listener) })
	group.Go(func() error {
		<-ctx.Done()
		return server.Shutdown(ctx, serveDrain)
	})
	return group.Wait()
}
