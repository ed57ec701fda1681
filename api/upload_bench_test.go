package api

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// The two benchmarks measure what validation and the line index add to an upload. BenchmarkUpload
// may take at most 1.5 times as long as BenchmarkUploadWriteOnly, whose handler copies the same
// body into a file and syncs it. Compare them in one run:
//
//	go test ./api -run '^$' -bench 'Upload' -count 5

// benchmarkFile returns 200 MB in 50,000 lines.
var benchmarkFile = sync.OnceValue(func() []byte {
	const lines, size = 50_000, 4_000
	text := strings.Repeat("The quick brown fox said \\\"hello\\\" to the lazy dog, again. ", 100)
	var file bytes.Buffer
	file.Grow(lines * size)
	for i := range lines {
		start := file.Len()
		fmt.Fprintf(
			&file, `{"custom_id":"request-%d","method":"POST","url":"/v1/chat/completions","body":{"model":"llama-70b","max_tokens":512,`+
				`"messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"user","content":"%d: `, i, i)
		const tail = `"}]}}` + "\n"
		space := size - (file.Len() - start) - len(tail)
		file.WriteString(strings.TrimRight(text[:space], `\`))
		file.WriteString(tail)
	}
	return file.Bytes()
})

func benchmarkUpload(b *testing.B, url string, done func(answer string)) {
	before, contentType := benchmarkForm(b)
	file := benchmarkFile()
	after := "\r\n--" + boundaryOf(b, contentType) + "--\r\n"
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		body := io.MultiReader(strings.NewReader(before), bytes.NewReader(file),
			strings.NewReader(after))
		r, err := http.NewRequestWithContext(b.Context(), "POST", url, body)
		if err != nil {
			b.Fatal(err)
		}
		r.ContentLength = int64(len(before) + len(file) + len(after))
		r.Header.Set("Content-Type", contentType)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		read, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			b.Fatalf("got status %d, %v: %s", resp.StatusCode, err, read)
		}
		b.StopTimer()
		done(string(read))
		b.StartTimer()
	}
}

// benchmarkForm returns the part of a form before the file.
func benchmarkForm(b *testing.B) (before, contentType string) {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	w.WriteField("purpose", "batch")
	if _, err := w.CreateFormFile("file", "in.jsonl"); err != nil {
		b.Fatal(err)
	}
	return form.String(), w.FormDataContentType()
}

func boundaryOf(b *testing.B, contentType string) string {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		b.Fatal(err)
	}
	return params["boundary"]
}

func BenchmarkUpload(b *testing.B) {
	s := newService(b)
	benchmarkUpload(b, s.url+"/v1/files", func(body string) {
		id := answer{t: b, body: body}.object()["id"].(string)
		f, err := s.meta.File(b.Context(), DefaultTenant, id)
		if err != nil || f.Summary.Lines != 50_000 || f.Summary.FaultCount > 0 {
			b.Fatalf("got summary %+v, %v; want 50,000 lines without faults", f.Summary, err)
		}
		s.do("DELETE", "/v1/files/"+id, nil).ok()
	})
}

func BenchmarkUploadWriteOnly(b *testing.B) {
	path := filepath.Join(b.TempDir(), "file")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, err := os.Create(path)
		if err != nil {
			b.Error(err)
			return
		}
		defer f.Close()
		if _, err := io.Copy(f, r.Body); err != nil {
			b.Error(err)
		}
		if err := f.Sync(); err != nil {
			b.Error(err)
		}
	}))
	defer server.Close()
	benchmarkUpload(b, server.URL, func(string) { os.Remove(path) })
}
