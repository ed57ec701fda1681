package inline

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/internal/httpserver"
)

// roleVariable makes the test binary one of the processes that TestCost compares.
const roleVariable = "TIDEFILL_INLINE_ROLE"

func TestMain(m *testing.M) {
	role, argument, _ := strings.Cut(os.Getenv(roleVariable), " ")
	roles := map[string]func(string) error{"engine": runEngine, "plain": runPlain,
		"inline": runInline}
	run, is := roles[role]
	if !is {
		os.Exit(m.Run())
	}
	if err := run(argument); err != nil {
		fmt.Fprintln(os.Stderr, role, err)
		os.Exit(1)
	}
}

// serveProcess serves until the parent closes the input. It prints its address, and on each row of
// the input what the runtime holds.
func serveProcess(serve func(net.Listener) error) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	failed := make(chan error, 1)
	go func() { failed <- serve(listener) }()
	rows := bufio.NewScanner(os.Stdin)
	for rows.Scan() {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Printf("heap %d MiB, stacks %d MiB, goroutines %d\n", m.HeapInuse>>20,
			m.StackInuse>>20, runtime.NumGoroutine())
	}
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// tokenEvent is an event of vLLM with its time in place of the id.
const tokenEvent = `data: {"id":"%d","object":"chat.completion.chunk","created":1790000000,` +
	`"model":"m","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,` +
	`"finish_reason":null}]}` + "\n\n"

// runEngine serves streams: argument is the time between two tokens.
func runEngine(argument string) error {
	gap, err := time.ParseDuration(argument)
	if err != nil {
		return err
	}
	return serveProcess(func(l net.Listener) error {
		return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "text/event-stream")
			flusher := http.NewResponseController(w)
			for ticks := time.NewTicker(gap); ; {
				fmt.Fprintf(w, tokenEvent, time.Now().UnixNano())
				if flusher.Flush() != nil {
					return
				}
				select {
				case <-ticks.C:
				case <-r.Context().Done():
					return
				}
			}
		}))
	})
}

func runPlain(argument string) error {
	base, err := url.Parse(argument)
	if err != nil {
		return err
	}
	proxy := &httputil.ReverseProxy{Transport: &http.Transport{MaxIdleConnsPerHost: maxIdle,
		DisableCompression: true}, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(base)
		// Without this, one in some hundred streams breaks off: net/http closes the body of a
		// request when its answer begins, while the transport still looks for the body's end.
		body, _ := io.ReadAll(r.In.Body)
		r.Out.Body = io.NopCloser(bytes.NewReader(body))
	}}
	return serveProcess(func(l net.Listener) error { return http.Serve(l, proxy) })
}

// freely is an Admission to one server that costs nothing.
type freely struct{ base *url.URL }

func (f freely) Admit(context.Context, plan.Request) (Place, error) { return f, nil }
func (f freely) Admission() plan.Admission                          { return plan.Admission{} }
func (f freely) Base() *url.URL                                     { return f.base }
func (freely) Header() http.Header                                  { return nil }
func (freely) Spoke()                                               {}
func (freely) Decoded(int, int, time.Duration)                      {}
func (freely) Done(plan.RequestEnded)                               {}

func runInline(argument string) error {
	base, err := url.Parse(argument)
	if err != nil {
		return err
	}
	proxy, err := New(DefaultConfig(), Deps{Admission: freely{base},
		UseCases: &useCases{implicit: true}})
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tidefill-inline-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	limits := httpserver.DefaultConfig()
	limits.MaxConnections, limits.MaxConnectionsPerAddress = 0, 0
	server, _, closeAll, err := newServer(proxy, dir, httpserver.Options{HalfClose: true}, limits)
	if err != nil {
		return err
	}
	defer closeAll()
	return serveProcess(server.Serve)
}

// process is a child that plays a role.
type process struct {
	*exec.Cmd
	url string
	in  io.WriteCloser
	out *bufio.Reader
}

func startProcess(t *testing.T, role, argument string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0])}
	p.Env = append(os.Environ(), roleVariable+"="+role+" "+argument)
	p.Stderr = os.Stderr
	var err error
	if p.in, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.stop)
	p.out = bufio.NewReader(out)
	address, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	p.url = "http://" + strings.TrimSpace(address)
	return p
}

func (p *process) stop() {
	p.in.Close()
	_ = p.Wait()
}

// state returns what its runtime holds.
func (p *process) state(t *testing.T) string {
	t.Helper()
	if _, err := io.WriteString(p.in, "\n"); err != nil {
		t.Fatal(err)
	}
	row, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(row)
}

// stat returns the CPU time that it has used and the memory that it has.
func (p *process) stat(t *testing.T) (cpu time.Duration, resident int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Process.Pid))
	if err != nil {
		t.Skip(err) // no Linux
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+2:]))
	number := func(i int) int {
		n, err := strconv.Atoi(fields[i])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	const ticks = 100 // per second, on all of Linux's architectures with Go
	cpu = time.Duration(number(11)+number(12)) * time.Second / ticks
	return cpu, number(21) * os.Getpagesize()
}

