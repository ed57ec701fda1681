package client

import (
	"context"
	"time"
)

const (
	// pollInterval is the time between two polls of a batch.
	pollInterval = 500 * time.Millisecond
	// maxRetryInterval bounds the time between two attempts to reach a daemon.
	maxRetryInterval = 10 * time.Second
)

// Watch polls a batch until it has ended, and returns it. It calls each, if not nil, with every
// state that it receives. After the first answer it retries while the daemon is unreachable,
// because batches outlive restarts.
func (c *Client) Watch(ctx context.Context, id string, each func(Batch)) (Batch, error) {
	b, err := c.Batch(ctx, id)
	if err != nil {
		return Batch{}, err
	}
	// The first polls are close to each other, because small batches end soon.
	for pause := pollInterval / 8; ; pause = min(2*pause, pollInterval) {
		if each != nil {
			each(b)
		}
		if b.Ended() {
			return b, nil
		}
		if err := sleep(ctx, pause); err != nil {
			return b, err
		}
		err := retry(ctx, func() error {
			now, err := c.Batch(ctx, id)
			if err == nil {
				b = now
			}
			return err
		})
		if err != nil {
			return b, err
		}
	}
}

// retry repeats a call while its error is temporary.
func retry(ctx context.Context, call func() error) error {
	for pause := pollInterval; ; pause = min(2*pause, maxRetryInterval) {
		err := call()
		if err == nil || !Temporary(err) {
			return err
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}
