package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// line returns a line of a batch with a body of chat completions.
func line(customID string) string {
	return fmt.Sprintf(
		`{"custom_id":%q,"method":"POST","url":"/v1/chat/completions","body":{"model":"m","messages":[]}}`, customID)
}

func TestInvalidInputFilesFailTheBatch(t *testing.T) {
	t.Parallel()
	d, stub := newServed(t)
	c := d.Client()
	var tooMany bytes.Buffer
	for i := range 50_001 {
		fmt.Fprintln(&tooMany, line(fmt.Sprint(i)))
	}
	replaced := func(old, new string) string { return strings.Replace(line("a"), old, new, 1) }
	for _, test := range []struct {
		name, content string
		code, param   string // of the first error
		line          int    // 0: none
		mentions      string
	}{
		{"bad JSON", line("a") + "\n{\"custom_id\":\n", "invalid_json_line", "", 2, ""},
		{"a cut last line", line("a") + "\n" + line("b")[:40], "invalid_json_line", "", 2, ""},
		{"two values on a line", line("a") + line("b"), "invalid_json_line", "", 1, ""},
		{"an array", "[]", "", "", 1, "object"},
		{"not UTF-8", line("a\xff"), "", "", 1, ""},
		{"a custom_id twice", line("a") + "\n\n" + line("b") + "\r\n" + line("a"),
			"duplicate_custom_id", "custom_id", 4, "a"},
		{"a custom_id twice, once escaped", line("a") + "\n" + replaced(`"a"`, `"\u0061"`),
			"duplicate_custom_id", "custom_id", 2, ""},
		{"no custom_id", replaced(`"custom_id":"a",`, ""), "missing_required_parameter",
			"custom_id", 1, "custom_id"},
		{"a number as custom_id", replaced(`"a"`, "7"), "invalid_type", "custom_id", 1, "string"},
		{"no method", replaced(`"method":"POST",`, ""), "", "method", 1, "method"},
		{"method GET", replaced("POST", "GET"), "", "method", 1, "POST"},
		{"another endpoint's url", replaced("/v1/chat/completions", "/v1/embeddings"), "", "url", 1,
			"/v1/chat/completions"},
		{"a foreign url", replaced("/v1/chat/completions", "http://evil.example/"), "", "url", 1,
			"/v1/chat/completions"},
		{"no url", replaced(`"url":"/v1/chat/completions",`, ""), "", "url", 1, "url"},
		{"no body", `{"custom_id":"a","method":"POST","url":"/v1/chat/completions"}`, "", "body", 1,
			"body"},
		{
			"a text as body", `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":"x"}`, "", "body", 1, "object"},
		{"no model", replaced(`"model":"m",`, ""), "", "body.model", 1, "model"},
		{"stream", replaced(`"model":"m",`, `"model":"m","stream":true,`), "", "body.stream", 1,
			"stream"},
		{"an empty file", "", "empty_file", "", 0, ""},
		{"blank lines only", "\n \r\n\t\n", "empty_file", "", 0, ""},
		{"a BOM only", "\xef\xbb\xbf", "empty_file", "", 0, ""},
		{"a line too many", tooMany.String(), "too_many_tasks", "", 0, "50000"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f, err := c.Upload([]byte(test.content))
			if err != nil {
				t.Fatalf("the upload must be accepted: %v", err)
			}
			b, err := c.CreateBatch(f.ID, "")
			if err != nil {
				t.Fatal(err)
			}
			b = c.AwaitEnd(t, b.ID, 10*time.Second)
			if b.Status != "failed" || b.Errors == nil || len(b.Errors.Data) == 0 ||
				b.OutputFileID != nil || b.ErrorFileID != nil {
				t.Fatalf("the batch is %s with the errors %+v", b.Status, b.Errors)
			}
			fault := b.Errors.Data[0]
			got := fmt.Sprintf("code %q param %q line %d", fault.Code, orZero(fault.Param), orZero(
				fault.Line))
			if test.code != "" && fault.Code != test.code || orZero(fault.Param) != test.param ||
				orZero(fault.Line) != test.line {
				t.Errorf("got %s, want code %q param %q line %d", got, test.code, test.param,
					test.line)
			}
			if fault.Code == "" || !strings.Contains(strings.ReplaceAll(fault.Message, ",", ""),
				test.mentions) {
				t.Errorf("the message %q does not mention %q", fault.Message, test.mentions)
			}
		})
	}
	if n := stub.Requests(); n != 0 {
		t.Errorf("%d lines of failed batches were sent", n)
	}
}

func orZero[T any](p *T) (zero T) {
	if p == nil {
		return zero
	}
	return *p
}