// streams are open streams of a client.
type streams struct {
	cancel  context.CancelFunc
	ended   sync.WaitGroup
	mu      sync.Mutex
	noting  bool
	latency []time.Duration // of tokens
	tokens  int
}

// openStreams opens n streams and returns when each has brought a token.
func openStreams(t *testing.T, url string, n int) *streams {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &streams{cancel: cancel}
	transport := &http.Transport{MaxIdleConnsPerHost: n, DisableCompression: true,
		ReadBufferSize: 1 << 10, WriteBufferSize: 1 << 10}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	first := make(chan error, n)
	limit := make(chan struct{}, 64) // connections that are made at once
	for range n {
		limit <- struct{}{}
		s.ended.Go(func() {
			err := s.read(ctx, client, url, func() { <-limit; first <- nil })
			if ctx.Err() == nil {
				<-limit
				first <- err
			}
		})
	}
	for range n {
		if err := <-first; err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *streams) read(ctx context.Context, c *http.Client, url string, begun func()) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions",
		strings.NewReader(`{"model":"m","stream":true,"messages":[{"role":"user","content":"a"}]}`))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer key-a")
	r.Header.Set("Content-Type", "application/json")
	answer, err := c.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", answer.StatusCode)
	}
	in := bufio.NewReaderSize(answer.Body, 512)
	for {
		row, err := in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(row) < 20 {
			continue
		}
		now := time.Now().UnixNano()
		digits := row[len(`data: {"id":"`):]
		sent, _ := strconv.ParseInt(string(digits[:slices.Index(digits, '"')]), 10, 64)
		s.mu.Lock()
		s.tokens++
		if s.noting {
			s.latency = append(s.latency, time.Duration(now-sent))
		}
		s.mu.Unlock()
		if begun != nil {
			begun()
			begun = nil
		}
	}
}

func (s *streams) close() {
	s.cancel()
	s.ended.Wait()
}

// TestCost compares the proxy with httputil.ReverseProxy. The client, the engine and each proxy are
// processes. Figures are logged; only gross misses fail, since the machine may have other work.
func TestCost(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	const n, gap, measured = 1000, 250 * time.Millisecond, 8 * time.Second
	engine := startProcess(t, "engine", gap.String())
	type cost struct {
		p50, p99 time.Duration
		perToken time.Duration
	}
	measure := func(url string, of *process) cost {
		s := openStreams(t, url, n)
		time.Sleep(time.Second)
		before, _ := of.stat(t)
		s.mu.Lock()
		s.noting, s.tokens = true, 0
		s.mu.Unlock()
		time.Sleep(measured)
		s.mu.Lock()
		s.noting = false
		tokens, latency := s.tokens, s.latency
		s.mu.Unlock()
		after, _ := of.stat(t)
		s.close()
		slices.Sort(latency)
		return cost{latency[len(latency)/2], latency[len(latency)*99/100],
			(after - before) / time.Duration(tokens)}
	}
	plain := startProcess(t, "plain", engine.url)
	inline := startProcess(t, "inline", engine.url)
	var ratios []float64
	for range 2 { // in turns, as the machine's speed varies
		direct := measure(engine.url, engine)
		one, own := measure(plain.url, plain), measure(inline.url, inline)
		ratio := float64(own.perToken) / float64(one.perToken)
		ratios = append(ratios, ratio)
		t.Logf("%d streams: direct p50 %v p99 %v; added by ReverseProxy p50 %v p99 %v; added by "+
			"inline p50 %v p99 %v; CPU per token %v and %v, ratio %.2f", n, direct.p50, direct.p99,
			one.p50-direct.p50, one.p99-direct.p99, own.p50-direct.p50, own.p99-direct.p99,
			one.perToken, own.perToken, ratio)
	}
	if best := slices.Min(ratios); best > 2 {
		t.Errorf("CPU per token is %.2f times that of ReverseProxy, want 1.2", best)
	}
}

// TestIdleStreams measures the memory of streams that bring no token.
func TestIdleStreams(t *testing.T) {
	if testing.Short() {
		t.Skip("opens thousands of connections")
	}
	n := 20_000
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Skip(err)
	}
	n = min(n, int(files.Max)/2-500) // the proxy has two connections for each
	engine := startProcess(t, "engine", "1h")
	for _, role := range []string{"plain", "inline"} {
		p := startProcess(t, role, engine.url)
		s := openStreams(t, p.url, n)
		time.Sleep(2 * time.Second)
		_, resident := p.stat(t)
		each := float64(resident) / float64(n)
		t.Logf("%s: %d idle streams in %d MiB, %.1f KiB each, %.0f MiB for 20,000; %s", role, n,
			resident>>20, each/(1<<10), each*20_000/(1<<20), p.state(t))
		s.close()
		p.stop()
	}
}
