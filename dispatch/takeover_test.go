package dispatch_test

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch"
)

// The log says from whom a dispatcher takes over, and why.
func TestTheLogSaysWhoLedBefore(t *testing.T) {
	const ttl = 3 * time.Second
	w := newWorld(t)
	up := serve(t, nil, "m")
	names := []string{"runner/" + up.URL, "model/m"}
	dead, err := w.meta.Register(t.Context(), "dead", ttl)
	if err == nil {
		_, _, err = w.meta.Lead(t.Context(), dead, names)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.clock.Add(int64(ttl))
	start := func(node string) (log *logged, d *dispatch.Dispatcher, stop func()) {
		log = &logged{}
		d, stop = w.dispatcher(node, func(cfg *dispatch.Config, deps *dispatch.Deps) {
			cfg.LeaseTTL = ttl
			deps.Logger = slog.New(slog.NewTextHandler(io.MultiWriter(log, t.Output()), nil))
		}, up.URL)
		return log, d, stop
	}
	says := func(log *logged, want string) {
		t.Helper()
		until(t, "the log says "+want, func() bool {
			return log.count(want) > 0
		})
	}
	a, _, stopA := start("a")
	says(a, `msg="leading: this process sends lines to the runners" component=dispatch node=a `+
		`took_over_from="dead, whose lease ended"`)
	b, _, _ := start("b")
	says(b, "standing by")
	stopA()
	says(b, `took_over_from="a, which stopped"`)
}