func TestUnusualInputFilesRun(t *testing.T) {
	t.Parallel()
	d, stub := newServed(t)
	c := d.Client()
	long := strings.Replace(line("long"), `"messages":[]`, `"messages":["`+strings.Repeat("x",
		3<<20)+`"]`, 1)
	for name, content := range map[string]string{
		"a BOM":               "\xef\xbb\xbf" + line("a") + "\n" + line("b") + "\n",
		"CRLF":                line("a") + "\r\n" + line("b") + "\r\n",
		"no final newline":    line("a") + "\n" + line("b"),
		"blank lines":         "\n\n" + line("a") + "\n \t\n\r\n" + line("b") + "\n\n",
		"a line of megabytes": long + "\n" + line("b") + "\n",
		"equal but for form":  line("é") + "\n" + line("e\u0301") + "\n",
		"spaces kept in ids":  line("a") + "\n" + line(" a ") + "\n",
		"unknown keys": strings.Replace(line("a"), `{"custom`, `{"note":{"x":[1]},"custom`,
			1) + "\n" + line("b") + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			before := stub.Requests()
			b := c.AwaitEnd(t, c.Submit(t, []byte(content), "").ID, 15*time.Second)
			if b.Status != "completed" || b.RequestCounts.Completed != 2 {
				t.Fatalf("the batch is %s, %+v, %+v", b.Status, b.RequestCounts, b.Errors)
			}
			output, _ := c.Results(t, b)
			for _, r := range output {
				if !strings.Contains(content, fmt.Sprintf("%q", r.CustomID)) {
					t.Errorf("the output has the custom_id %q", r.CustomID)
				}
			}
			if n := stub.Requests() - before; n != 2 {
				t.Errorf("%d requests for 2 lines", n)
			}
			d.Verify(t, b.ID)
		})
	}
}

func TestLineLimit(t *testing.T) {
	t.Parallel()
	d, _ := newServed(t, "api.max_batch_lines=2")
	c := d.Client()
	three := []byte(line("a") + "\n" + line("b") + "\n" + line("c") + "\n")
	b := c.AwaitEnd(t, c.Submit(t, three, "").ID, 10*time.Second)
	if b.Status != "failed" || b.Errors.Data[0].Code != "too_many_tasks" {
		t.Errorf("three lines with a limit of two: %s, %+v", b.Status, b.Errors)
	}
}

func TestInvalidUploadsStoreNothing(t *testing.T) {
	t.Parallel()
	d, _ := newServed(t)
	c := d.Client()
	kind, good := Form([][2]string{{"purpose", "batch"}}, "input.jsonl", []byte(line("a")))
	boundary := strings.TrimPrefix(kind, "multipart/form-data; boundary=")
	form := func(fields [][2]string, name string) string {
		var buf bytes.Buffer
		w := multipart.NewWriter(&buf)
		w.SetBoundary(boundary)
		for _, field := range fields {
			w.WriteField(field[0], field[1])
		}
		if name != "" {
			file, _ := w.CreateFormFile("file", name)
			io.WriteString(file, line("a"))
		}
		w.Close()
		return buf.String()
	}
	batch := [2]string{"purpose", "batch"}
	for _, test := range []struct {
		name, kind, body string
		param            string
	}{
		{"no boundary", "multipart/form-data", string(good), ""},
		{"another boundary", "multipart/form-data; boundary=other", string(good), ""},
		{"no content type", "", string(good), ""},
		{"JSON", "application/json", `{"purpose":"batch"}`, ""},
		{"nothing", kind, "", ""},
		{"cut within the file", kind, string(good[:len(good)-len(boundary)-20]), ""},
		{"no closing boundary", kind, string(good[:len(good)-len(boundary)-8]), ""},
		{"cut within the closing boundary", kind, string(good[:len(good)-10]), ""},
		{"a huge part header", kind, "--" + boundary + "\r\nX-Huge: " + strings.Repeat("x", 1<<20) +
			"\r\n\r\n\r\n--" + boundary + "--\r\n", ""},
		{"no file", kind, form([][2]string{batch}, ""), "file"},
		{"no purpose", kind, form(nil, "input.jsonl"), "purpose"},
		{"an unknown purpose", kind, form([][2]string{{"purpose", "fun"}}, "input.jsonl"),
			"purpose"},
		{"the purpose of results", kind, form([][2]string{{"purpose", "batch_output"}},
			"input.jsonl"), "purpose"},
		{"a name without .jsonl", kind, form([][2]string{batch}, "input.json"), "file"},
		{"a life too short", kind, form([][2]string{batch, {"expires_after[anchor]", "created_at"},
			{"expires_after[seconds]", "60"}}, "input.jsonl"), "expires_after.seconds"},
		{"a life that is no number", kind,
			form([][2]string{batch, {"expires_after[anchor]", "created_at"}, {
				"expires_after[seconds]", "long"}}, "input.jsonl"), "expires_after.seconds"},
		{"an unknown anchor", kind, form([][2]string{batch, {"expires_after[anchor]", "now"}, {
			"expires_after[seconds]", "3600"}}, "input.jsonl"), "expires_after.anchor"},
		{"a huge field", kind, form([][2]string{batch, {"purpose", strings.Repeat("x", 2<<20)}},
			"input.jsonl"), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			answer, err := c.Do("POST", "/v1/files", test.kind, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			wantRefusal(t, answer, test.param)
		})
	}
	wantNothingLeft(t, d)
}

