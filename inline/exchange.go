package inline

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"mime"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
)

// exchange is one request and its answer. It is the transport of the request's reverse proxy.
type exchange struct {
	proxy  *Proxy
	config *Config
	w      http.ResponseWriter
	in     *http.Request
	tenant string
	moved  func()
	began  time.Time

	body    *body
	useCase UseCase
	request plan.Request
	// literal is the model as the body has it; set if the runner is sent another name in its place.
	literal []byte
	own     http.Header // of the answer, which an answer of a runner does not replace

	gone      error // why the request's context has ended before its answer began
	running   bool  // counted as in flight
	forwarded bool  // to another process, which does all that is done here
	answer    *answer
}

var _ http.RoundTripper = (*exchange)(nil)

// maxTries limits the places that a request is sent to, but for that of a fallback after them.
const maxTries = 3

// accept reads the request. It returns the answer to one that is not passed on.
func (x *exchange) accept() *failure {
	x.own = http.Header{}
	for _, name := range ownHeaders {
		if values := x.w.Header()[name]; values != nil {
			x.own[name] = values
		}
	}
	if f := checkHeader(x.in); f != nil {
		return f
	}
	var f *failure
	x.body, f = readBody(x.w, x.in, x.config.MaxBodyBytes,
		share{&x.proxy.memory, x.tenant})
	if f != nil {
		return f
	}
	if f := x.resolve(); f != nil {
		return f
	}
	x.running = true
	x.proxy.metrics.running.Inc()
	return nil
}

// checkHeader refuses what can't be read, or would make something else than a request and an answer
// of the connection.
func checkHeader(r *http.Request) *failure {
	refused := func(status int, reason, code, format string, args ...any) *failure {
		return &failure{status: status, kind: invalidRequest, code: code, reason: reason,
			message: fmt.Sprintf(format, args...)}
	}
	if to := r.Header.Get("Upgrade"); to != "" && !strings.EqualFold(to, "h2c") {
		return refused(http.StatusBadRequest, "upgrade", "upgrade_not_supported",
			"This URL does not switch to another protocol; send the request without Upgrade.")
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding,
		"identity") {
		return refused(http.StatusUnsupportedMediaType, "encoding", "unsupported_content_encoding",
			"The body's Content-Encoding is not supported; send the body without one.")
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return refused(http.StatusUnsupportedMediaType, "media_type", "unsupported_media_type",
			"This URL accepts JSON. Send the header 'Content-Type: application/json'.")
	}
	return nil
}

// refuse answers a request that was not passed on.
func (x *exchange) refuse(w http.ResponseWriter, f *failure) {
	x.proxy.metrics.refuse(x, f)
	if f.reason == goneReason {
		x.gone = context.Cause(x.in.Context())
		return
	}
	f.write(w)
}

// end releases what the request holds, whatever has become of it.
func (x *exchange) end() {
	if x.body != nil {
		x.body.release()
	}
	if x.answer != nil {
		x.answer.finish()
	}
	if x.running {
		x.proxy.metrics.running.Dec()
	}
}

// privateHeaders are those of a request that are meant for this process, or that a runner must not
// take from a user.
var privateHeaders = []string{"Authorization", "Cookie", "Proxy-Authorization", "X-Api-Key",
	"Api-Key", "Tidefill-Tenant", "X-Tenant-Id", "X-Priority", deadlineHeader,
	// The body was read, and answers stay readable.
	"Expect", "Accept-Encoding", "Upgrade", "Http2-Settings",
	// A runner must not answer to a page of another site: package httpserver decides that.
	"Origin", "Access-Control-Request-Method", "Access-Control-Request-Headers"}

// cacheTagHeader groups prompts in caches. That of a user is put behind the tenant's salt.
const cacheTagHeader = "X-Cache-Tag"

// rewrite makes the header of the request to the runner.
func (x *exchange) rewrite(r *httputil.ProxyRequest) {
	h := r.Out.Header
	for _, name := range privateHeaders {
		delete(h, name)
	}
	if tags := h.Values(cacheTagHeader); len(tags) == 1 && tags[0] != "" {
		h.Set(cacheTagHeader, saltOf(x.tenant).value+"."+tags[0])
	} else {
		h.Del(cacheTagHeader)
	}
	r.SetXForwarded()
	if id := x.own.Get("X-Request-Id"); id != "" {
		h.Set("X-Request-Id", id)
	}
}

