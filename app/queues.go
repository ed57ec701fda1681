package app

import (
	"fmt"

	"github.com/tidefill/tidefill/dispatch/async"
	"github.com/tidefill/tidefill/dispatch/upstream"
	"github.com/tidefill/tidefill/store/redis"
)

// queueConnections limits the connections to the Redis of the queues. Each runner with requests
// that wait keeps one, and others are in use for a call.
const queueConnections = 4096

// openQueues returns the queues of pools with send: async; nil: no Redis is configured for them.
// Nothing connects before the first request.
func (a *App) openQueues() (upstream.Queues, error) {
	cfg := a.cfg.Queue()
	if cfg.URL == "" {
		return nil, nil
	}
	client, err := redis.Client(cfg, queueConnections)
	if err != nil {
		return nil, fmt.Errorf("async: %w", err)
	}
	a.onClose("the Redis of the queues", client.Close)
	return async.NewQueues(client, cfg.Prefix), nil
}
