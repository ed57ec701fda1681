package api

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/batchfile"
	"github.com/tidefill/tidefill/internal/httpserver"
	"github.com/tidefill/tidefill/store"
)

func TestUploadKeepsBytesInEveryOrderOfParts(t *testing.T) {
	purpose := field{name: "purpose", value: "batch"}
	file := field{name: "file", filename: "in.jsonl", value: line("a") + line("b")}
	anchor := field{name: "expires_after[anchor]", value: "created_at"}
	seconds := field{name: "expires_after[seconds]", value: "3600"}
	complete := field{name: "expires_after", value: `{"anchor":"created_at","seconds":3600}`}
	other := field{name: "purpose2", value: strings.Repeat("x", 100_000)}
	for name, fields := range map[string][]field{
		"purpose first":        {purpose, file, anchor, seconds},
		"alphabetical":         {anchor, seconds, file, purpose},
		"file first":           {file, purpose, complete},
		"unknown fields, late": {other, file, other, seconds, purpose, anchor},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			got := s.postForm("/v1/files", fields...).ok()
			created := float64(s.clock.now().Unix())
			for key, want := range map[string]any{
				"object": "file", "bytes": float64(len(file.value)), "filename": "in.jsonl",
				"purpose": "batch",
				"status":  "processed", "created_at": created, "expires_at": created + 3600,
				"status_details": nil,
			} {
				if v, there := got[key]; !there || v != want {
					t.Errorf("got %s %v, want %v", key, v, want)
				}
			}
			id := got["id"].(string)
			if content := s.get("/v1/files/"+id+"/content", "Accept",
				"application/binary"); content.body != file.value {
				t.Errorf("got content %q, want %q", content.body, file.value)
			}
			f, err := s.meta.File(t.Context(), DefaultTenant, id)
			if err != nil {
				t.Fatal(err)
			}
			if f.Summary == nil || f.Summary.Lines != 2 || f.Summary.FaultCount != 0 {
				t.Errorf("got summary %+v, want 2 lines without faults", f.Summary)
			}
			blob, err := s.blobs.Open(t.Context(), f.IndexKey)
			if err != nil {
				t.Fatal(err)
			}
			defer blob.Close()
			index, err := batchfile.OpenIndex(blob, blob.Size())
			if err != nil || index.Len() != 2 {
				t.Errorf("got index of %d lines, %v; want 2", index.Len(), err)
			}
			if stored := s.stored(); len(stored) != 2 {
				t.Errorf("got %v stored, want the file and its index", stored)
			}
		})
	}
}

func TestUploadDefaultRetention(t *testing.T) {
	s := newService(t)
	batch := s.postForm("/v1/files", field{name: "purpose", value: "batch"},
		field{name: "file", filename: "a.jsonl", value: line("a")}).ok()
	if life := batch["expires_at"].(float64) - batch["created_at"].(float64); life != 30*24*3600 {
		t.Errorf("got a retention of %v s for a batch file, want 30 days", life)
	}
	other := s.postForm("/v1/files", field{name: "purpose", value: "user_data"},
		field{name: "file", filename: "a.pdf", value: "%PDF"}).ok()
	if v, there := other["expires_at"]; !there || v != nil {
		t.Errorf("got expires_at %v for another file, want null", v)
	}
}

func TestUploadOfOtherPurposeIsNotScanned(t *testing.T) {
	for _, purpose := range []string{"assistants", "fine-tune", "vision", "user_data", "evals"} {
		for _, purposeLast := range []bool{false, true} {
			s := newService(t)
			fields := []field{{name: "purpose", value: purpose},
				{name: "file", filename: "a.jsonl", value: "not JSON\n"}}
			if purposeLast {
				fields[0], fields[1] = fields[1], fields[0]
			}
			s.postForm("/v1/files", fields...).ok()
			if stored := s.stored(); len(stored) != 1 {
				t.Errorf("%s: got %v stored, want one blob without an index", purpose, stored)
			}
		}
	}
}