// RoundTrip waits for a place and sends the request there. If a runner refuses the request or can't
// be reached, it goes to another one.
func (x *exchange) RoundTrip(out *http.Request) (*http.Response, error) {
	ctx := out.Context()
	if x.body.rest != nil {
		x.body.rest = out.Body // it can't be read after the handler has returned
	}
	var refused *http.Response // the answer of the last runner
	var failed error           // why it has not answered
	for try := 1; ; try++ {
		x.request.Outside = try > maxTries
		place, err := x.proxy.deps.Admission.Admit(ctx, x.request)
		if noPlace := (*Refused)(nil); errors.As(err, &noPlace) {
			switch {
			case refused != nil:
				return refused, nil
			case x.request.Outside:
				return nil, failed
			}
		}
		if to := elsewhere(err); to != nil {
			switch {
			case refused != nil:
				return refused, nil
			case x.request.Outside:
				return nil, failed
			}
			return x.forward(out, to)
		}
		if err != nil {
			return nil, err
		}
		answer, err := x.send(out, place)
		again := try <= maxTries && x.body.resendable() && ctx.Err() == nil
		switch {
		case err != nil && again && isUpstream(err):
			refused, failed = nil, err
		case err != nil:
			return nil, err
		case again && isShed(answer.StatusCode) && x.keep(answer):
			refused = answer
		default:
			x.body.release()
			x.request.Prefix = nil  // of no use any more
			if x.body.rest == nil { // else the transport may read on, and the scan with it
				x.body.scan = nil
			}
			return answer, nil
		}
		x.request.Avoid = append(x.request.Avoid, place.Admission().Runner)
	}
}

func isUpstream(err error) bool {
	var upstream *upstreamError
	return errors.As(err, &upstream)
}

