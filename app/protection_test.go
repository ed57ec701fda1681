package app_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/app"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/internal/apptest"
	"github.com/tidefill/tidefill/registry"
)

// The log says at the start what interactive users are promised, and by what signals.
func TestPromiseIsLogged(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*config.Config)
		want   []string
	}{
		{"by default", func(*config.Config) {}, []string{"level=INFO", "policy=headroom",
			"at most 1.15 times as long as without batch work", `where_nothing_shows_users="lines ` +
				`grow while their answers take at most 1.15 times as long as the fastest`,
			`signals="metrics of 1 runner every 1s (250ms where that is cheap), capabilities of 1 ` +
				`runner every 5s where there are any, times of answers"`}},
		{"with objectives", func(c *config.Config) {
			c.FlowControl.SLO.TPOT = 50 * time.Millisecond
			c.Upstreams[0].Metrics = "none"
		}, []string{"50ms per token, but for 0.6 % of requests",
			`signals="capabilities of 1 runner every 5s where there are any, times of answers"`}},
		{"without protection", func(c *config.Config) { c.FlowControl.Policy = "aimd" },
			[]string{"level=WARN", "policy=aimd", "not protected"}},
		{"a pool of its own", func(c *config.Config) {
			own := config.Default().FlowControl
			own.Shared = false
			c.FlowControl.Pools = map[string]flowcontrol.Config{"night": own}
		}, []string{"pool=night", "shared is false"}},
		{"a pool for batch work alone", func(c *config.Config) {
			c.Pools = []config.PoolConfig{{Pool: registry.Pool{Name: "spot",
				Models: []string{"m"}, Max: 2, Role: registry.RoleBatch}}}
			c.Upstreams[0].Pool = "spot"
		}, []string{"pool=spot", "shared is false"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := apptest.Config(t.TempDir(), "http://127.0.0.1:1")
			cfg.FlowControl.Policy = config.Default().FlowControl.Policy
			test.change(&cfg)
			var log bytes.Buffer
			_, stop := apptest.Start(t, cfg,
				app.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			stop()
			for _, want := range test.want {
				if !strings.Contains(log.String(), want) {
					t.Errorf("the log lacks %q:\\n%s", want, &log)
				}
			}
		})
	}
}
