package api

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/httpserver"
	"github.com/tidefill/tidefill/store"
)

func ringOf(t *testing.T, list string) *Keyring {
	t.Helper()
	ring, err := ParseKeys(list)
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

func TestRevokedKeys(t *testing.T) {
	s := newService(t, func(_ *Config, d *Deps) { d.Keys = ringOf(t, "team=leaked,team=kept") })
	s.get("/v1/files", "Authorization", "Bearer leaked").ok()
	if added, revoked := s.server.SetKeys(ringOf(t, "team=kept,team=new")); added != 1 ||
		revoked != 1 {
		t.Errorf("got %d added, %d revoked", added, revoked)
	}
	s.get("/v1/files", "Authorization", "Bearer leaked").refused(401, "", "invalid_api_key")
	s.get("/v1/files", "Authorization", "Bearer kept").ok()
	s.get("/v1/files", "Authorization", "Bearer new").ok()
	if added, revoked := s.server.SetKeys(ringOf(t, "other=kept,team=new")); added != 1 ||
		revoked != 1 {
		t.Errorf("a key of another tenant: got %d added, %d revoked", added, revoked)
	}
}

// Answers of which nothing is sent when the key is revoked must be refused, not cut off.
func TestRevokedKeysDuringShortAnswers(t *testing.T) {
	s := newService(t, func(_ *Config, d *Deps) {
		d.Keys = ringOf(t, "default=leaked,default=kept")
	})
	s.server.route("/listing", methods{"GET": func(w http.ResponseWriter, _ *http.Request) error {
		list := newListWriter(w, func(id string) string { return id })
		if err := list.send("first"); err != nil {
			return err
		}
		s.server.SetKeys(ringOf(t, "default=kept"))
		return list.end(false)
	}})
	s.get("/listing", "Authorization", "Bearer leaked").refused(401, "", "invalid_api_key")
	s.server.SetKeys(ringOf(t, "default=leaked"))
	s.server.route("/object", methods{"GET": func(w http.ResponseWriter, _ *http.Request) error {
		s.server.SetKeys(ringOf(t, "default=kept"))
		return writeJSON(w, "answer")
	}})
	s.get("/object", "Authorization", "Bearer leaked").refused(401, "", "invalid_api_key")
}

func TestRevokedKeysEndRequests(t *testing.T) {
	s := newService(t, func(_ *Config, d *Deps) {
		d.Keys = ringOf(t, "default=leaked,default=kept")
	})
	s.bound(httpserver.DefaultConfig())
	form := "--x\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nassistants\r\n" +
		"--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n" +
		strings.Repeat("content ", 100)
	half := func(key string) *bufio.Reader {
		head := fmt.Sprintf(
			"POST /v1/files HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: "+
				"multipart/form-data; boundary=x\r\nContent-Length: 100000\r\n\r\n", key)
		return bufio.NewReader(s.raw(head, []byte(form)))
	}
	leaked := half("leaked")
	half("kept")
	s.eventually("both uploads to begin", func() bool { return len(s.stored()) == 2 })

	started, ended, revoked := make(chan struct{}, 1), make(chan error, 1), make(chan struct{})
	s.server.route("/endless", methods{"GET": func(w http.ResponseWriter, _ *http.Request) error {
		for {
			if _, err := w.Write(make([]byte, 1000)); err != nil {
				ended <- err
				return err
			}
			http.NewResponseController(w).Flush()
			select {
			case started <- struct{}{}:
			default:
			}
			<-revoked
		}
	}})
	s.raw("GET /endless HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer leaked\r\n\r\n", nil)
	<-started

	s.server.SetKeys(ringOf(t, "default=kept"))
	close(revoked)
	answer, err := http.ReadResponse(leaked, nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(answer.Body); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("the upload of the revoked key got %d: %s", answer.StatusCode, body)
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the answer to the revoked key continues")
	}
	s.eventually("one upload to go on", func() bool { return len(s.stored()) == 1 })
}

func TestRevokedKeysEndStreams(t *testing.T) {
	s := newService(t, func(_ *Config, d *Deps) {
		d.Keys = ringOf(t, "default=leaked,default=kept")
	})
	input := s.postFormAs("kept", "/v1/files", field{name: "purpose", value: "batch"},
		field{name: "file", filename: "in.jsonl", value: line("a")})
	id := s.reading(input, store.InProgress).ID
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/v1/batches/"+id+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer leaked")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	s.server.SetKeys(ringOf(t, "default=kept"))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		io.Copy(io.Discard, answer.Body)
	}()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Error("the stream of the revoked key continues")
	}
}

// postFormAs returns the id of the object that a form creates.
func (s *service) postFormAs(key, path string, fields ...field) string {
	s.t.Helper()
	body, contentType := encodeForm(s.t, fields...)
	return s.do("POST", path, body, "Content-Type", contentType, "Authorization",
		"Bearer "+key).ok()["id"].(string)
}
