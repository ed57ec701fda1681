package async

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/tidefill/tidefill/dispatch/openai"
)

const (
	// workerLease is the time for which a worker holds an item, and counts as alive, after a sign
	// of life.
	workerLease = 5 * time.Second
	// beatEvery is the interval of signs of life. Within it a worker notices that a request is not
	// wanted any more.
	beatEvery = 500 * time.Millisecond
	// bellWait is the time that one call waits for items.
	bellWait = time.Second
	// workerRetry is the interval of tries while Redis does not answer.
	workerRetry = 200 * time.Millisecond
	// maxAnswer limits the bytes of an answer, which is in memory as a whole. A dispatcher has a
	// limit of its own below that.
	maxAnswer = 256 << 20
	// answerTries limits how often an answer is offered to a Redis that is away. After that its
	// lease has ended for long.
	answerTries = 50
)

// WorkerConfig configures a worker.
type WorkerConfig struct {
	Prefix      string        // begins the keys, as that of the dispatcher's
	Runner      string        // name of the upstream that the worker serves
	Engine      string        // URL of the engine
	APIKey      string        // bearer token for the engine; empty: that of the dispatcher, if any
	Concurrency int           // requests at once
	Drain       time.Duration // time for requests in progress when the worker stops
	DialTimeout time.Duration
}

// Worker takes the requests of one runner, and sends them to its engine.
type Worker struct {
	cfg    WorkerConfig
	queue  *runnerQueue
	client *openai.Client
	id     string
	log    *slog.Logger
	lines  *prometheus.CounterVec
	up     prometheus.Gauge

	leaving atomic.Bool // it takes no more

	mu       sync.Mutex
	held     map[string]*holding // by id
	lastSeen time.Time           // when Redis answered last
}

// holding is an item that the worker holds.
type holding struct {
	lease
	end context.CancelCauseFunc // ends its request
}

// errNotHeld is the cause with which a request ends that is not wanted any more.
var errNotHeld = errors.New("the request was withdrawn, or its lease has ended")

// errStopping is the cause with which requests end when the time to drain is over.
var errStopping = errors.New("the worker stops")

// Results of items; labels of a metric.
const (
	answered    = "answered"    // the engine's answer was returned, whatever its status
	noAnswer    = "no_answer"   // the engine gave none, or broke off
	fenced      = "fenced"      // the lease had ended, so the answer was dropped
	withdrawn   = "withdrawn"   // the request was ended because nobody waits for it
	returned    = "returned"    // it was put back when the worker stopped
	undelivered = "undelivered" // Redis did not take the answer
)

// NewWorker returns a worker. The caller closes the client, after Run.
func NewWorker(
	cfg WorkerConfig, client redis.UniversalClient, log *slog.Logger, r prometheus.Registerer,
) (*Worker, error) {
	if cfg.Runner == "" {
		return nil, errors.New("worker: no runner is named")
	}
	if cfg.Concurrency < 1 {
		return nil, fmt.Errorf("worker: concurrency is %d; give 1 or more", cfg.Concurrency)
	}
	engine, err := openai.New(openai.Config{URL: cfg.Engine, APIKey: cfg.APIKey,
		MaxAnswer: maxAnswer, DialTimeout: cfg.DialTimeout})
	if err != nil {
		return nil, fmt.Errorf("worker: %w", err)
	}
	w := &Worker{cfg: cfg, queue: newRunnerQueue(client, cfg.Prefix, cfg.Runner), client: engine,
		id: rand.Text(), log: log.With("component", "worker", "runner", cfg.Runner),
		held: map[string]*holding{},
		lines: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tidefill_worker_requests_total",
			Help: "Requests that the worker took, by result."}, []string{"result"}),
		up: prometheus.NewGauge(prometheus.GaugeOpts{Name: "tidefill_worker_redis_up",
			Help: "1 while Redis answers the worker."}),
	}
	inFlight := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "tidefill_worker_in_flight", Help: "Requests that the worker holds."},
		func() float64 { return float64(len(w.leases())) })
	for _, result := range []string{answered, noAnswer, fenced, withdrawn, returned, undelivered} {
		w.lines.WithLabelValues(result)
	}
	if r != nil {
		err = errors.Join(r.Register(w.lines), r.Register(w.up), r.Register(inFlight))
	}
	return w, err
}

// Run takes requests until ctx ends. Then it takes no more, lets those in progress end within the
// time to drain, and puts back the others.
func (w *Worker) Run(ctx context.Context) error {
	working, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	var beating, sending sync.WaitGroup
	beating.Go(func() { w.beat(working) })
	w.take(ctx, working, &sending)
	w.leaving.Store(true)
	w.leave(working)
	drain := time.AfterFunc(w.cfg.Drain, func() { stop(errStopping) })
	defer drain.Stop()
	sending.Wait()
	stop(nil)
	beating.Wait()
	w.client.Close()
	return nil
}

// leave reports that the worker takes no more. If Redis is away, it counts as alive for a lease.
func (w *Worker) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, workerLease)
	defer cancel()
	if err := w.queue.leave(ctx, w.id); err != nil {
		w.log.WarnContext(ctx, "could not leave the queue", "error", err)
	}
}

