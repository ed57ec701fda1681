package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/httpserver"
	"github.com/tidefill/tidefill/store/disk"
	"github.com/tidefill/tidefill/store/sqlite"
)

// clock is a clock that tests advance.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// service is the API with the embedded store, on loopback.
type service struct {
	t      testing.TB
	server *Server
	url    string
	dir    string // of the store
	meta   *sqlite.DB
	blobs  Blobs
	clock  *clock
	logs   *bytes.Buffer // what was logged at Warn and above; read it after the requests
}

// newService starts the API; edit changes its configuration and dependencies.
func newService(t testing.TB, edit ...func(*Config, *Deps)) *service {
	t.Helper()
	clock := &clock{at: time.Unix(1_790_000_000, 0)}
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "meta.db"),
		sqlite.Options{Now: clock.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	dir := t.TempDir()
	files, err := disk.Open(dir, disk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { files.Close() })
	s := &service{t: t, dir: dir, meta: db, blobs: files.Blobs(), clock: clock,
		logs: &bytes.Buffer{}}
	config := DefaultConfig()
	deps := Deps{
		Store: Store{Metadata: db, Progress: db, Blobs: s.blobs, Journals: files.Journals(),
			Ledger: db},
		Now:    clock.now,
		Logger: slog.New(slog.NewTextHandler(s.logs, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	for _, e := range edit {
		e(&config, &deps)
	}
	if s.server, err = New(config, deps); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s.server.Handler())
	t.Cleanup(web.Close)
	s.url = web.URL
	return s
}

// bound serves the API with the limits of package httpserver from now on.
func (s *service) bound(config httpserver.Config) {
	s.t.Helper()
	web, err := httpserver.New(config, s.server.Handler(), httpserver.Options{HalfClose: true})
	if err != nil {
		s.t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener) }()
	s.t.Cleanup(func() {
		web.Close()
		if err := <-ended; err != nil {
			s.t.Errorf("serve: %v", err)
		}
	})
	s.url = "http://" + listener.Addr().String()
}

// of returns the service for another test.
func (s *service) of(t testing.TB) *service {
	other := *s
	other.t = t
	return &other
}

// answer is a complete answer.
type answer struct {
	t      testing.TB
	status int
	header http.Header
	body   string
}

// do sends a request; header is pairs of names and values.
func (s *service) do(method, path string, body io.Reader, header ...string) answer {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	read, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{s.t, resp.StatusCode, resp.Header, string(read)}
}

func (s *service) get(path string, header ...string) answer {
	s.t.Helper()
	return s.do("GET", path, nil, header...)
}

func (s *service) post(path, body string, header ...string) answer {
	s.t.Helper()
	return s.do("POST", path, strings.NewReader(body),
		append([]string{"Content-Type", "application/json"}, header...)...)
}

// ok fails the test unless the answer is 200, and returns its object.
func (a answer) ok() map[string]any {
	a.t.Helper()
	if a.status != http.StatusOK {
		a.t.Fatalf("got status %d, want 200: %s", a.status, a.body)
	}
	return a.object()
}

func (a answer) object() map[string]any {
	a.t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(a.body), &o); err != nil {
		a.t.Fatalf("answer %q: %v", a.body, err)
	}
	return o
}

// refused fails the test unless the answer is an error in OpenAI's format with this status, and a
// message that contains each of words.
func (a answer) refused(status int, param, code string, words ...string) {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("got status %d, want %d: %s", a.status, status, a.body)
	}
	if got := a.header.Get("Content-Type"); got != "application/json" {
		a.t.Errorf("got Content-Type %q, want application/json", got)
	}
	if a.header.Get("X-Request-Id") == "" {
		a.t.Error("the answer has no x-request-id")
	}
	e, ok := a.object()["error"].(map[string]any)
	if !ok || len(e) != 4 {
		a.t.Fatalf("got %s, want an envelope with four keys", a.body)
	}
	wantType := invalidRequest
	if status >= 500 {
		wantType = serverError
	}
	null := func(v any) any {
		if v == "" {
			return nil
		}
		return v
	}
	if e["type"] != wantType || e["param"] != null(param) || e["code"] != null(code) {
		a.t.Errorf("got type %v, param %v, code %v; want %v, %v, %v: %s",
			e["type"], e["param"], e["code"], wantType, null(param), null(code), a.body)
	}
	for _, w := range words {
		if !strings.Contains(e["message"].(string), w) {
			a.t.Errorf("got message %q, want one with %q", e["message"], w)
		}
	}
}

// field is a part of a form; with a filename it is a file.
type field struct{ name, filename, value string }

// form encodes fields in their order.
func encodeForm(t testing.TB, fields ...field) (body *bytes.Buffer, contentType string) {
	t.Helper()
	body = &bytes.Buffer{}
	w := multipart.NewWriter(body)
	for _, f := range fields {
		h := textproto.MIMEHeader{}
		disposition := fmt.Sprintf(`form-data; name="%s"`, f.name)
		if f.filename != "" {
			disposition += fmt.Sprintf(`; filename="%s"`, strings.ReplaceAll(f.filename, `"`,
				"%22"))
		}
		h.Set("Content-Disposition", disposition)
		part, err := w.CreatePart(h)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(part, f.value)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return body, w.FormDataContentType()
}

func (s *service) postForm(path string, fields ...field) answer {
	s.t.Helper()
	body, contentType := encodeForm(s.t, fields...)
	return s.do("POST", path, body, "Content-Type", contentType)
}

// upload uploads a batch input file and returns its id.
func (s *service) upload(content string) string {
	s.t.Helper()
	return s.postForm("/v1/files", field{name: "purpose", value: "batch"},
		field{name: "file", filename: "in.jsonl", value: content}).ok()["id"].(string)
}

// line returns a valid batch line.
func line(id string) string {
	return fmt.Sprintf(
		`{"custom_id":%q,"method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[{"role":"user","content":"hi"}]}}`+"\n", id)
}

// stored returns the blobs on the disk, including unfinished ones.
func (s *service) stored() []string {
	s.t.Helper()
	var names []string
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err == nil && d.Type().IsRegular() && d.Name() != "lock" && d.Name() != "gate" {
			name, _ := filepath.Rel(s.dir, path)
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return names
}

// nothingStored waits until nothing is left on the disk.
func (s *service) nothingStored() {
	s.t.Helper()
	s.eventually("nothing to be stored", func() bool { return len(s.stored()) == 0 })
}

// eventually waits until is returns true because of another goroutine.
func (s *service) eventually(what string, is func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Second)
	defer cancel()
	for !is() {
		select {
		case <-ctx.Done():
			s.t.Fatalf("timed out waiting for %s; stored: %v", what, s.stored())
		case <-time.After(2 * time.Millisecond):
		}
	}
}