func wantRefusal(t *testing.T, answer Answer, parameter string) {
	t.Helper()
	fault := answer.APIError(t)
	if answer.Status < 400 || answer.Status >= 500 || fault.Type != "invalid_request_error" ||
		len(fault.Message) < 10 {
		t.Errorf("got status %d: %s", answer.Status, answer.Body)
	}
	if parameter != "" && strings.NewReplacer("[", ".", "]",
		"").Replace(orZero(fault.Param)) != parameter {
		t.Errorf("the error names %q, want %q: %s", orZero(fault.Param), parameter, answer.Body)
	}
}

// wantNothingLeft waits until the daemon has noticed that clients have disconnected. The test fails
// if files of theirs remain.
func wantNothingLeft(t *testing.T, d *Daemon) {
	t.Helper()
	if ids := listAll(t, d.Client(), "/v1/files?limit=100"); len(ids) > 0 {
		t.Errorf("there are files: %v", ids)
	}
	var left []string
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(
		50 * time.Millisecond) {
		if left = orphans(t, d.Data, nil); len(left) == 0 {
			return
		}
	}
	t.Errorf("not removed: %v", left)
}

// filler is a reader of n bytes of blank lines.
type filler struct{ left int64 }

func (f *filler) Read(p []byte) (int, error) {
	if f.left == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), f.left))
	for i := range p[:n] {
		p[i] = '\n'
	}
	f.left -= int64(n)
	return n, nil
}

func TestUploadsOverTheLimitStoreNothing(t *testing.T) {
	long(t, "it uploads 600 MB")
	t.Parallel()
	stub := NewStub(t, "m")
	d := NewDaemon(t, Options{Upstreams: []string{stub.URL}})
	kind, frame := Form([][2]string{{"purpose", "batch"}}, "input.jsonl", nil)
	at := bytes.LastIndex(frame, []byte("\r\n--"))
	const size = 200<<20 + 1
	body := func() io.Reader {
		return io.MultiReader(bytes.NewReader(frame[:at]), &filler{size},
			bytes.NewReader(frame[at:]))
	}
	for name, length := range map[string]int64{"declared": int64(len(frame)) + size,
		"chunked": -1} {
		t.Run(name, func(t *testing.T) {
			request, err := http.NewRequestWithContext(t.Context(), "POST", d.URL+"/v1/files",
				body())
			if err != nil {
				t.Fatal(err)
			}
			request.ContentLength = length
			request.Header.Set("Content-Type", kind)
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				t.Fatalf("the client cannot read the refusal: %v", err)
			}
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			if err != nil {
				t.Fatal(err)
			}
			answer := Answer{response.StatusCode, response.Header, text}
			wantRefusal(t, answer, "")
			if !strings.Contains(string(text), "200") {
				t.Errorf("the refusal does not name the limit: %s", text)
			}
		})
	}
	t.Run("at the limit", func(t *testing.T) {
		request, err := http.NewRequestWithContext(t.Context(), "POST", d.URL+"/v1/files",
			io.MultiReader(bytes.NewReader(frame[:at]), &filler{size - 1}, bytes.NewReader(
				frame[at:])))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", kind)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != 200 {
			t.Errorf("200 MiB are refused with %d", response.StatusCode)
		}
		for _, id := range listAll(t, d.Client(), "/v1/files?limit=100") {
			if _, err := d.Client().Do("DELETE", "/v1/files/"+id, "", nil); err != nil {
				t.Error(err)
			}
		}
	})
	wantNothingLeft(t, d)
}