func TestUploadWithInvalidLinesIsStored(t *testing.T) {
	s := newService(t)
	id := s.upload(line("a") + "garbage\n" + line("a"))
	f, err := s.meta.File(t.Context(), DefaultTenant, id)
	if err != nil {
		t.Fatal(err)
	}
	if f.Summary.FaultCount != 2 || f.Summary.Faults[0].Line != 2 || f.Summary.Faults[1].Line != 3 {
		t.Errorf("got faults %v, want one on line 2 and one on line 3", f.Summary.Faults)
	}
}

func TestUploadRefused(t *testing.T) {
	purpose := field{name: "purpose", value: "batch"}
	file := field{name: "file", filename: "in.jsonl", value: line("a")}
	large := field{name: "file", filename: "in.jsonl", value: strings.Repeat(line("a"), 1000)}
	limits := func(c *Config, _ *Deps) { c.MaxBatchFileBytes, c.MaxFileBytes = 2000, 4000 }
	anchor := func(v string) field { return field{name: "expires_after[anchor]", value: v} }
	seconds := func(v string) field { return field{name: "expires_after[seconds]", value: v} }
	for name, c := range map[string]struct {
		fields      []field
		status      int
		param, code string
		words       string
	}{
		"nothing": {nil, 400, "purpose", "missing_required_parameter", ""},
		"no purpose": {[]field{file}, 400, "purpose", "missing_required_parameter",
			"'purpose'"},
		"empty purpose": {[]field{{name: "purpose"}, file}, 400, "purpose",
			"missing_required_parameter", ""},
		"unknown purpose": {[]field{{name: "purpose", value: "fun"}, file}, 400, "purpose",
			"invalid_value", "fun"},
		"the server's purpose": {[]field{file, {name: "purpose", value: "batch_output"}}, 400,
			"purpose", "invalid_value", "batch_output"},
		"huge purpose": {[]field{{name: "purpose", value: strings.Repeat("b", 20_000)},
			file}, 400, "purpose", "invalid_value", "limit"},
		"no file": {[]field{purpose}, 400, "file", "missing_required_parameter",
			"'file'"},
		"file without a name": {[]field{purpose, {name: "file", value: line("a")}}, 400,
			"file", "invalid_value", "filename"},
		"file named by directory": {[]field{purpose, {name: "file", filename: "../", value: line(
			"a")}}, 400, "file", "invalid_value", ""},
		"two files": {[]field{purpose, file, file}, 400, "file", "invalid_value",
			"one by one"},
		"no JSONL": {[]field{purpose,
			{name: "file", filename: "in.json", value: line("a")}}, 400, "file", "invalid_value",
			"Must be .jsonl"},
		"no JSONL, purpose last": {[]field{{name: "file", filename: "in.txt", value: line("a")},
			purpose}, 400, "file", "invalid_value", "Must be .jsonl"},
		"too large": {[]field{purpose, large}, 413, "", "",
			"limit of 2000 bytes for batch"},
		"too large for anything": {[]field{large, purpose}, 413, "", "", "limit of 4000 bytes"},
		"too large, purpose last": {
			[]field{{name: "file", filename: "in.jsonl", value: large.value[:3000]}, purpose}, 413,
			"", "", "limit of 2000 bytes for batch"},
		"too large for its form": {[]field{purpose,
			{name: "file", filename: "in.jsonl", value: strings.Repeat("x", 2<<20)}}, 413, "", "",
			""},
		"expiry without anchor": {[]field{purpose, file, seconds("3600")}, 400,
			"expires_after.anchor", "missing_required_parameter", ""},
		"expiry without seconds": {[]field{purpose, file, anchor("created_at")}, 400,
			"expires_after.seconds", "missing_required_parameter", ""},
		"expiry of another anchor": {[]field{purpose, file, anchor("last_active_at"),
			seconds("3600")}, 400, "expires_after.anchor", "invalid_value", "created_at"},
		"expiry too short": {[]field{purpose, file, anchor("created_at"), seconds("3599")},
			400, "expires_after.seconds", "invalid_value", "3600"},
		"expiry too long": {[]field{purpose, file, anchor("created_at"),
			seconds("2592001")}, 400, "expires_after.seconds", "invalid_value", "2592000"},
		"expiry in words": {[]field{purpose, file, anchor("created_at"), seconds("soon")},
			400, "expires_after.seconds", "invalid_type", "integer"},
		"expiry with fractions": {[]field{purpose, file, anchor("created_at"),
			seconds("3600.5")}, 400, "expires_after.seconds", "invalid_type", "integer"},
		"expiry as garbage": {[]field{purpose, file, {name: "expires_after", value: "{"}},
			400, "expires_after", "invalid_value", ""},
		"expiry as a number": {[]field{purpose, file, {name: "expires_after", value: "3600"}},
			400, "expires_after", "invalid_type", "object"},
		"expiry with more": {[]field{purpose, file,
			{name: "expires_after", value: `{"anchor":"created_at","seconds":3600,"x":1}`}}, 400,
			"expires_after.x", "unknown_parameter", ""},
		"too many fields": {append(make([]field, 101), purpose, file), 400, "", "", "100"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, limits)
			s.postForm("/v1/files", c.fields...).refused(c.status, c.param, c.code, c.words)
			s.nothingStored()
			if listed := s.get("/v1/files").ok()["data"].([]any); len(listed) > 0 {
				t.Errorf("got %v listed, want nothing", listed)
			}
		})
	}
}

