package inline

import (
	"errors"
	"fmt"
	"maps"
	"net/http"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// forwardedHeader marks a request that a process has passed on to the one that plans the pool. It
// is not passed on again.
const forwardedHeader = "X-Tidefill-Forwarded"

// forward sends the request as it came to the process that finds its place.
func (x *exchange) forward(out *http.Request, to *Elsewhere) (*http.Response, error) {
	if x.in.Header.Get(forwardedHeader) != "" {
		return nil, &Refused{plan.Refusal{Why: plan.NoLeader}}
	}
	x.forwarded = true
	x.moved()
	r := out.WithContext(out.Context())
	target := *to.URL
	target.Path, target.RawPath, target.RawQuery = out.URL.Path, "", out.URL.RawQuery
	r.URL, r.Host = &target, target.Host
	r.Header = maps.Clone(out.Header)
	for _, name := range forwardedHeaders {
		if values := x.in.Header[name]; values != nil {
			r.Header[name] = values
		}
	}
	r.Header.Set(forwardedHeader, "1")
	r.Trailer, r.TransferEncoding, r.Close = nil, nil, false
	body, length := x.body.out(nil, nil)
	r.Body, r.ContentLength = body, length
	answer, err := x.proxy.transport.RoundTrip(r)
	if err != nil {
		if out.Context().Err() != nil {
			return nil, fmt.Errorf("forward: %w", err)
		}
		if f := x.body.fault(); f != nil {
			return nil, f
		}
		return nil, &upstreamError{plan.Unreachable, err}
	}
	x.body.release()
	return answer, nil
}

// forwardedHeaders are those for this process that the next one needs too.
var forwardedHeaders = []string{"Authorization", "Tidefill-Tenant", deadlineHeader, cacheTagHeader}

// elsewhere returns where the place of a request is found, if an error says that.
func elsewhere(err error) *Elsewhere {
	var to *Elsewhere
	errors.As(err, &to)
	return to
}
