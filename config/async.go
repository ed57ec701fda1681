package config

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/store/cluster"
	"github.com/tidefill/tidefill/store/redis"
)

// SendAsync is the value of pools[].send of a pool whose lines go through a queue.
const SendAsync = "async"

// queueTimeout limits how long a call of a queue waits for Redis. A body may be large.
const queueTimeout = 2 * time.Second

// Queue returns the Redis of the queues: that of the section async, or else that of the store. Its
// URL is empty if there is none.
func (c Config) Queue() redis.Config {
	queue := c.Async
	if shared, is := c.Store.Settings[cluster.Name].(cluster.Config); is && queue.URL == "" &&
		c.Store.Backend == cluster.Name {
		queue = shared.Live
	}
	queue.Timeout = queueTimeout
	return queue
}

// SentUpstreams returns the upstreams, and says of each whether its lines go through a queue.
func (c Config) SentUpstreams() []dispatch.Upstream {
	upstreams := slices.Clone(c.Upstreams)
	for i := range upstreams {
		upstreams[i].Queued = upstreams[i].Pool != "" &&
			slices.ContainsFunc(c.Pools, func(p PoolConfig) bool {
				return p.Name == upstreams[i].Pool && p.Send == SendAsync
			})
	}
	return upstreams
}

// validateSend reports what is wrong with the way in which the lines of a pool are sent.
func (c Config) validateSend(path, send string) error {
	switch {
	case send == "":
		return nil
	case send != SendAsync:
		return fmt.Errorf("%s.send: is %q; write async, or leave it out", path, send)
	case c.Queue().URL == "":
		return fmt.Errorf("%s.send: is async, and there is no Redis for the queue; set async.url, "+
			"or store.cluster.live.url", path)
	}
	return nil
}
