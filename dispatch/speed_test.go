package dispatch_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/store"
)

// instantStub is set in the environment of the child process that serves instant answers: a process
// of its own, so that the client's CPU time is separate from the server's.
const instantStub = "TIDEFILL_TEST_INSTANT_STUB"

func TestMain(m *testing.M) {
	if os.Getenv(instantStub) != "" {
		serveInstantly()
		return
	}
	os.Exit(m.Run())
}

func serveInstantly() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println(listener.Addr())
	go func() { io.Copy(io.Discard, os.Stdin); os.Exit(0) }() // ends with its parent
	http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, okBody)
	}))
}

func startInstantStub(tb testing.TB) (url string) {
	tb.Helper()
	stub := exec.Command(os.Args[0])
	stub.Env = append(os.Environ(), instantStub+"=1")
	in, err := stub.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := stub.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := stub.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { in.Close(); stub.Wait() })
	buf := make([]byte, 64)
	n, err := out.Read(buf)
	if err != nil {
		tb.Fatal(err)
	}
	return "http://" + strings.TrimSpace(string(buf[:n]))
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// bareLoop posts the bodies as plainly as net/http allows.
func bareLoop(tb testing.TB, url string, bodies [][]byte, concurrency int) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: concurrency}}
	next := make(chan []byte, concurrency)
	var all sync.WaitGroup
	for range concurrency {
		all.Go(func() {
			for body := range next {
				response, err := client.Post(
					url+"/v1/chat/completions", "application/json", bytes.NewReader(body))
				if err != nil {
					tb.Error(err)
					continue
				}
				io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
		})
	}
	for _, body := range bodies {
		next <- body
	}
	close(next)
	all.Wait()
	client.CloseIdleConnections()
}

// BenchmarkAgainstBareLoop runs a batch and a bare client loop over the same bodies, at the same
// concurrency, against the same stub, and reports the ratios of rate and of CPU time.
func BenchmarkAgainstBareLoop(b *testing.B) {
	const lines = 20_000
	text := make([]string, lines)
	bodies := make([][]byte, lines)
	for i := range text {
		text[i] = chatLine(fmt.Sprintf("line-%d", i), "m")
		_, body, _ := strings.Cut(text[i], `"body":`)
		bodies[i] = []byte(strings.TrimSuffix(body, "}"))
	}
	for _, concurrency := range []int{10, 100, 500} {
		b.Run(fmt.Sprint(concurrency), func(b *testing.B) {
			url := startInstantStub(b)
			var bareTime, bareCPU, ourTime, ourCPU time.Duration
			for b.Loop() {
				begun, cpu := time.Now(), cpuTime()
				bareLoop(b, url, bodies, concurrency)
				bareTime, bareCPU = bareTime+time.Since(begun), bareCPU+cpuTime()-cpu
				wall, used := runBatch(b, url, text, concurrency)
				ourTime, ourCPU = ourTime+wall, ourCPU+used
			}
			perLine := func(d time.Duration) float64 {
				return float64(d.Microseconds()) / float64(b.N) / lines
			}
			b.ReportMetric(lines*float64(b.N)/bareTime.Seconds(), "bare-lines/s")
			b.ReportMetric(lines*float64(b.N)/ourTime.Seconds(), "lines/s")
			b.ReportMetric(bareTime.Seconds()/ourTime.Seconds(), "rate-ratio")
			b.ReportMetric(perLine(bareCPU), "bare-cpu-µs/line")
			b.ReportMetric(perLine(ourCPU), "cpu-µs/line")
			b.ReportMetric(ourCPU.Seconds()/bareCPU.Seconds(), "cpu-ratio")
		})
	}
}

func runBatch(b *testing.B, url string, lines []string, concurrency int) (wall, cpu time.Duration) {
	w := newWorld(b)
	_, stop := w.dispatcher("a", func(cfg *dispatch.Config, d *dispatch.Deps) {
		defaults := dispatch.DefaultConfig()
		cfg.PollEvery, cfg.ProgressEvery = defaults.PollEvery, defaults.ProgressEvery
		d.Registry = fixedLines(concurrency)
		d.Upstreams[0].Models = []string{"m"}
	}, url)
	defer stop()
	w.upload("file-warm", lines[:1])
	begun, used := time.Time{}, time.Duration(0)
	id := w.submit(lines, func(*store.Batch) { begun, used = time.Now(), cpuTime() })
	w.awaitEnd(id)
	return time.Since(begun), cpuTime() - used
}