func TestUploadOfBrokenForm(t *testing.T) {
	body, contentType := encodeForm(t,
		field{name: "file", filename: "in.jsonl", value: strings.Repeat(line("a"), 5000)},
		field{name: "purpose", value: "batch"})
	complete := body.String()
	for name, c := range map[string]struct{ contentType, body string }{
		"no content type": {"", complete},
		"JSON":            {"application/json", `{"purpose":"batch"}`},
		"no boundary":     {"multipart/form-data", complete},
		"endless boundary": {"multipart/form-data; boundary=" + strings.Repeat("b", 71),
			complete},
		"wrong boundary":      {"multipart/form-data; boundary=other", complete},
		"empty":               {contentType, ""},
		"garbage":             {contentType, strings.Repeat("garbage\r\n", 10_000)},
		"no closing boundary": {contentType, strings.TrimRight(complete, "-\r\n")},
		"cut in the file":     {contentType, complete[:len(complete)/2]},
		"cut in a header":     {contentType, complete[:80]},
		"huge header": {contentType, strings.Replace(complete, "Content-Disposition",
			"X-A: "+strings.Repeat("a", 20<<20)+"\r\nContent-Disposition", 1)},
		"many headers": {contentType,
			strings.Replace(complete, "Content-Disposition", strings.Repeat(
				"X-A: a\r\n", 20_000)+"Content-Disposition", 1)},
		"broken header": {contentType, strings.Replace(complete, "Content-Disposition:",
			"Content-Disposition", 1)},
		"another multipart": {strings.Replace(contentType, "form-data", "mixed", 1), complete},
	} {
		for _, chunked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, chunked %v", name, chunked), func(t *testing.T) {
				t.Parallel()
				s := newService(t)
				var sent io.Reader = strings.NewReader(c.body)
				if chunked {
					sent = io.MultiReader(sent)
				}
				header := []string{"Content-Type", c.contentType}
				if c.contentType == "" {
					header = nil
				}
				s.do("POST", "/v1/files", sent, header...).refused(400, "", "")
				s.nothingStored()
			})
		}
	}
}

