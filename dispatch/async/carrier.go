package async

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tidefill/tidefill/dispatch/openai"
	"github.com/tidefill/tidefill/dispatch/upstream"
)

const (
	// checkEvery is the interval of a carrier's signs of life, and of the search for items that
	// Redis has lost.
	checkEvery = time.Second
	// offererLife is the time for which a carrier counts as alive after a sign of life. Workers
	// end the requests of one whose process was killed after it.
	offererLife = 10 * time.Second
	// offerWait is the time for which a request waits for a worker, or for Redis. A worker shows
	// itself again within beatEvery after Redis was flushed.
	offerWait = 3 * time.Second
	// offerAgain is the interval of tries meanwhile.
	offerAgain = 200 * time.Millisecond
	// collectWait is the time that one call waits for answers.
	collectWait = time.Second
	// lateFor is the deadline of requests without one, from now: they follow those with one.
	lateFor = 365 * 24 * time.Hour
)

// errNoWorker reports that a request was not sent.
var errNoWorker = errors.New("no worker serves the queue of the runner; start tidefill worker " +
	"beside its engine, and see that both use the same Redis and prefix")

// Queues are the queues of all runners in one Redis.
type Queues struct {
	client redis.UniversalClient
	prefix string
}

// NewQueues returns the queues whose keys begin with prefix. The caller closes the client.
func NewQueues(client redis.UniversalClient, prefix string) *Queues {
	return &Queues{client: client, prefix: prefix}
}

// Carrier implements [upstream.Queues]. It returns a new carrier for every call. Carriers of one
// runner do not disturb each other, so one may replace another that has requests in flight.
func (q *Queues) Carrier(runner string) openai.Carrier {
	return &Carrier{queue: newRunnerQueue(q.client, q.prefix, runner), id: rand.Text(),
		runner: runner, waiting: map[string]*wait{}}
}

var (
	_ upstream.Queues = (*Queues)(nil)
	_ openai.Carrier  = (*Carrier)(nil)
)

// Carrier carries the requests of one runner through its queue. It is safe for concurrent use. Its
// goroutines run while a request waits, and end within seconds after the last one.
type Carrier struct {
	queue  *runnerQueue
	id     string // as an offerer
	runner string

	mu      sync.Mutex
	last    uint64           // number of the last item
	waiting map[string]*wait // by id
	running bool             // the goroutines are
	up      bool             // Redis has answered the last call
}

// wait is a request that waits for its answer.
type wait struct {
	answer chan string // capacity 1
	// left reports that a check did not find it in the queue: a worker held it, or Redis lost it.
	left     bool
	missing  int  // checks in a row that did not find it
	tried    bool // Redis may have got it
	offered  bool // Redis has got it
	deadline time.Time
	message  []byte
}

// Carry offers a request and awaits its answer. sent reports that the engine may have received it.
// Requests with an early deadline are taken first; zero: after all that have one.
func (c *Carrier) Carry(
	r *http.Request, deadline time.Time,
) (answer *http.Response, sent bool, err error) {
	ctx := r.Context()
	message, err := encodeRequest(r)
	if err != nil {
		return nil, false, err
	}
	if deadline.IsZero() {
		deadline = time.Now().Add(lateFor)
	}
	w := &wait{answer: make(chan string, 1), deadline: deadline, message: message}
	id := c.begin(w)
	defer c.end(id)
	if err := c.offer(ctx, id, w); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, c.withdraw(id, w), err
	}
	select {
	case <-ctx.Done():
		return nil, c.withdraw(id, w), context.Cause(ctx)
	case got := <-w.answer:
		return decodeAnswer(got, r)
	}
}

// withdraw removes an item, and reports whether an engine may have received it: unless Redis never
// got it, or had it in the queue all the time. If Redis does not answer, nobody knows.
func (c *Carrier) withdraw(id string, w *wait) (sent bool) {
	c.mu.Lock()
	tried := w.tried
	c.mu.Unlock()
	if !tried {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), offerWait)
	defer cancel()
	was, err := c.queue.withdraw(ctx, id)
	c.mu.Lock()
	defer c.mu.Unlock()
	return err != nil || was != queued || w.left
}

// offer offers an item until Redis takes it. An item whose answer has come was taken, though Redis
// may not have said so. Offered again, it would be new.
func (c *Carrier) offer(ctx context.Context, id string, w *wait) error {
	for end := time.Now().Add(offerWait); ; {
		err := c.tryOffer(ctx, id, w)
		if err == nil || len(w.answer) > 0 {
			return nil
		}
		if ctx.Err() != nil || time.Now().After(end) {
			return fmt.Errorf("offer a request of runner %s: %w", c.runner, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(offerAgain):
		}
		if len(w.answer) > 0 {
			return nil
		}
	}
}

// tryOffer offers an item once. An offer that fails may have reached Redis, so a sign of life goes
// first where Redis has not answered the last call: the requests of an outage count as not sent.
func (c *Carrier) tryOffer(ctx context.Context, id string, w *wait) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	up := c.up
	c.mu.Unlock()
	if !up {
		_, err := c.queue.check(ctx, c.id, offererLife, nil)
		if c.answered(err); err != nil {
			return err
		}
	}
	served, err := c.queue.offer(ctx, c.id, offererLife, id, w.deadline, w.message)
	c.answered(err)
	c.mu.Lock()
	defer c.mu.Unlock()
	w.tried = w.tried || served || err != nil && !isFull(err)
	w.offered = served && err == nil
	if err == nil && !served {
		return errNoWorker
	}
	return err
}

