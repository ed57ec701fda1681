package config_test

import (
	"strings"
	"testing"

	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/registry"
	"github.com/tidefill/tidefill/store/cluster"
)

// asyncConfig has a pool that sends through a queue, and one that does not.
func asyncConfig() config.Config {
	c := config.Default()
	c.Pools = []config.PoolConfig{
		{Pool: registry.Pool{Name: "a", Models: []string{"m"}, Max: 1}, Send: config.SendAsync},
		{Pool: registry.Pool{Name: "b", Models: []string{"n"}, Max: 1}},
	}
	c.Upstreams = []dispatch.Upstream{{URL: "http://x:1", Pool: "a"},
		{URL: "http://x:2", Pool: "b"}, {URL: "http://x:3"}}
	return c
}

func TestOnlyUpstreamsOfAsyncPoolsAreQueued(t *testing.T) {
	c := asyncConfig()
	for i, u := range c.SentUpstreams() {
		if u.Queued != (i == 0) {
			t.Errorf("upstream %d: queued %v", i, u.Queued)
		}
	}
	if c.Upstreams[0].Queued {
		t.Error("the configuration was changed")
	}
}

func TestAsyncPoolNeedsRedis(t *testing.T) {
	c := asyncConfig()
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "set async.url") {
		t.Errorf("without Redis: %v", err)
	}
	c.Async.URL = "redis://a"
	if err := c.Validate(); err != nil || c.Queue().URL != "redis://a" {
		t.Errorf("with async.url: %v, %q", err, c.Queue().URL)
	}
	c.Pools[0].Send = "later"
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "pools[0].send") {
		t.Errorf("with an unknown value: %v", err)
	}
}

func TestQueuesUseTheRedisOfTheStore(t *testing.T) {
	c := asyncConfig()
	shared := cluster.DefaultConfig()
	shared.Live.URL = "redis://live"
	c.Store.Settings[cluster.Name] = shared
	if got := c.Queue().URL; got != "" {
		t.Errorf("with the embedded store: %q, want none", got)
	}
	c.Store.Backend = cluster.Name
	if got := c.Queue().URL; got != "redis://live" {
		t.Errorf("got %q", got)
	}
	c.Async.URL = "redis://own"
	if got := c.Queue().URL; got != "redis://own" {
		t.Errorf("got %q, want that of async", got)
	}
}
