package api

import (
	"fmt"
	"net/http"
	"time"

	"github.com/tidefill/tidefill/store/live"
)

// requestWindow is the time of Config.RequestsPerMinute.
const requestWindow = time.Minute

// limitRate counts a request of its tenant, and returns the answer to one over the limit.
func (s *Server) limitRate(r *http.Request) error {
	most := s.config().RequestsPerMinute
	if most == 0 {
		return nil
	}
	wait := s.deps.Windows.Take(r.Context(), tenantOf(r.Context()), live.Limit{Most: most,
		Per: requestWindow})
	if wait == 0 {
		return nil
	}
	return &httpError{
		Status: http.StatusTooManyRequests, Type: invalidRequest, Code: "rate_limit_exceeded",
		RetryAfter: max(time.Second, wait.Round(time.Second)),
		Message: fmt.Sprintf("You have sent more than %d requests within a minute; try again in "+
			"%v.", most, max(time.Second, wait.Round(time.Second))),
	}
}