func TestUploadsThatBreakOffLeaveNothing(t *testing.T) {
	t.Parallel()
	d, _ := newServed(t, "http.tuning.grace=1s")
	kind, form := Form([][2]string{{"purpose", "batch"}},
		"input.jsonl", bytes.Repeat([]byte(line("a")+"\n"), 3000))
	head := fmt.Sprintf(
		"POST /v1/files HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\n",
		ownKey, kind)
	dial := func(t *testing.T) *net.TCPConn {
		connection, err := net.Dial("tcp", d.Listen)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { connection.Close() })
		return connection.(*net.TCPConn)
	}
	half := form[:len(form)/2]
	declared := head + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(form)) + string(half)
	chunked := head + "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n", len(half),
		half)
	for name, sent := range map[string]string{
		"declared": declared, "chunked": chunked,
		"within a chunk": chunked + "ffff\r\nabc", "a bad chunk": chunked + "no number\r\n",
		"the last chunk too early": chunked + "0\r\n\r\n",
	} {
		t.Run(name+", closed", func(t *testing.T) {
			connection := dial(t)
			io.WriteString(connection, sent)
			connection.Close()
		})
		t.Run(name+", reset", func(t *testing.T) {
			connection := dial(t)
			io.WriteString(connection, sent)
			connection.SetLinger(0)
			connection.Close()
		})
		t.Run(name+", half closed", func(t *testing.T) {
			connection := dial(t)
			io.WriteString(connection, sent)
			connection.CloseWrite()
			connection.SetReadDeadline(time.Now().Add(10 * time.Second))
			wantRefusedOrClosed(t, connection)
		})
	}
	t.Run("stalled", func(t *testing.T) {
		connection := dial(t)
		io.WriteString(connection, declared)
		connection.SetReadDeadline(time.Now().Add(10 * time.Second))
		wantRefusedOrClosed(t, connection)
	})
	wantNothingLeft(t, d)
}

// wantRefusedOrClosed reads what a client that waits on gets: a refusal, or the end of the
// connection, but not silence.
func wantRefusedOrClosed(t *testing.T, connection net.Conn) {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if timeout := (net.Error)(nil); errors.As(err, &timeout) && timeout.Timeout() {
		t.Error("the upload stalls and is not ended")
	} else if err == nil {
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode < 400 || response.StatusCode >= 500 {
			t.Errorf("got status %d: %s", response.StatusCode, body)
		}
	}
}