// isFull reports that Redis has refused a call because its memory is used up. It has added nothing.
func isFull(err error) bool { return strings.Contains(err.Error(), "OOM command not allowed") }

// answered notes whether Redis has answered a call.
func (c *Carrier) answered(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.up = err == nil
}

// begin notes that a request waits, and has its answer collected.
func (c *Carrier) begin(w *wait) (id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	id = itemID(c.id, c.last)
	c.waiting[id] = w
	if !c.running {
		c.running = true
		ctx, cancel := context.WithCancel(context.Background())
		go c.check(ctx)
		go func() {
			defer cancel()
			c.collect(ctx)
		}()
	}
	return id
}

func (c *Carrier) end(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

// idle reports whether no request waits. Then the goroutines end, and the next request starts them.
func (c *Carrier) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 {
		c.running, c.up = false, false // nobody watches Redis meanwhile
	}
	return !c.running
}

// collect delivers answers while requests wait.
func (c *Carrier) collect(ctx context.Context) {
	for !c.idle() {
		answers, err := c.queue.collect(ctx, c.id, collectWait)
		if c.answered(err); err != nil {
			time.Sleep(offerAgain)
		}
		for _, a := range answers {
			id, answer, _ := strings.Cut(a, "\n")
			c.deliver(id, answer)
		}
	}
}

// deliver ends the wait for an item. Nobody waits for a second answer.
func (c *Carrier) deliver(id, answer string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.waiting[id]; w != nil {
		delete(c.waiting, id)
		w.answer <- answer
	}
}

// check gives signs of life, and looks for items that Redis has lost.
func (c *Carrier) check(ctx context.Context) {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		ids := c.offeredIDs()
		states, err := c.queue.check(ctx, c.id, offererLife, ids)
		if c.answered(err); err != nil {
			continue
		}
		for i, id := range ids {
			c.checked(ctx, id, states[i])
		}
	}
}

func (c *Carrier) offeredIDs() (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, w := range c.waiting {
		if w.offered {
			ids = append(ids, id)
		}
	}
	return ids
}

// missingChecks is the number of checks in a row that do not find an item before it is offered
// again. An answer that has just been collected is not found by one.
const missingChecks = 2

const (
	// unservedAnswer is the answer of an item that no worker has taken.
	unservedAnswer = `{"error":"no worker serves the queue of the runner any more"}`
	// abandonedAnswer is that of one that a worker held before.
	abandonedAnswer = `{"error":"no worker serves the queue of the runner any more","sent":true}`
)

// checked takes over the state of an item.
func (c *Carrier) checked(ctx context.Context, id string, now state) {
	c.mu.Lock()
	w := c.waiting[id]
	if now == unserved {
		before := w != nil && w.left
		c.mu.Unlock()
		if before {
			c.deliver(id, abandonedAnswer)
		} else {
			c.deliver(id, unservedAnswer)
		}
		return
	}
	again := false
	if w != nil {
		w.left = w.left || now != queued
		w.missing++
		if now != absent {
			w.missing = 0
		}
		if again = w.missing >= missingChecks; again {
			w.missing = 0
		}
	}
	c.mu.Unlock()
	if !again {
		return
	}
	// One that is not taken now is found missing again.
	_, _ = c.queue.offer(ctx, c.id, offererLife, id, w.deadline, w.message)
}

func encodeRequest(r *http.Request) ([]byte, error) {
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		if err = errors.Join(err, r.Body.Close()); err != nil {
			return nil, fmt.Errorf("read the body of a request: %w", err)
		}
	}
	// The worker knows the base of its engine, which precedes /v1/.
	path := r.URL.Path
	if at := strings.Index(path, "/v1/"); at > 0 {
		path = path[at:]
	}
	return encode(requestHead{Method: r.Method, Path: path, Header: r.Header}, body)
}

func decodeAnswer(message string, r *http.Request) (*http.Response, bool, error) {
	var head answerHead
	body, err := decode([]byte(message), &head)
	if err != nil {
		return nil, true, err
	}
	if head.Status == 0 {
		return nil, head.Sent, head.err()
	}
	return &http.Response{
		Status: http.StatusText(head.Status), StatusCode: head.Status, Header: head.Header,
		// The id of an item identifies its answer, as that of a stream does in HTTP/2.
		Proto: "HTTP/2.0", ProtoMajor: 2,
		Body:          &answerBody{Reader: bytes.NewReader(body), err: head.err()},
		ContentLength: int64(len(body)), Request: r,
	}, true, nil
}

// answerBody is the body of an answer. If it was cut, it ends with an error.
type answerBody struct {
	*bytes.Reader
	err error
}

// Read implements [io.Reader].
func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF && b.err != nil {
		err = b.err
	}
	return n, err
}

// Close implements [io.Closer].
func (b *answerBody) Close() error { return nil }

// WriteTo is not that of bytes.Reader, which knows no error.
func (b *answerBody) WriteTo(w io.Writer) (int64, error) {
	n, err := b.Reader.WriteTo(w)
	if err == nil {
		err = b.err
	}
	return n, err
}
