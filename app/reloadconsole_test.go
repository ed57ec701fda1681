package app_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// The console words the configuration that is applied now, and shows the sources that are read now.
func TestConsoleFollowsReloads(t *testing.T) {
	d := startReloading(t)
	d.await("/admin/pools", "the policy fixed keeps to no latency")
	base := strings.Replace(d.base(filepath.Dir(d.file)), "{policy: fixed}",
		"{policy: headroom, slo: {tpot: 77ms}}", 1)
	d.overwrite(base + "upstreams: [{url: '" + d.runner +
		"', metrics: 'http://127.0.0.1:1/metrics'}]\ntelemetry: {every: 100ms}\n")
	d.hup()
	d.await("/admin/pools", "77ms")
	d.await("/admin/pools", `"state":"away"`)
	d.await("/readyz", `"degraded":["metrics of `)
	d.write("")
	d.hup()
	d.await("/admin/pools", "the policy fixed keeps to no latency")
	d.await("/admin/pools", `"degraded":[]`)
	d.await("/readyz", `"degraded":[]`)
}