// TestUploadForms sends forms as clients other than the SDKs write them.
func TestUploadForms(t *testing.T) {
	const purpose = "Content-Disposition: form-data; name=purpose\r\n\r\nuser_data"
	const file = "Content-Disposition: form-data; name=file; filename=a\r\n"
	const end = "\r\n--b\r\n" + purpose + "\r\n--b--"
	s := newService(t)
	for name, c := range map[string]struct{ body, want string }{
		"plain":       {"--b\r\n" + file + "\r\nx" + end + "\r\n", "x"},
		"no line end": {"--b\r\n" + file + "\r\nx" + end, "x"},
		"text around it": {"before\r\n\r\n--b\r\n" + file + "\r\nx" + end +
			"\r\nafter", "x"},
		"padding":                         {"--b \t\r\n" + file + "\r\nx" + end + "  ", "x"},
		"longer boundary":                 {"--b\r\n" + file + "\r\nx\r\n--bc" + end, "x\r\n--bc"},
		"empty file":                      {"--b\r\n" + file + "\r\n" + end, ""},
		"empty file without its line end": {"--b\r\n" + file + end, ""},
		"parts that are no fields": {"--b\r\nContent-Disposition: attachment; name=file\r\n\r\n" +
			"y\r\n--b\r\n\r\nz\r\n--b\r\n" + file + "\r\nx" + end, "x"},
		"long header": {"--b\r\nX: " + strings.Repeat("x", maxPartHeader-200) + "\r\n" + file +
			"\r\nx" + end, "x"},
	} {
		send := func(body string) answer {
			return s.do("POST", "/v1/files", io.MultiReader(strings.NewReader(body)),
				"Content-Type", "multipart/form-data; boundary=b")
		}
		id := send(c.body).ok()["id"].(string)
		if got := s.get("/v1/files/" + id + "/content").body; got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
		s.do("DELETE", "/v1/files/"+id, nil).ok()
		// A form that ends before its closing boundary is refused, wherever it ends.
		closing := strings.LastIndex(c.body, "--b--") + len("--b--")
		for cut := closing - 1; cut >= 0; cut -= 1 + cut/300 {
			send(c.body[:cut]).refused(400, "", "", "closing boundary")
		}
		s.nothingStored()
	}
}

func TestUploadOfLongPartHeader(t *testing.T) {
	s := newService(t)
	body := "--b\r\nX: " + strings.Repeat("x", 2*maxPartHeader) + "\r\n"
	for range 2 { // the first part and a later one
		s.do("POST", "/v1/files", strings.NewReader(body), "Content-Type",
			"multipart/form-data; boundary=b").refused(400, "", "", "16384 bytes")
		body = "--b\r\nContent-Disposition: form-data; name=purpose\r\n\r\nbatch\r\n" + body
	}
	s.nothingStored()
}

// raw sends the bytes of a request and returns the connection.
func (s *service) raw(head string, body []byte) net.Conn {
	s.t.Helper()
	conn, err := new(net.Dialer).DialContext(s.t.Context(), "tcp", strings.TrimPrefix(s.url,
		"http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	if _, err := conn.Write(append([]byte(head), body...)); err != nil {
		s.t.Fatal(err)
	}
	return conn
}

func TestUploadOfDisconnectedClientLeavesNothing(t *testing.T) {
	body, contentType := encodeForm(t, field{name: "purpose", value: "batch"},
		field{name: "file", filename: "in.jsonl", value: strings.Repeat(line("a"), 20_000)})
	half := body.Bytes()[:body.Len()/2]
	for name, c := range map[string]struct {
		head string
		body []byte
	}{
		"with length": {fmt.Sprintf("Content-Length: %d\r\n\r\n", body.Len()), half},
		"chunked": {"Transfer-Encoding: chunked\r\n\r\n",
			fmt.Appendf(nil, "%x\r\n%s\r\n", len(half), half)},
		"in a chunk": {"Transfer-Encoding: chunked\r\n\r\n",
			fmt.Appendf(nil, "%x\r\n%s", body.Len(), half)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			conn := s.raw(
				"POST /v1/files HTTP/1.1\r\nHost: x\r\nContent-Type: "+contentType+"\r\n"+c.head,
				c.body)
			s.eventually("the upload to begin", func() bool { return len(s.stored()) > 0 })
			conn.Close()
			s.nothingStored()
			if listed := s.get("/v1/files").ok()["data"].([]any); len(listed) > 0 {
				t.Errorf("got %v listed, want nothing", listed)
			}
		})
	}
}

