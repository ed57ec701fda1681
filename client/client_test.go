package client_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidefill/tidefill/client"
)

func newClient(t *testing.T, handler http.HandlerFunc) *client.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	// as base URLs of SDKs are written
	c, err := client.New(server.URL+"/v1/", client.Options{APIKey: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestServersAreURLs(t *testing.T) {
	for _, server := range []string{"", "gpu-1", "gpu-1:8080", "ftp://gpu-1", "http://"} {
		if _, err := client.New(server, client.Options{}); err == nil {
			t.Errorf("%q passes for a server", server)
		}
	}
}

func TestPlainRequestToTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "https://")
	c, err := client.New("http://"+address, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Batch(t.Context(), "b"); err == nil || !strings.Contains(err.Error(),
		"write https://"+address) {
		t.Errorf("got %v", err)
	}
}

func TestOptionsAreCheckedWithoutInputs(t *testing.T) {
	for param, refused := range map[string]bool{"input_file_id": false,
		"tidefill.input_file_ids[0]": false, "tidefill.deadline": true, "": true} {
		for n := range 3 {
			c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("dry_run") != "true" {
					t.Errorf("the request %s creates a batch", r.URL)
				}
				w.WriteHeader(http.StatusBadRequest)
				io.WriteString(w, `{"error":{"message":"Bad.","param":"`+param+`"}}`)
			})
			err := c.CheckOptions(t.Context(), client.BatchRequest{}, n+1)
			if refused != (err != nil) {
				t.Errorf("a fault of %q, %d inputs: %v", param, n+1, err)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	tests := []struct {
		name      string
		status    int
		body      string
		want      []string
		temporary bool
	}{
		{
			"envelope", 400, `{"error":{"message":"Bad.","type":"invalid_request_error","param":"limit","code":"invalid_value"}}`,
			[]string{"Bad.", "param limit", "code invalid_value", "request req_1", "status 400"},
			false},
		{
			"nulls", 404, `{"error":{"message":"No such Batch object: b","type":"invalid_request_error","param":null,"code":null}}`,
			[]string{"No such Batch object: b (request req_1, status 404)"}, false},
		{"a proxy's page", 502, "<html>bad gateway</html>",
			[]string{"/v1/batches/b answered 502 Bad Gateway", "<html>"}, true},
		{"nothing", 503, "", []string{"status 503"}, true},
		{"too fast", 429, `{"error":{"message":"Slow down."}}`, []string{"Slow down."}, true},
		{"no key", 401, `{"error":{"message":"Wrong key."}}`, []string{"Wrong key."}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := newClient(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("x-request-id", "req_1")
				w.WriteHeader(test.status)
				io.WriteString(w, test.body)
			})
			_, err := c.Batch(t.Context(), "b")
			if refused := new(client.Error); !errors.As(err, &refused) ||
				refused.Status != test.status {
				t.Fatalf("got %v, want a refusal with status %d", err, test.status)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("message lacks %q: %v", want, err)
				}
			}
			if got := client.Temporary(err); got != test.temporary {
				t.Errorf("Temporary is %v, want %v", got, test.temporary)
			}
		})
	}
}

func TestUploadStreamsAForm(t *testing.T) {
	const content = "{}\n{}\n"
	for _, size := range []int64{int64(len(content)), -1} {
		c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
			if known := r.ContentLength >= 0; known != (size >= 0) {
				t.Errorf("content length %d for a file of size %d", r.ContentLength, size)
			}
			if got := r.Header.Get("Authorization"); got != "Bearer secret" {
				t.Errorf("Authorization is %q", got)
			}
			file, header, err := r.FormFile("file")
			if err != nil {
				t.Error(err)
				return
			}
			if got, _ := io.ReadAll(file); string(got) != content ||
				header.Filename != `a "b".jsonl` || r.FormValue("purpose") != "batch" {
				t.Errorf("got %q named %q for %q", got, header.Filename, r.FormValue("purpose"))
			}
			io.WriteString(w, `{"id":"file-1"}`)
		})
		file, err := c.Upload(t.Context(), `a "b".jsonl`, strings.NewReader(content), size)
		if err != nil || file.ID != "file-1" {
			t.Errorf("Upload: %v, %v", file, err)
		}
	}
}
