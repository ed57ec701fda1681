package keda

import (
	"context"
	"log/slog"
	"path"
	"runtime/debug"
	"sync"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// observer counts calls, limits their time, logs those that fail, and keeps a panic of one from
// ending the process.
type observer struct {
	metrics *metrics
	log     *slog.Logger
	limit   time.Duration
	running chan struct{} // holds a value for each call that runs

	mu     sync.Mutex
	since  time.Time       // when logged was empty
	logged map[string]bool // errors that were logged since
}

// maxCalls limits the calls that run: those that are past their time limit run on.
const maxCalls = 1000

func newObserver(m *metrics, log *slog.Logger, limit time.Duration) *observer {
	return &observer{metrics: m, log: log, limit: limit, running: make(chan struct{}, maxCalls)}
}

// observes reports whether a method is one of KEDA's, rather than of the health service.
func observes(method string) bool {
	return path.Dir(method) == "/"+externalscaler.ExternalScaler_ServiceDesc.ServiceName
}

func (o *observer) unary(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
) (answer any, err error) {
	if !observes(info.FullMethod) {
		return handle(ctx, request)
	}
	begun := time.Now()
	answer, err = o.inTime(ctx, request, info.FullMethod, handle)
	o.ended(ctx, info.FullMethod, err)
	o.metrics.duration.WithLabelValues(path.Base(info.FullMethod)).Observe(
		time.Since(begun).Seconds())
	return answer, err
}

// inTime returns the answer to a call, or an error after the time limit.
func (o *observer) inTime(
	ctx context.Context, request any, method string, handle grpc.UnaryHandler,
) (any, error) {
	type result struct {
		answer any
		err    error
	}
	timer := time.NewTimer(o.limit)
	defer timer.Stop()
	select {
	case o.running <- struct{}{}:
	case <-timer.C:
		return nil, o.late()
	}
	done := make(chan result, 1)
	go func() {
		defer func() { <-o.running }()
		var r result
		defer func() {
			if err := o.recovered(ctx, method, recover()); err != nil {
				r = result{nil, err}
			}
			done <- r
		}()
		r.answer, r.err = handle(ctx, request)
	}()
	select {
	case r := <-done:
		return r.answer, r.err
	case <-timer.C:
		return nil, o.late()
	}
}

func (o *observer) late() error {
	return status.Errorf(codes.DeadlineExceeded, "no answer within %v; the replicas stay as they "+
		"are", o.limit)
}

func (o *observer) stream(
	server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler,
) (err error) {
	if !observes(info.FullMethod) {
		return handle(server, stream)
	}
	o.metrics.streams.Inc()
	defer func() {
		o.metrics.streams.Dec()
		if fault := o.recovered(stream.Context(), info.FullMethod, recover()); fault != nil {
			err = fault
		}
		o.ended(stream.Context(), info.FullMethod, err)
	}()
	return handle(server, stream)
}

// recovered returns the error of a call that has panicked.
func (o *observer) recovered(ctx context.Context, method string, panicked any) error {
	if panicked == nil {
		return nil
	}
	o.log.ErrorContext(ctx, "a call of the scaler failed by a fault of the program",
		"method", method, "panic", panicked, "stack", string(debug.Stack()))
	return status.Error(codes.Internal, "a fault of the program; see its log")
}

// ended counts a call that has ended, and logs its error.
func (o *observer) ended(ctx context.Context, method string, err error) {
	o.metrics.requests.WithLabelValues(path.Base(method), status.Code(err).String()).Inc()
	if err != nil && o.isNew(err.Error()) {
		o.log.WarnContext(ctx, "a ScaledObject got an error instead of a number of replicas",
			"method", path.Base(method), "error", status.Convert(err).Message())
	}
}

// In this time, each error is logged once, and so many errors are logged at all.
const (
	logEvery  = 10 * time.Minute
	maxErrors = 200
)

// isNew reports whether an error is to be logged.
func (o *observer) isNew(text string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := time.Now(); o.logged == nil || now.Sub(o.since) >= logEvery {
		o.since, o.logged = now, map[string]bool{}
	}
	if o.logged[text] || len(o.logged) >= maxErrors {
		return false
	}
	o.logged[text] = true
	return true
}
