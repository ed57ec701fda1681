package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/tidefill/tidefill/store/live"
)

// requestWindow is the time of Config.RequestsPerMinute.
const requestWindow = time.Minute

// maxRequestsPerMinute keeps the time of one request well above the microsecond in which Redis
// counts it.
const maxRequestsPerMinute = 1_000_000

// The headers of an answer that tell its tenant about the limit, as OpenAI's API sends them. There
// are none for tokens, since no tenant has a limit of them.
const (
	limitHeader     = "X-Ratelimit-Limit-Requests"
	remainingHeader = "X-Ratelimit-Remaining-Requests"
	// resetHeader is the time until all requests of the limit may come at once, such as 1m0s.
	resetHeader = "X-Ratelimit-Reset-Requests"
)

func rateLimit(most int) live.Limit { return live.Limit{Most: most, Per: requestWindow} }

// uncount takes back a request that another process counts, since it goes there.
func (s *Server) uncount(ctx context.Context) {
	if most := s.config().RequestsPerMinute; most > 0 {
		s.deps.Windows.Give(ctx, tenantOf(ctx), rateLimit(most))
	}
}

// limitRate counts a request of its tenant, and returns the answer to one over the limit.
func (s *Server) limitRate(w http.ResponseWriter, r *http.Request) error {
	most := s.config().RequestsPerMinute
	if most == 0 {
		return nil
	}
	taken := s.deps.Windows.Take(r.Context(), tenantOf(r.Context()), rateLimit(most))
	h := w.Header()
	h.Set(limitHeader, strconv.Itoa(most))
	h.Set(remainingHeader, strconv.Itoa(taken.Left))
	h.Set(resetHeader, (taken.Empty + time.Millisecond - 1).Truncate(time.Millisecond).String())
	if taken.Wait == 0 {
		return nil
	}
	wait := max(time.Second, taken.Wait.Round(time.Second))
	return &httpError{
		Status: http.StatusTooManyRequests, Type: invalidRequest, Code: "rate_limit_exceeded",
		RetryAfter: wait,
		Message: fmt.Sprintf("You have sent more than %d requests within a minute; try again in "+
			"%v.", most, wait),
	}
}