func TestStalledUploadIsAborted(t *testing.T) {
	s := newService(t)
	s.bound(httpserver.Config{Tuning: httpserver.Tuning{MinRate: 1000,
		Grace: 50 * time.Millisecond, BodyTimeout: time.Minute}})
	body, contentType := encodeForm(t, field{name: "purpose", value: "batch"},
		field{name: "file", filename: "in.jsonl", value: strings.Repeat(line("a"), 1000)})
	conn := s.raw(
		fmt.Sprintf(
			"POST /v1/files HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n",
			contentType, body.Len()),
		body.Bytes()[:body.Len()/2])
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusRequestTimeout {
		t.Errorf("got status %d, want 408", resp.StatusCode)
	}
	s.nothingStored()
}

func TestUploadOnFullDisk(t *testing.T) {
	s := newService(t, func(_ *Config, d *Deps) { d.Blobs = fullDisk{d.Blobs, 100_000} })
	value := strings.Repeat(line("a"), 20_000)
	a := s.postForm("/v1/files", field{name: "purpose", value: "batch"},
		field{name: "file", filename: "in.jsonl", value: value})
	a.refused(507, "", "insufficient_storage", "no space")
	if a.header.Get("Retry-After") == "" {
		t.Error("the answer has no Retry-After")
	}
	s.nothingStored()
}

// fullDisk fails after a number of bytes of each blob.
type fullDisk struct {
	Blobs
	space int
}

type fullWriter struct {
	store.BlobWriter
	space int
}

func (d fullDisk) Create(ctx context.Context, key string) (store.BlobWriter, error) {
	w, err := d.Blobs.Create(ctx, key)
	return &fullWriter{w, d.space}, err
}

func (w *fullWriter) Write(p []byte) (int, error) {
	if w.space -= len(p); w.space < 0 {
		return 0, fmt.Errorf("write: %w", store.ErrNoSpace)
	}
	return w.BlobWriter.Write(p)
}

func TestUploadFilenames(t *testing.T) {
	for sent, want := range map[string]string{
		"in.jsonl":                   "in.jsonl",
		"../../etc/in.jsonl":         "in.jsonl",
		`C:\\Users\\me\\in.jsonl`:    "in.jsonl",
		"größe 数.jsonl":              "größe 数.jsonl",
		`a "quoted" name.jsonl`:      `a "quoted" name.jsonl`,
		"IN.JSONL":                   "IN.JSONL",
		"100%25.jsonl":               "100%25.jsonl",
		"a\tb.jsonl":                 "ab.jsonl",
		strings.Repeat("a", 2000):    "",
		"bad \xff utf8.jsonl":        "bad \uFFFD utf8.jsonl",
		"..":                         "",
		"nested/and;semicolon.jsonl": "and;semicolon.jsonl",
	} {
		s := newService(t)
		a := s.postForm("/v1/files", field{name: "purpose", value: "user_data"},
			field{name: "file", filename: sent, value: "x"})
		if want == "" {
			a.refused(400, "file", "invalid_value")
			continue
		}
		if got := a.ok()["filename"]; got != want {
			t.Errorf("sent %q: got filename %q, want %q", sent, got, want)
		}
	}
}