// take takes items until ctx ends.
func (w *Worker) take(ctx, working context.Context, sending *sync.WaitGroup) {
	slots := make(chan struct{}, w.cfg.Concurrency)
	for {
		select {
		case <-ctx.Done():
			return
		case slots <- struct{}{}:
		}
		<-slots // only this goroutine fills slots, so one stays free
		// The call is not canceled: what it has taken is known.
		items, err := w.queue.take(working, w.id, cap(slots)-len(slots), workerLease, rand.Text())
		w.answeredBy(err)
		if err != nil {
			w.pause(ctx, workerRetry)
			continue
		}
		for _, item := range items {
			slots <- struct{}{}
			one, end := context.WithCancelCause(working)
			w.hold(item, end)
			sending.Go(func() {
				w.serve(one, item)
				w.drop(item.id)
				end(nil)
				<-slots
			})
		}
		if len(items) == 0 {
			if err := w.queue.await(ctx, bellWait); err != nil && ctx.Err() == nil {
				w.pause(ctx, workerRetry)
			}
		}
	}
}

func (w *Worker) pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// beat renews the leases until working ends, and ends the requests that are not held any more.
func (w *Worker) beat(working context.Context) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-working.Done():
			return
		case <-tick.C:
		}
		life := workerLease
		if w.leaving.Load() {
			life = 0 // so that nothing waits for it
		}
		gone, err := w.queue.renew(working, w.id, life, workerLease, w.leases())
		w.answeredBy(err)
		for _, id := range gone {
			w.mu.Lock()
			if h := w.held[id]; h != nil {
				h.end(errNotHeld)
			}
			w.mu.Unlock()
		}
	}
}

// answeredBy takes note of whether Redis has answered.
func (w *Worker) answeredBy(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		if !w.lastSeen.IsZero() && time.Since(w.lastSeen) > workerLease {
			w.up.Set(0)
		}
		w.log.Debug("could not reach Redis, trying again", "error", err)
		return
	}
	w.lastSeen = time.Now()
	w.up.Set(1)
}

// Healthy returns an error if Redis has not answered for a lease.
func (w *Worker) Healthy() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if age := time.Since(w.lastSeen); age > workerLease {
		return errors.New("Redis does not answer; see --redis and the log")
	}
	return nil
}

func (w *Worker) hold(l lease, end context.CancelCauseFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held[l.id] = &holding{l, end}
}

func (w *Worker) drop(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.held, id)
}

// leases returns the leases of all items that the worker holds.
func (w *Worker) leases() (all []lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.held {
		all = append(all, lease{id: h.id, token: h.token})
	}
	return all
}

// serve sends a request, and returns its answer.
func (w *Worker) serve(ctx context.Context, l lease) {
	head, body := w.send(ctx, l)
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errNotHeld):
		w.lines.WithLabelValues(withdrawn).Inc()
		return
	case errors.Is(cause, errStopping):
		w.lines.WithLabelValues(returned).Inc()
		release, cancel := context.WithTimeout(context.WithoutCancel(ctx), workerLease)
		defer cancel()
		if err := w.queue.release(release, l); err != nil { // its lease ends
			w.log.WarnContext(ctx, "could not put a request back", "error", err)
		}
		return
	}
	message, err := encode(head, body)
	if err != nil {
		w.log.ErrorContext(ctx, "could not encode an answer", "error", err)
		return
	}
	w.lines.WithLabelValues(w.deliver(ctx, l, head, message)).Inc()
}

// deliver returns an answer, and tries again while Redis is away.
func (w *Worker) deliver(ctx context.Context, l lease, head answerHead, message []byte) string {
	ctx = context.WithoutCancel(ctx)
	for range answerTries {
		current, err := w.queue.answer(ctx, l, message)
		switch {
		case err != nil:
			time.Sleep(workerRetry)
		case !current:
			return fenced
		case head.Error != "":
			return noAnswer
		default:
			return answered
		}
	}
	w.log.WarnContext(ctx, "could not return an answer: Redis does not answer")
	return undelivered
}

// send sends a request to the engine and reads the whole answer.
func (w *Worker) send(ctx context.Context, l lease) (head answerHead, body []byte) {
	var request requestHead
	content, err := decode([]byte(l.body), &request)
	if err != nil {
		return answerHead{Error: err.Error()}, nil
	}
	response, sent, err := w.client.Forward(ctx, openai.ForwardedRequest{Method: request.Method,
		Path: request.Path, Header: request.Header, Body: content})
	if err != nil {
		return answerHead{Error: err.Error(), Sent: sent}, nil
	}
	defer response.Body.Close()
	head = answerHead{Status: response.StatusCode, Header: endToEnd(response.Header), Sent: true}
	body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		head.Error = err.Error()
	case len(body) > maxAnswer:
		body, head.Error = body[:maxAnswer], fmt.Sprintf("the answer has over %d bytes", maxAnswer)
	}
	return head, body
}

// endToEnd returns a header without what concerns the connection to the engine.
func endToEnd(h http.Header) http.Header {
	h = h.Clone()
	for _, name := range []string{"Connection", "Keep-Alive", "Transfer-Encoding", "Trailer",
		"Upgrade", "Content-Length"} {
		h.Del(name)
	}
	return h
}