func TestBadRequestsAreNeverServerErrors(t *testing.T) {
	t.Parallel()
	d, _ := newServed(t)
	c := d.Client()
	f, err := c.Upload([]byte(line("a")))
	if err != nil {
		t.Fatal(err)
	}
	with := func(key, value string) string {
		members := map[string]string{"input_file_id": fmt.Sprintf("%q", f.ID),
			"endpoint": `"/v1/chat/completions"`, "completion_window": `"24h"`}
		members[key] = value
		var all []string
		for key, value := range members {
			all = append(all, fmt.Sprintf("%q:%s", key, value))
		}
		return "{" + strings.Join(all, ",") + "}"
	}
	for _, test := range []struct {
		name, method, path, body string
		status                   int
		param                    string
	}{
		{"an unknown route", "GET", "/v1/nothing", "", 404, ""},
		{"another method", "PUT", "/v1/batches", "{}", 405, ""},
		{"no body", "POST", "/v1/batches", "", 400, ""},
		{"no JSON", "POST", "/v1/batches", "{", 400, ""},
		{"an array", "POST", "/v1/batches", "[]", 400, ""},
		{"a key twice", "POST", "/v1/batches", `{"endpoint":"a","endpoint":"b"}`, 400, ""},
		{"not UTF-8", "POST", "/v1/batches", with("metadata", "{\"a\":\"\xff\"}"), 400, ""},
		{"deep", "POST", "/v1/batches", strings.Repeat(`{"a":`, 100000), 400, ""},
		{"large", "POST", "/v1/batches", with("metadata", `{"a":"`+strings.Repeat("x", 2<<20)+`"}`),
			413, ""},
		{"no file", "POST", "/v1/batches", with("input_file_id", "null"), 400, "input_file_id"},
		{"an unknown file", "POST", "/v1/batches", with("input_file_id", `"file-nope"`), 400,
			"input_file_id"},
		{"a path as file", "POST", "/v1/batches", with("input_file_id", `"../../etc/passwd"`), 400,
			"input_file_id"},
		{"a number as file", "POST", "/v1/batches", with("input_file_id", "7"), 400,
			"input_file_id"},
		{"an unknown endpoint", "POST", "/v1/batches", with("endpoint", `"/v1/images"`), 400,
			"endpoint"},
		{"an endpoint with a slash", "POST", "/v1/batches", with("endpoint",
			`"/v1/chat/completions/"`), 400, "endpoint"},
		{"a window too short", "POST", "/v1/batches", with("completion_window", `"1s"`), 400,
			"completion_window"},
		{"a window too long", "POST", "/v1/batches", with("completion_window", `"31d"`), 400,
			"completion_window"},
		{"a negative window", "POST", "/v1/batches", with("completion_window", `"-24h"`), 400,
			"completion_window"},
		{"a window beyond numbers", "POST", "/v1/batches", with("completion_window",
			`"99999999999999999999d"`), 400, "completion_window"},
		{"metadata of numbers", "POST", "/v1/batches", with("metadata", `{"a":1}`), 400,
			"metadata.a"},
		{"a deadline that is past", "POST", "/v1/batches", with("tidefill",
			`{"deadline":"2001-01-01T00:00:00Z"}`), 400, "tidefill.deadline"},
		{"an override of the model's place", "POST", "/v1/batches", with("tidefill",
			`{"overrides":7}`), 400, "tidefill.overrides"},
		{"a limit of 0", "GET", "/v1/batches?limit=0", "", 400, "limit"},
		{"a limit of words", "GET", "/v1/files?limit=many", "", 400, "limit"},
		{"an unknown order", "GET", "/v1/files?order=up", "", 400, "order"},
		{"a strange id", "GET", "/v1/batches/%00%ff", "", 404, ""},
		{"a path as id", "GET", "/v1/files/..%2f..%2ftidefill.db/content", "", 404, ""},
		{"a long id", "GET", "/v1/files/" + strings.Repeat("x", 8000), "", 404, ""},
		{"pausing nothing", "POST", "/v1/batches/batch_nope/pause", "", 404, ""},
		{"events of nothing", "GET", "/v1/batches/batch_nope/events", "", 404, ""},
		{"results of nothing", "GET", "/v1/batches/batch_nope/results", "", 404, ""},
		{"an upload of nothing", "POST", "/v1/uploads", "{}", 400, ""},
		{"a part of nothing", "POST", "/v1/uploads/upload_nope/parts", "", 404, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			kind := ""
			if test.body != "" {
				kind = "application/json"
			}
			answer, err := c.Do(test.method, test.path, kind, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			if answer.Status != test.status {
				t.Errorf("got status %d, want %d: %.300s", answer.Status, test.status, answer.Body)
			}
			wantRefusal(t, answer, test.param)
		})
	}
	if ids := listAll(t, c, "/v1/batches?limit=100"); len(ids) > 0 {
		t.Errorf("there are batches: %v", ids)
	}
}

func TestInvalidConfigurationRefusesToStart(t *testing.T) {
	t.Parallel()
	binary := Binary(t)
	d := &Daemon{Options: Options{Binary: binary}, t: t}
	file := writeInput(t, "tidefill.yaml",
		[]byte("listen: 127.0.0.1:0\nflowcontrol:\n  polcy: fixed\n"))
	for name, test := range map[string]struct {
		args     []string
		mentions string
	}{
		"an unknown key in the file": {[]string{"serve", "--config", file, "--upstream",
			"http://127.0.0.1:1"}, "policy"},
		"an unknown key in a flag": {[]string{"serve", "--set", "dispatch.tuning.chunk_line=3",
			"--upstream", "http://127.0.0.1:1"}, "chunk_lines"},
		"an unknown policy": {[]string{"serve", "--set", "flowcontrol.policy=magic",
			"--upstream", "http://127.0.0.1:1"}, "aimd"},
		"no upstream": {[]string{"serve"}, "--upstream"},
		"an upstream that is not a URL": {[]string{"serve", "--upstream", "gpu-1:8000"},
			"http://"},
		"an open address without keys": {[]string{"serve", "--listen", "0.0.0.0:0", "--upstream",
			"http://127.0.0.1:1"}, "TIDEFILL_API_KEYS"},
		"a value of another type": {[]string{"serve", "--set", "dispatch.tuning.chunk_lines=many",
			"--upstream", "http://127.0.0.1:1"}, "dispatch.tuning.chunk_lines"},
		"a lease shorter than the least": {[]string{"serve", "--set",
			"dispatch.tuning.lease_ttl=1s",
			"--upstream", "http://127.0.0.1:1"}, "3s"},
	} {
		t.Run(name, func(t *testing.T) {
			out, status := d.Run(append(test.args, "--data", filepath.Join(t.TempDir(), "data"))...)
			if status == 0 || !strings.Contains(out, test.mentions) {
				t.Errorf("status %d, and %q is not mentioned:\n%s", status, test.mentions, out)
			}
		})
	}
}
