package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// UserRequest is a request that a user may send.
type UserRequest struct {
	Name, Method, Path string
	ContentType        string
	Body               []byte
}

// Objects are those that requests of UserRequests name.
type Objects struct {
	Ended, Running string // batches
	Input, Output  string // files of Ended
	Upload, Part   string
}

// UserRequests returns one request for each route that needs the store. Those that change something
// name Ended, which refuses to be changed, or make something new.
func UserRequests(o Objects) []UserRequest {
	form, file := Form([][2]string{{"purpose", "batch"}}, "in.jsonl",
		NewLines("new", "m", 3).Content)
	partForm, part := Form(nil, "data", []byte("x"))
	part = bytes.Replace(part, []byte(`name="file"`), []byte(`name="data"`), 1)
	const batches, files, uploads = "/v1/batches", "/v1/files", "/v1/uploads"
	get := func(name, path string) UserRequest {
		return UserRequest{Name: name, Method: http.MethodGet, Path: path}
	}
	post := func(name, path, body string) UserRequest {
		return UserRequest{name, http.MethodPost, path, "application/json", []byte(body)}
	}
	return []UserRequest{
		get("list batches", batches),
		get("get batch", batches+"/"+o.Running),
		get("results", batches+"/"+o.Running+"/results"),
		get("events", batches+"/"+o.Running+"/events"),
		post("create batch", batches, fmt.Sprintf(`{"input_file_id":%q,`+
			`"endpoint":"/v1/chat/completions","completion_window":"24h"}`, o.Input)),
		post("cancel batch", batches+"/"+o.Ended+"/cancel", ""),
		post("pause batch", batches+"/"+o.Ended+"/pause", ""),
		post("resume batch", batches+"/"+o.Ended+"/resume", ""),
		post("retry batch", batches+"/"+o.Ended+"/retry", ""),
		get("list files", files),
		get("get file", files+"/"+o.Input),
		get("content", files+"/"+o.Output+"/content"),
		{"upload", http.MethodPost, files, form, file},
		post("create upload", uploads, `{"filename":"in.jsonl","purpose":"batch",`+
			`"mime_type":"text/plain","bytes":10}`),
		{"add part", http.MethodPost, uploads + "/" + o.Upload + "/parts", partForm, part},
		post("complete upload", uploads+"/"+o.Upload+"/complete",
			fmt.Sprintf(`{"part_ids":[%q]}`, o.Part)),
	}
}

// CheckRefused sends all requests at once and fails the test unless each is answered 503 with
// Retry-After and OpenAI's envelope within the limit. It returns the longest time.
func (c *Client) CheckRefused(
	t testing.TB, limit time.Duration, requests []UserRequest,
) (slowest time.Duration) {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, r := range requests {
		all.Go(func() {
			began := time.Now()
			answer, err := c.Do(r.Method, r.Path, r.ContentType, bytes.NewReader(r.Body))
			took := time.Since(began)
			mu.Lock()
			defer mu.Unlock()
			slowest = max(slowest, took)
			if took > limit {
				t.Errorf("%s: was answered after %v, want at most %v", r.Name, took, limit)
			}
			if err != nil || answer.Status != http.StatusServiceUnavailable {
				t.Errorf("%s: got %v, %d %.300s, want 503", r.Name, err, answer.Status, answer.Body)
				return
			}
			if n, err := strconv.Atoi(answer.Header.Get("Retry-After")); err != nil || n < 1 {
				t.Errorf("%s: Retry-After is %q", r.Name, answer.Header.Get("Retry-After"))
			}
			e := answer.APIError(t)
			if e.Type != "server_error" || strings.Contains(e.Message, "127.0.0.1") {
				t.Errorf("%s: got the error %+v", r.Name, e)
			}
		})
	}
	all.Wait()
	return slowest
}

// AwaitAnswers waits until no request is refused because of an outage.
func (c *Client) AwaitAnswers(t testing.TB, limit time.Duration, requests []UserRequest) {
	t.Helper()
	for _, r := range requests {
		if strings.HasSuffix(r.Path, "/events") { // it has no end
			continue
		}
		await(t, limit, r.Name+" is answered again", func() bool {
			answer, err := c.Do(r.Method, r.Path, r.ContentType, bytes.NewReader(r.Body))
			return err == nil && answer.Status < http.StatusInternalServerError
		})
	}
}

// HalfUpload is an upload whose body is not complete.
type HalfUpload struct {
	rest   func()
	answer chan Answer
}

// BeginUpload sends the first half of an upload. It ends with the status 0 if the connection does.
func (c *Client) BeginUpload(content []byte) *HalfUpload {
	contentType, body := Form([][2]string{{"purpose", "batch"}}, "half.jsonl", content)
	from, to := io.Pipe()
	h := &HalfUpload{answer: make(chan Answer, 1), rest: func() {
		to.Write(body[len(body)/2:]) // fails if the answer came before
		to.Close()
	}}
	go func() {
		answer, _ := c.Do(http.MethodPost, "/v1/files", contentType, from)
		from.CloseWithError(io.ErrClosedPipe)
		h.answer <- answer
	}()
	to.Write(body[:len(body)/2])
	return h
}

// End sends the rest, and returns where the answer comes.
func (h *HalfUpload) End() <-chan Answer {
	go h.rest()
	return h.answer
}

// CheckFiles fails the test unless every file of the user can be read completely.
func (c *Client) CheckFiles(t testing.TB) {
	t.Helper()
	var list struct{ Data []File }
	if err := c.json(http.MethodGet, "/v1/files?limit=1000", "", nil, &list); err != nil {
		t.Fatal(err)
	}
	for _, f := range list.Data {
		if content, err := c.Content(f.ID); err != nil || int64(len(content)) != f.Bytes {
			t.Errorf("file %s of %d bytes: read %d, %v", f.ID, f.Bytes, len(content), err)
		}
	}
}

// PoolReason returns why the pool of a daemon starts no more lines, as its console shows.
func (d *Daemon) PoolReason(t testing.TB) string {
	t.Helper()
	var pools struct {
		Data []struct{ Decision struct{ Reason string } }
	}
	d.admin(t, "/admin/pools", &pools)
	if len(pools.Data) != 1 {
		return fmt.Sprintf("%d pools", len(pools.Data))
	}
	return pools.Data[0].Decision.Reason
}

// metric returns the value of a series of the daemon's metrics page.
func (d *Daemon) metric(t testing.TB, series string) float64 {
	t.Helper()
	for line := range strings.Lines(metricsOf(t, d.Admin)) {
		if value, is := strings.CutPrefix(line, series+" "); is {
			number, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return number
		}
	}
	t.Fatalf("the metrics page has no %s", series)
	return 0
}
