package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/tidefill/tidefill/store"
)

// parallel is the number of deliveries to an endpoint at once. One round delivers as many, so that
// an endpoint that hangs delays its own next look by one timeout.
const parallel = 8

// deliver sends the notices that are due, until none is left or one fails.
func (e *endpoint) deliver(ctx context.Context) error {
	for ctx.Err() == nil {
		due, err := e.store.DueNotices(ctx, e.Name, time.Now(), parallel)
		if err != nil {
			return err
		}
		errs := make([]error, len(due))
		failed := make([]bool, len(due))
		var sending sync.WaitGroup
		for i, n := range due {
			sending.Go(func() { failed[i], errs[i] = e.attempt(ctx, n) })
		}
		sending.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		for _, f := range failed {
			if f {
				return nil
			}
		}
		if len(due) < parallel {
			return nil
		}
	}
	return nil
}

// attempt sends a notice and stores what came of it. The error is one of the store.
func (e *endpoint) attempt(ctx context.Context, n store.Notice) (failed bool, err error) {
	wait, problem := e.send(ctx, n)
	if problem != nil && ctx.Err() != nil {
		//nolint:nilerr // this process stops; another one, or the next start, tries again
		return true, nil
	}
	n.Attempts++
	due := time.Now().Add(max(wait, e.backoff(n.Attempts)))
	log := e.log.With("batch_id", n.Batch, "event", n.Event, "webhook_id", n.ID, "attempts",
		n.Attempts)
	result := delivered
	switch {
	case problem == nil:
		n.Due = time.Time{}
		log.DebugContext(ctx, "webhook delivered")
	case due.Sub(n.CreatedAt) > e.GiveUpAfter || errors.Is(problem, errGone):
		n.Due, result = time.Time{}, givenUp
		log.ErrorContext(ctx, "a webhook could not be delivered and is given up", "error", problem)
	default:
		n.Due, result = due, failedOnce
		if n.Attempts == 1 {
			log.WarnContext(ctx, "a webhook could not be delivered, trying again later", "error",
				problem)
		}
	}
	e.metrics.deliveries.WithLabelValues(e.Name, result).Inc()
	err = e.store.UpdateNotice(context.WithoutCancel(ctx), e.Name, n)
	if errors.Is(err, store.ErrNotFound) { // replaced by a newer one, which is sent next
		err = nil
	}
	return problem != nil, err
}

// backoff returns how long to wait after a number of attempts, the same for none of many.
func (e *endpoint) backoff(attempts int) time.Duration {
	wait := e.pace.LastRetry
	if doublings := attempts - 1; doublings < 20 {
		wait = min(wait, e.pace.FirstRetry<<doublings)
	}
	return wait + time.Duration(rand.Int64N(int64(wait)/4+1))
}

// errGone is the answer 410: the endpoint wants no more of the event.
var errGone = errors.New("the endpoint answered 410 Gone")

// message is an event in OpenAI's format.
type message struct {
	ID        string      `json:"id"`
	Object    string      `json:"object"`
	CreatedAt int64       `json:"created_at"`
	Type      string      `json:"type"`
	Data      messageData `json:"data"`
}

type messageData struct {
	ID string `json:"id"`
}

// mostRead limits the bytes that are read of an answer's body, so that a short one leaves the
// connection usable.
const mostRead = 512

// lastAnswers is how long a stop waits for answers, so that what was delivered is not sent again.
const lastAnswers = time.Second

// send makes one attempt. wait is how long the endpoint asks to wait after a failure.
func (e *endpoint) send(
	ctx context.Context, n store.Notice,
) (wait time.Duration, problem error) {
	body, err := json.Marshal(message{ID: n.ID, Object: "event", CreatedAt: n.CreatedAt.Unix(),
		Type: n.Event, Data: messageData{n.Batch}})
	if err != nil {
		return 0, err
	}
	sending, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.Timeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastAnswers, cancel) })()
	r, err := http.NewRequestWithContext(sending, http.MethodPost, e.URL, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	now := time.Now().Unix()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "Tidefill")
	r.Header.Set("webhook-id", n.ID)
	r.Header.Set("webhook-timestamp", strconv.FormatInt(now, 10))
	r.Header.Set("webhook-signature", e.signer.sign(n.ID, now, body))
	answer, err := e.client.Do(r)
	if err != nil {
		if of := (*url.Error)(nil); errors.As(err, &of) {
			err = of.Err // without the URL, which may have a token in its query
		}
		return 0, err
	}
	defer answer.Body.Close()
	_, _ = io.CopyN(io.Discard, answer.Body, mostRead)
	switch {
	case answer.StatusCode/100 == 2:
		return 0, nil
	case answer.StatusCode == http.StatusGone:
		return 0, errGone
	}
	if seconds, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && seconds > 0 {
		wait = min(time.Duration(seconds)*time.Second, e.pace.LastRetry)
	}
	return wait, fmt.Errorf("the endpoint answered %d", answer.StatusCode)
}
