package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Client calls a daemon over HTTP, without an SDK.
type Client struct {
	URL, Key string
	HTTP     *http.Client
}

// Client returns a client with connections of its own and the first key.
func (d *Daemon) Client() *Client {
	first, _, _ := strings.Cut(d.Keys, ",")
	return &Client{URL: d.URL, Key: first[strings.LastIndexByte(first, '=')+1:],
		HTTP: &http.Client{Transport: Described{&http.Transport{}}, Timeout: time.Minute}}
}

// Answer is a complete answer.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// APIError is an error in OpenAI's envelope.
type APIError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

// APIError decodes the envelope. It fails the test if a key is missing.
func (a Answer) APIError(t testing.TB) APIError {
	t.Helper()
	var envelope map[string]map[string]json.RawMessage
	if err := json.Unmarshal(a.Body, &envelope); err != nil {
		t.Fatalf("status %d with a body that is not an error envelope: %.300s", a.Status, a.Body)
	}
	for _, key := range []string{"message", "type", "param", "code"} {
		if _, ok := envelope["error"][key]; !ok {
			t.Fatalf("the error has no %q: %.300s", key, a.Body)
		}
	}
	if kind := a.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
		t.Errorf("the error has the content type %q", kind)
	}
	if a.Header.Get("X-Request-Id") == "" {
		t.Error("the error has no request id")
	}
	var decoded struct{ Error APIError }
	if err := json.Unmarshal(a.Body, &decoded); err != nil {
		t.Fatalf("envelope: %v: %.300s", err, a.Body)
	}
	return decoded.Error
}

// Do sends a request and reads the complete answer.
func (c *Client) Do(
	method, path, contentType string, body io.Reader, header ...string,
) (Answer, error) {
	request, err := http.NewRequest(method, c.URL+path, body)
	if err != nil {
		return Answer{}, err
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	if c.Key != "" {
		request.Header.Set("Authorization", "Bearer "+c.Key)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	return Answer{response.StatusCode, response.Header, read}, err
}

// statusError is an answer without success.
type statusError struct {
	what   string
	answer Answer
}

func (e statusError) Error() string {
	return fmt.Sprintf("%s: status %d: %.500s", e.what, e.answer.Status, e.answer.Body)
}

func (c *Client) json(
	method, path, contentType string, body io.Reader, into any, header ...string,
) error {
	answer, err := c.Do(method, path, contentType, body, header...)
	if err != nil {
		return err
	}
	if answer.Status != http.StatusOK {
		return statusError{method + " " + path, answer}
	}
	return json.Unmarshal(answer.Body, into)
}

// Form returns a multipart body with fields and one file.
func Form(fields [][2]string, name string, content []byte) (contentType string, body []byte) {
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf)
	for _, field := range fields {
		w.WriteField(field[0], field[1])
	}
	if name != "" {
		file, _ := w.CreateFormFile("file", name) // a buffer takes everything
		file.Write(content)
	}
	w.Close()
	return w.FormDataContentType(), buf.Bytes()
}

// File is a file object.
type File struct {
	ID        string
	Bytes     int64
	Filename  string
	Purpose   string
	Status    string
	CreatedAt int64  `json:"created_at"`
	ExpiresAt *int64 `json:"expires_at"`
}

// Upload stores a batch input file.
func (c *Client) Upload(content []byte, header ...string) (f File, err error) {
	contentType, body := Form([][2]string{{"purpose", "batch"}}, "input.jsonl", content)
	err = c.json("POST", "/v1/files", contentType, bytes.NewReader(body), &f, header...)
	return f, err
}

// Batch has the fields of a batch object that tests use.
type Batch struct {
	ID            string
	Status        string
	InputFileID   string  `json:"input_file_id"`
	OutputFileID  *string `json:"output_file_id"`
	ErrorFileID   *string `json:"error_file_id"`
	RequestCounts struct {
		Total, Completed, Failed int
	} `json:"request_counts"`
	Errors *struct {
		Data []BatchError
	}
	Tidefill struct {
		Waiting  *string
		Reason   *string
		Attempts int64
		InFlight int `json:"in_flight"`
		Failures []Failure
		Verdict  *string
		ETA      *int64
		Finish   *int64  `json:"predicted_finish"`
		Band     []int64 `json:"predicted_band"`
		Output   *struct {
			URL       string
			Delivered bool
			Error     *string
		}
	}
}

// Failure is a cause for which lines of a batch have failed.
type Failure struct {
	Count, Status        int
	Code, Sample, Runner string
}

// WaitsFor reports whether the batch waits for a reason with the code.
func (b Batch) WaitsFor(code string) bool {
	return b.Tidefill.Waiting != nil && strings.HasPrefix(*b.Tidefill.Waiting, code+": ")
}

// BatchError is an error in the input file.
type BatchError struct {
	Code, Message string
	Param         *string
	Line          *int
}

// Ended reports whether the batch is in a final state.
func (b Batch) Ended() bool {
	switch b.Status {
	case "completed", "failed", "expired", "cancelled":
		return true
	}
	return false
}

// CreateBatch creates a batch of chat completions; extensions is the tidefill object, or empty.
func (c *Client) CreateBatch(input, extensions string, header ...string) (b Batch, err error) {
	body := fmt.Sprintf(
		`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"`, input)
	if extensions != "" {
		body += `,"tidefill":` + extensions
	}
	err = c.json("POST", "/v1/batches", "application/json", strings.NewReader(body+"}"), &b,
		header...)
	return b, err
}

// Batch returns a batch.
func (c *Client) Batch(id string) (b Batch, err error) {
	err = c.json("GET", "/v1/batches/"+id, "", nil, &b)
	return b, err
}

// Content returns the content of a file.
func (c *Client) Content(id string) ([]byte, error) {
	answer, err := c.Do("GET", "/v1/files/"+id+"/content", "", nil)
	if err == nil && answer.Status != http.StatusOK {
		err = statusError{"content of " + id, answer}
	}
	return answer.Body, err
}

// Submit uploads content and creates a batch of it.
func (c *Client) Submit(t testing.TB, content []byte, extensions string) Batch {
	t.Helper()
	f, err := c.Upload(content)
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.CreateBatch(f.ID, extensions)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Await polls a batch until done returns true.
func (c *Client) Await(t testing.TB, id string, limit time.Duration, done func(Batch) bool) Batch {
	t.Helper()
	var b Batch
	var err error
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(
		20 * time.Millisecond) {
		if b, err = c.Batch(id); err == nil && done(b) {
			return b
		}
	}
	waiting := ""
	if b.Tidefill.Waiting != nil {
		waiting = *b.Tidefill.Waiting
	}
	t.Fatalf("after %v batch %s is %s, %+v, in flight %d, waiting %q, last error %v",
		limit, id, b.Status, b.RequestCounts, b.Tidefill.InFlight, waiting, err)
	return b
}

// AwaitEnd polls a batch until it has ended.
func (c *Client) AwaitEnd(t testing.TB, id string, limit time.Duration) Batch {
	t.Helper()
	return c.Await(t, id, limit, Batch.Ended)
}
