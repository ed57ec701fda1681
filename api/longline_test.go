package api

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// longLine returns a valid line of a size; n makes it unique.
func longLine(n, size int) string {
	l := strings.TrimSuffix(line(fmt.Sprint(n)), "\n")
	return strings.Replace(l, "hi", strings.Repeat("x", size-len(l)+2), 1) + "\n"
}

func TestLineOverTheLimit(t *testing.T) {
	s := newService(t, func(c *Config, _ *Deps) { c.MaxLineBytes = 100_000 })
	id := s.upload(line("a") + longLine(1, 100_001) + "garbage\n" + longLine(2, 100_000))
	b := s.post("/v1/batches", fmt.Sprintf(
		`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"}`,
		id)).ok()
	faults := b["errors"].(map[string]any)["data"].([]any)
	if b["status"] != "failed" || len(faults) != 2 {
		t.Fatalf("got %v with the errors %v, want failed with two", b["status"], faults)
	}
	first := faults[0].(map[string]any)
	if first["code"] != "line_too_long" || first["line"] != 2.0 ||
		!strings.Contains(first["message"].(string), "100000") {
		t.Errorf("got the error %v, want line_too_long on line 2 with the limit", first)
	}
}

// TestRetryOfLongLines copies lines that are longer than the buffer.
func TestRetryOfLongLines(t *testing.T) {
	s := newService(t, diskJournals(t))
	input := ""
	for i, size := range []int{pieceBytes - 1, pieceBytes, pieceBytes + 1, 2 * pieceBytes, 300} {
		input += longLine(i, size)
	}
	id := s.post("/v1/batches", fmt.Sprintf(
		`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"}`,
		s.upload(input))).ok()["id"].(string)
	s.end(id, []string{`"0"`, `"1"`, `"2"`, `"3"`, `"4"`})
	retried := s.retry(id, "").ok()
	if got := s.get("/v1/files/" + retried["input_file_id"].(string) +
		"/content").body; got != input {
		t.Errorf("the retry's input has %d bytes that differ from the %d of the lines", len(got),
			len(input))
	}
}

func TestRetryOfDamagedLines(t *testing.T) {
	s := newService(t, diskJournals(t))
	id := s.createWith(s.upload(line("a")+line("b")), `{}`).ok()["id"].(string)
	s.end(id, []string{`"b"`})
	b, err := s.meta.Batch(t.Context(), "", id)
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.blobs.Create(t.Context(), b.Inputs[0].BlobKey)
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(w, line("a")+strings.Replace(line("b"), "hi", "ho", 1))
	if err := w.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.retry(id, "").refused(400, "input_file_id", "input_file_damaged", "line 2",
		b.Inputs[0].FileID)
}

// TestUploadMemory sends files of one line without an end concurrently and samples the heap.
func TestUploadMemory(t *testing.T) {
	const uploads, size, most = 8, 24 << 20, 48 << 20
	s := newService(t)
	var done sync.WaitGroup
	piece := bytes.Repeat([]byte("word "), 8<<10)
	for range uploads {
		done.Go(func() {
			body, w := io.Pipe()
			go func() {
				io.WriteString(
					w, "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n"+
						"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"in.jsonl\"\r\n\r\n"+`{"custom_id":"`)
				for n := 0; n < size; n += len(piece) {
					w.Write(piece)
				}
				io.WriteString(w, "\r\n--b--\r\n")
				w.Close()
			}()
			resp, err := http.Post(s.url+"/v1/files", "multipart/form-data; boundary=b", body)
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Errorf("got status %d, want 200", resp.StatusCode)
			}
		})
	}
	if used := peakHeap(done.Wait); used > most {
		t.Errorf("%d uploads of a line of %d MiB took %d MiB of memory, want less than %d",
			uploads, size>>20, used>>20, most>>20)
	}
}

// peakHeap returns the bytes by which the heap grows at most while do runs.
func peakHeap(do func()) int64 {
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	ended := make(chan struct{})
	go func() { do(); close(ended) }()
	var peak uint64
	for {
		select {
		case <-ended:
			return int64(peak) - int64(before.HeapInuse)
		case <-time.After(5 * time.Millisecond):
			var now runtime.MemStats
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapInuse)
		}
	}
}
