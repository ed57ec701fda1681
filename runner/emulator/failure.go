package emulator

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/tidefill/tidefill/runner"
)

// failure is a response that does not answer the request.
type failure struct {
	status     int
	body       runner.Error
	retryAfter time.Duration
	raw        *rawBody // replaces the body; nil: it does not
}

// rawBody is a body that is no error of the API.
type rawBody struct{ contentType, body string }

func (f *failure) Error() string { return f.body.Message }

func (f *failure) write(w http.ResponseWriter) {
	if f.raw != nil {
		writeRaw(w, f.status, *f.raw)
		return
	}
	if f.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(f.retryAfter.Seconds()))))
	}
	writeJSON(w, f.status, runner.ErrorBody{Error: f.body})
}

// badRequest refers to a parameter; an empty one means the request.
func badRequest(param, format string, args ...any) *failure {
	f := &failure{status: http.StatusBadRequest, body: runner.Error{
		Message: fmt.Sprintf(format, args...), Type: "invalid_request_error", Code: "invalid_value",
	}}
	if param != "" {
		f.body.Param = &param
	}
	return f
}

func notFound(model string) *failure {
	param := "model"
	return &failure{status: http.StatusNotFound, body: runner.Error{
		Message: fmt.Sprintf("The model `%s` does not exist.", model),
		Type:    "invalid_request_error", Param: &param, Code: "model_not_found",
	}}
}

func tooLong(tokens, limit int) *failure {
	f := badRequest(
		"", "This model's maximum context length is %d tokens. However, your prompt has %d tokens.",
		limit, tokens)
	f.body.Code = "context_length_exceeded"
	return f
}

func shed(status int, code, message string, retryAfter time.Duration) *failure {
	return &failure{status: status, retryAfter: retryAfter, body: runner.Error{Message: message,
		Type: "server_error", Code: code}}
}

// denied is a refusal of the client and not of the request.
func denied(status int, code, message string) *failure {
	return &failure{status: status, body: runner.Error{Message: message,
		Type: "invalid_request_error", Code: code}}
}

func queueFull(depth, limit int, meanWaitMs float64) *failure {
	wait := time.Duration(max(1, math.Ceil(meanWaitMs/1000))) * time.Second
	f := shed(http.StatusServiceUnavailable, runner.CodeQueueFull,
		fmt.Sprintf("Queue depth %d/%d, retry in %d seconds", depth, limit, wait/time.Second), wait)
	f.body.QueueDepth, f.body.AvgWaitMs = &depth, &meanWaitMs
	return f
}

func rateLimited(tenant string, limit int, now, reset time.Time) *failure {
	remaining, resetAt := 0, reset.Unix()
	f := shed(http.StatusTooManyRequests, runner.CodeRateLimited,
		fmt.Sprintf("Tenant %s exceeded %d req/min", tenant, limit), reset.Sub(now))
	f.body.Type = "rate_limit_error"
	f.body.Limit, f.body.Remaining, f.body.ResetAt = &limit, &remaining, &resetAt
	return f
}

func notServing() *failure {
	return shed(http.StatusServiceUnavailable, "not_serving",
		"The runner is starting up or shutting down.", time.Second)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	write(w, status, mustJSON(v))
}

func write(w http.ResponseWriter, status int, body []byte) bool {
	return writeAs(w, status, "application/json", body)
}

func writeRaw(w http.ResponseWriter, status int, b rawBody) {
	writeAs(w, status, b.contentType, []byte(b.body))
}

func writeAs(w http.ResponseWriter, status int, contentType string, body []byte) bool {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, err := w.Write(body) //nolint:gosec // JSON, or a page without anything of the request
	return err == nil
}
