package live

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/tidefill/tidefill/simulator/workload"
)

// users send interactive requests at the times of the workload and measure the answers.
type users struct {
	router  *router
	client  *http.Client
	gateway *gateway
	report  func(answered)
}

// answered is an interactive request and how it fared.
type answered struct {
	workload.Arrival
	// late is the delay with which the request was sent: the error of this program's own timing.
	late time.Duration
	// ttft is from when the request should have been sent; tpot is the mean time of the tokens
	// after the first, 0 if there are none.
	ttft, tpot time.Duration
	err        error
}

func newUsers(r *router, g *gateway, report func(answered)) *users {
	return &users{router: r, gateway: g, report: report,
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4096}}}
}

// play sends the requests of a stream, which begins at start, until it ends or ctx is done, and
// returns when all are answered or ctx is done.
func (u *users) play(ctx context.Context, start time.Time, stream workload.Stream) {
	var open sync.WaitGroup
	defer open.Wait()
	number := uint64(0)
	for a := range workload.All(stream) {
		number++
		body, err := newBody(a.Request, number, true)
		if !sleepUntil(ctx, start.Add(a.At)) {
			return
		}
		open.Go(func() {
			result := answered{Arrival: a, late: time.Since(start.Add(a.At)), err: err}
			if err == nil {
				u.ask(ctx, start.Add(a.At), body, &result)
			}
			if ctx.Err() == nil {
				u.gateway.observeEnd(result)
				u.report(result)
			}
		})
	}
}

// tries is the number of runners that a request is sent to if they are gone. An answer that has
// begun is not asked for again.
const tries = 3

func (u *users) ask(ctx context.Context, due time.Time, body []byte, a *answered) {
	tried := map[int]bool{}
	for range tries {
		runner := u.router.choose(a.Request, tried)
		begun, err := u.stream(ctx, runner, body, due, a)
		a.err = err
		if err == nil || begun {
			return
		}
		tried[runner] = true
		u.router.lost(runner)
	}
}

// stream sends a request and reads the tokens of the answer. begun reports whether a token came.
func (u *users) stream(
	ctx context.Context, runner int, body []byte, due time.Time, a *answered,
) (begun bool, err error) {
	request, err := http.NewRequestWithContext(ctx, "POST",
		u.router.runners.url(runner)+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := u.client.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 300))
		return false, fmt.Errorf("%s: %s", response.Status, text)
	}
	first, last, tokens, err := readTokens(response.Body, a.Output, func(first time.Time) {
		a.ttft = first.Sub(due)
		u.gateway.observeFirst(a.ttft)
	})
	if tokens > 1 {
		a.tpot = last.Sub(first) / time.Duration(tokens-1)
	}
	return tokens > 0, err
}

var (
	eventPrefix = []byte("data: ")
	endOfStream = []byte("[DONE]")
)

var errCut = errors.New("the answer was cut off")

// readTokens reads a stream of events, one for each token, and returns when the first and the last
// of want tokens came. It reports the first one at once.
func readTokens(
	body io.Reader, want int, onFirst func(time.Time),
) (first, last time.Time, tokens int, err error) {
	lines := bufio.NewReaderSize(body, 4<<10)
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			return first, last, tokens, errors.Join(errCut, err)
		}
		event, ok := bytes.CutPrefix(line, eventPrefix)
		switch {
		case !ok:
		case bytes.HasPrefix(event, endOfStream):
			if tokens < want {
				return first, last, tokens, fmt.Errorf("%w: %d of %d tokens", errCut, tokens, want)
			}
			return first, last, tokens, nil
		case tokens < want: // what follows the last token says why the answer ends
			last = time.Now()
			if tokens == 0 {
				first = last
				onFirst(first)
			}
			tokens++
		}
	}
}

// sleepUntil waits and reports whether ctx is not done.
func sleepUntil(ctx context.Context, t time.Time) bool {
	wait := time.Until(t)
	if wait <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
