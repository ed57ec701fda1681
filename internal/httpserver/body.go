package httpserver

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// body is the body of a request, whose sender must keep the minimum rate.
type body struct {
	io.ReadCloser
	exchange *exchange
	in       budget
	began    time.Time // the first read; zero: none yet
	// A handler may pass the body on, and answer while another goroutine reads it.
	ended, failed atomic.Bool
}

func (b *body) Read(p []byte) (int, error) {
	if b.ended.Load() { // a deadline would now end the connection's next read
		return b.ReadCloser.Read(p)
	}
	now := time.Now()
	if b.began.IsZero() {
		b.began = now
	}
	until := now.Add(max(b.in.left, 0))
	if end := b.began.Add(b.exchange.server.config.BodyTimeout); end.Before(until) &&
		!b.exchange.read.isLifted() {
		until = end
	}
	_ = b.exchange.read.transfer(until)
	n, err := b.ReadCloser.Read(p)
	b.in.spend(time.Since(now), n)
	b.ended.Store(err == io.EOF)
	b.failed.Store(err != nil && err != io.EOF)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		b.exchange.server.metrics.slow("body")
	}
	return n, err
}
