package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// PeakMemory is the most memory that the process has held at once, by the kernel's word (VmHWM).
func (d *Daemon) PeakMemory() int64 {
	d.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.current().cmd.Process.Pid))
	if err != nil {
		d.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		d.t.Fatalf("read VmHWM: %v", err)
	}
	return kib << 10
}

// crowd counts what many clients are answered, by status; 0: the connection was closed without an answer.
type crowd struct {
	mu       sync.Mutex
	statuses map[int]int
}

func (c *crowd) count(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.statuses == nil {
		c.statuses = make(map[int]int)
	}
	c.statuses[status]++
}

// BenchmarkCrowds reports the peak of the daemon's memory while more clients come than it takes at once. The whole process has promised 128 MiB.
//
//	cd e2e && go test -run '^$' -bench Crowds -benchtime 1x
func BenchmarkCrowds(b *testing.B) {
	const uploads, listeners = 1000, 5000
	report := func(b *testing.B, d *Daemon, c *crowd) {
		b.ReportMetric(float64(d.PeakMemory())/(1<<20), "peak-MiB")
		b.Logf("answers by status: %v", c.statuses)
	}
	b.Run("idle", func(b *testing.B) {
		for b.Loop() {
			report(b, NewDaemon(b, Options{Upstreams: []string{NewStub(b, "m").URL}}), &crowd{})
		}
	})
	b.Run(fmt.Sprintf("uploads=%d", uploads), func(b *testing.B) {
		for b.Loop() {
			d := NewDaemon(b, Options{Upstreams: []string{NewStub(b, "m").URL}})
			report(b, d, uploadAtOnce(b, d, uploads))
		}
	})
	b.Run(fmt.Sprintf("listeners=%d", listeners), func(b *testing.B) {
		for b.Loop() {
			d := NewDaemon(b, Options{Upstreams: []string{NewStub(b, "m").URL}})
			report(b, d, listenAtOnce(b, d, listeners))
		}
	})
}

// uploadAtOnce begins n uploads, and ends them when all have begun.
func uploadAtOnce(t testing.TB, d *Daemon, n int) *crowd {
	kind, form := Form([][2]string{{"purpose", "batch"}}, "input.jsonl", NewLines("crowd", "m", 3000).Content)
	head := fmt.Sprintf("POST /v1/files HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", kind, len(form))
	var answers crowd
	var begun, ended sync.WaitGroup
	begun.Add(n)
	for range n {
		ended.Go(func() {
			connection, err := net.Dial("tcp", d.Listen)
			if err != nil {
				begun.Done()
				answers.count(0)
				return
			}
			defer connection.Close()
			io.WriteString(connection, head)
			connection.Write(form[:len(form)/2])
			begun.Done()
			begun.Wait()
			go connection.Write(form[len(form)/2:])
			connection.SetReadDeadline(time.Now().Add(time.Minute))
			answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
			if err != nil {
				answers.count(0)
				return
			}
			answers.count(answer.StatusCode)
		})
	}
	ended.Wait()
	return &answers
}

// listenAtOnce opens n event streams of a batch and reads from them for a while, in which the batch changes.
func listenAtOnce(t testing.TB, d *Daemon, n int) *crowd {
	f, err := d.Client().Upload(NewLines("crowd", "nobody", 10).Content)
	if err != nil {
		t.Fatal(err)
	}
	batch, err := d.Client().CreateBatch(f.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	var answers crowd
	var begun, ended sync.WaitGroup
	begun.Add(n)
	over := make(chan struct{})
	for range n {
		ended.Go(func() {
			begun := sync.OnceFunc(begun.Done)
			defer begun()
			connection, err := net.Dial("tcp", d.Listen)
			if err != nil {
				answers.count(0)
				return
			}
			defer connection.Close()
			fmt.Fprintf(connection, "GET /v1/batches/%s/events HTTP/1.1\r\nHost: localhost\r\n\r\n", batch.ID)
			connection.SetReadDeadline(time.Now().Add(time.Minute))
			answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
			if err != nil {
				answers.count(0)
				return
			}
			answers.count(answer.StatusCode)
			begun()
			if answer.StatusCode == http.StatusOK {
				go io.Copy(io.Discard, answer.Body)
				<-over
			}
		})
	}
	begun.Wait()
	for _, action := range []string{"pause", "resume", "pause", "resume"} {
		d.Client().Do("POST", "/v1/batches/"+batch.ID+"/"+action, "", nil)
		time.Sleep(500 * time.Millisecond)
	}
	close(over)
	ended.Wait()
	return &answers
}