func isShed(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// maxRefusal limits the answer of a runner that is kept while another one is tried.
const maxRefusal = 64 << 10

// keep reads the answer of a runner that refuses the request, and ends its place. It reports
// whether it could; otherwise the answer passes through.
func (x *exchange) keep(answer *http.Response) bool {
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
	if err != nil || len(text) == maxRefusal {
		answer.Body = &resumed{io.MultiReader(bytes.NewReader(text), answer.Body), answer.Body}
		return false
	}
	answer.Body.Close()
	answer.Body = io.NopCloser(bytes.NewReader(text))
	answer.ContentLength = int64(len(text))
	answer.Header.Set("Content-Length", strconv.Itoa(len(text)))
	answer.TransferEncoding, answer.Trailer = nil, nil
	return true
}

// resumed is a body whose beginning was read.
type resumed struct {
	io.Reader
	io.Closer
}

// send sends the request to a place and returns the answer, whose body ends the place.
func (x *exchange) send(out *http.Request, place Place) (*http.Response, error) {
	x.answer = &answer{exchange: x, place: place, sent: time.Now()}
	x.literal = nil
	request, err := x.outgoing(out, place)
	if err != nil {
		return nil, x.answer.failed(plan.Unreachable, err)
	}
	response, err := x.proxy.transport.RoundTrip(request)
	switch {
	case err == nil && response.StatusCode/100 == 3:
		response.Body.Close()
		return nil, x.answer.failed(plan.Denied, errRedirect)
	case err == nil:
		x.answer.begin(response)
		return response, nil
	case out.Context().Err() != nil:
		_ = x.answer.failed(plan.Evicted, err)
		return nil, fmt.Errorf("send: %w", context.Cause(out.Context()))
	}
	if f := x.body.fault(); f != nil {
		_ = x.answer.failed(plan.Evicted, f)
		return nil, f
	}
	outcome := plan.Died
	if op := (*net.OpError)(nil); errors.As(err, &op) && op.Op == "dial" {
		outcome = plan.Unreachable
	}
	return nil, x.answer.failed(outcome, err)
}

// outgoing returns the request to a place.
func (x *exchange) outgoing(out *http.Request, place Place) (*http.Request, error) {
	admitted := place.Admission()
	var model []byte
	if name := cmp.Or(admitted.Model, x.request.Model); name != x.body.scan.model {
		var err error
		if model, err = json.Marshal(name); err != nil {
			return nil, err
		}
		at := x.body.scan.modelAt
		x.literal = bytes.Clone(x.body.held[at.from:at.to])
	}
	outside := admitted.Instead != ""
	var own *salt
	if x.config.CacheSalt && !outside && slices.Contains(saltedURLs, out.URL.Path) {
		own = saltOf(x.tenant)
	}
	base := place.Base()
	r := out.WithContext(out.Context())
	target := *base
	target.Path = strings.TrimSuffix(target.Path, "/") + out.URL.Path
	target.RawPath, target.RawQuery = "", out.URL.RawQuery
	r.URL, r.Host = &target, target.Host
	// The transport may read the header after it has failed.
	r.Header = maps.Clone(out.Header)
	if outside {
		r.Header = outsideHeader(out.Header)
		target.RawQuery = ""
	}
	for name, values := range place.Header() {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	r.Trailer, r.TransferEncoding, r.Close = nil, nil, false
	body, length := x.body.out(model, own)
	r.Body, r.ContentLength = body, length
	if x.body.resendable() { // for a connection that was closed before it took a byte
		b := x.body
		r.GetBody = func() (io.ReadCloser, error) {
			body, _ := b.out(model, own)
			return body, nil
		}
	}
	return r, nil
}

// outsideHeader returns what a server elsewhere gets of a request's header: what its body needs.
// Addresses and traces of users are nobody's business there.
func outsideHeader(of http.Header) http.Header {
	h := http.Header{"User-Agent": {""}} // without, the transport adds its own
	for _, name := range []string{"Content-Type", "Accept"} {
		if values := of[name]; values != nil {
			h[name] = values
		}
	}
	return h
}

// ownHeaders are those of an answer that the API sets.
var ownHeaders = append([]string{"X-Request-Id", "Openai-Version"}, rateHeaders...)

// rateHeaders are those of the process that counts the request.
var rateHeaders = []string{"X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests",
	"X-Ratelimit-Reset-Requests"}

// droppedHeaders are those of a runner's answer that a client must not take from it: another
// address of the service, and leave for pages of other sites.
var droppedHeaders = []string{"Alt-Svc", "Access-Control-Allow-Origin",
	"Access-Control-Allow-Credentials", "Access-Control-Allow-Headers",
	"Access-Control-Allow-Methods", "Access-Control-Expose-Headers", "Access-Control-Max-Age",
	"Access-Control-Allow-Private-Network"}

// modify makes the header of the answer.
func (x *exchange) modify(answer *http.Response) error {
	h := answer.Header
	if x.forwarded {
		for _, name := range rateHeaders {
			if values := h[name]; values != nil {
				x.own[name] = values
			}
		}
	}
	for name := range x.own {
		delete(h, name)
	}
	for _, name := range droppedHeaders {
		delete(h, name)
	}
	maps.Copy(x.w.Header(), x.own) // an interim answer has removed them
	if x.forwarded {
		return nil
	}
	a := x.answer.place.Admission()
	x.describe(h, a.Waited, a.Why)
	h.Del(fallbackHeader)
	if a.Instead != "" {
		setPrintable(h, fallbackHeader, a.Instead)
	}
	return nil
}

// describe adds the headers that say what was decided.
func (x *exchange) describe(h http.Header, waited time.Duration, why plan.Reason) {
	h.Set("X-Queue-Wait-Ms", strconv.FormatInt(waited.Milliseconds(), 10))
	if !x.useCase.Implicit {
		setPrintable(h, "X-Tidefill-Use-Case", x.useCase.Name)
	}
	setPrintable(h, "X-Tidefill-Class", x.request.Flow.Class)
	setPrintable(h, "X-Tidefill-Target", x.request.Model)
	setPrintable(h, "X-Tidefill-Wait-Reason", cmp.Or(string(why), "none"))
}

// fallbackHeader names, in an answer, the pool whose fallback has given it.
const fallbackHeader = "X-Tidefill-Fallback"

func setPrintable(h http.Header, name, value string) {
	if !strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' }) {
		h.Set(name, value)
	}
}

// fail answers a request that has no answer of a runner.
func (x *exchange) fail(w http.ResponseWriter, r *http.Request, err error) {
	f := failureOf(err, x.request.Flow.Class)
	if f.status >= http.StatusInternalServerError {
		x.proxy.log.WarnContext(r.Context(), "interactive request failed",
			"request_id", x.own.Get("X-Request-Id"), "tenant", x.tenant, "status", f.status,
			"reason", f.reason, "error", err)
	}
	maps.Copy(w.Header(), x.own)
	if noPlace := (*Refused)(nil); errors.As(err, &noPlace) && f.status != http.StatusNotFound {
		x.describe(w.Header(), noPlace.Waited, noPlace.Why)
	}
	x.refuse(w, f)
}

// retryAfter reads the time for which a runner wants no requests.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if value == "" {
		return 0
	}
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		if !(seconds > 0) {
			return 0
		}
		return time.Duration(math.Min(seconds, maxRetryAfter.Seconds()) * float64(time.Second))
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(0, at.Sub(now)), maxRetryAfter)
	}
	return 0
}

// maxRetryAfter limits a runner's wish, as for lines.
const maxRetryAfter = 24 * time.Hour