func TestUploadIsNotDecoded(t *testing.T) {
	s := newService(t)
	body := "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nuser_data\r\n" +
		"--b\r\nContent-Disposition: form-data; name=\"file\"; " +
		"filename=\"a\"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n" +
		"a=3Db\r\n--b-\r\n\r\n--\r\n--b--\r\n"
	id := s.do("POST", "/v1/files", strings.NewReader(body),
		"Content-Type", `multipart/form-data; boundary="b"`).ok()["id"].(string)
	if got, want := s.get("/v1/files/"+id+"/content").body, "a=3Db\r\n--b-\r\n\r\n--"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestUploadIdempotency(t *testing.T) {
	s := newService(t)
	purpose := field{name: "purpose", value: "batch"}
	send := func(key, value string) answer {
		body, contentType := encodeForm(t, purpose,
			field{name: "file", filename: "in.jsonl", value: value})
		return s.do("POST", "/v1/files", body, "Content-Type", contentType, "Idempotency-Key", key)
	}
	first := send("k", line("a")).ok()["id"].(string)
	if again := send("k", line("a")).ok()["id"]; again != first {
		t.Errorf("the same request created %v and then %v", first, again)
	}
	if stored := s.stored(); len(stored) != 2 {
		t.Errorf("got %v stored, want one file and its index", stored)
	}
	send("k", line("b")).refused(400, "", "idempotency_key_reuse", "another request body")
	if other := send("k2", line("a")).ok()["id"]; other == first {
		t.Error("another key returned the same file")
	}
	send(strings.Repeat("k", 256), line("a")).refused(400, "", "invalid_value", "255")

	s.do("DELETE", "/v1/files/"+first, nil).ok()
	send("k", line("a")).refused(409, "", "idempotency_in_progress")
	s.clock.advance(time.Minute)
	second := send("k", line("a")).ok()["id"]
	if second == first {
		t.Error("a deleted file was returned again")
	}
	s.clock.advance(25 * time.Hour)
	if third := send("k", line("a")).ok()["id"]; third == second {
		t.Error("a key is still in use after a day")
	}
}

func TestManyUploadsAtOnce(t *testing.T) {
	s := newService(t)
	type sent struct{ id, value string }
	done := make(chan sent)
	const uploads = 16
	for i := range uploads {
		go func() {
			value := strings.Repeat(line(fmt.Sprint(i)), 500*i+1)
			body, contentType := encodeForm(t, field{name: "purpose", value: "batch"},
				field{name: "file", filename: "in.jsonl", value: value})
			resp, err := http.Post(s.url+"/v1/files", contentType, body)
			if err != nil {
				t.Error(err)
				done <- sent{}
				return
			}
			defer resp.Body.Close()
			read, _ := io.ReadAll(resp.Body)
			id, _ := answer{t: t, body: string(read)}.object()["id"].(string)
			done <- sent{id, value}
		}()
	}
	for range uploads {
		file := <-done
		if got := s.get("/v1/files/" + file.id + "/content").body; got != file.value {
			t.Errorf("got %d bytes back that differ from the %d sent", len(got), len(file.value))
		}
	}
}

func FuzzUpload(f *testing.F) {
	body, _ := encodeForm(f, field{name: "purpose", value: "batch"},
		field{name: "file", filename: "in.jsonl", value: line("a")})
	boundary := body.String()[2:62]
	f.Add(body.Bytes(), boundary)
	f.Add([]byte("--b\r\n\r\n--b--"), "b")
	f.Add([]byte("--b\r\nContent-Disposition: form-data; name=file; filename*=utf-8''x\r\n\r\n"),
		"b")
	s := newService(f)
	f.Fuzz(func(t *testing.T, body []byte, boundary string) {
		s := s.of(t)
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/v1/files", io.MultiReader(
			bytes.NewReader(body)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header["Content-Type"] = []string{"multipart/form-data; boundary=" + strings.Map(
			visible, boundary)}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		read, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		a := answer{t, resp.StatusCode, resp.Header, string(read)}
		switch {
		case a.status >= 500:
			t.Fatalf("got status %d: %s", a.status, a.body)
		case a.status == 200:
			id := a.object()["id"].(string)
			s.do("DELETE", "/v1/files/"+id, nil).ok()
		}
		s.nothingStored()
	})
}

func visible(c rune) rune {
	if c < ' ' || c > '~' {
		return -1
	}
	return c
}
