package e2e

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// balancer is a reverse proxy that sends requests to engines in turn. It notices a while after an
// engine has gone that it has to leave it out, as real ones do.
type balancer struct {
	engines []string
	next    atomic.Uint64
	without atomic.Int64 // index of the engine that is left out; -1: none
}

func newBalancer(t *testing.T, engines ...string) (b *balancer, address string) {
	b = &balancer{engines: engines}
	b.without.Store(-1)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			i := int(b.next.Add(1) % uint64(len(engines)))
			if i == int(b.without.Load()) {
				i = (i + 1) % len(engines)
			}
			to, _ := url.Parse(engines[i])
			r.SetURL(to)
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return b, server.URL
}

// felt is what an engine's own interactive requests felt: how many were answered, and how many of
// them with no more than a time per token.
type felt struct{ all, within float64 }

// readFelt reads it from the engine's page. The bound is an edge of its histogram, in seconds.
func readFelt(t *testing.T, engine, bound string) (f felt) {
	t.Helper()
	const name = "emulator_interactive_time_per_output_token_seconds_bucket{"
	for series, value := range page(t, engine+"/metrics") {
		if !strings.HasPrefix(series, name) {
			continue
		}
		if strings.Contains(series, `le="`+bound+`"`) {
			f.within = value
		}
		if strings.Contains(series, `le="+Inf"`) {
			f.all = value
		}
	}
	return f
}

// page reads a page of metrics, by series.
func page(t *testing.T, url string) map[string]float64 {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	all := map[string]float64{}
	for rows := bufio.NewScanner(response.Body); rows.Scan(); {
		if i := strings.LastIndexByte(rows.Text(), ' '); i > 0 && rows.Text()[0] != '#' {
			all[rows.Text()[:i]], _ = strconv.ParseFloat(rows.Text()[i+1:], 64)
		}
	}
	return all
}

// sum adds up the series of a page whose names begin so.
func sum(page map[string]float64, prefix string) (total float64) {
	for series, value := range page {
		if strings.HasPrefix(series, prefix) {
			total += value
		}
	}
	return total
}

// awaitThat waits until a condition holds.
func awaitThat(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}

// Three engines behind one address, with interactive users on them: lines reach all, users keep the
// promised time per token, and the loss of an engine costs no line.
func TestGatewayInFrontOfEngines(t *testing.T) {
	long(t, "it judges times, and runs alone")
	const bound = "0.1" // an edge of the engines' histograms
	var engines []string
	var kill []func()
	for i := range 3 {
		engine, end := startMortalRunner(t, freeAddress(t), "--model", "m", "--scheduling", "fcfs",
			"--interactive-rps", "1", "--seed", fmt.Sprint(i+1), "--output-median", "60")
		engines, kill = append(engines, engine), append(kill, end)
	}
	balancer, address := newBalancer(t, engines...)
	admin := freeAddress(t)
	d := NewDaemon(t, Options{Admin: admin, Set: []string{
		fmt.Sprintf("upstreams=[{url: %q, name: gw, mode: gateway, engines: [%s/metrics]}]",
			address, strings.Join(engines, "/metrics, ")),
		"flowcontrol.slo.tpot=100ms", "flowcontrol.slo.ttft=2500ms",
	}})
	var lines strings.Builder
	for i := range 1200 {
		fmt.Fprintf(&lines, `{"custom_id":"%d","method":"POST","url":"/v1/chat/completions",`+
			`"body":{"model":"m","max_tokens":60,"messages":[{"role":"user","content":"%d"}]}}`+"\n",
			i, i)
	}
	c := d.Client()
	b := c.Submit(t, []byte(lines.String()), "")
	allowance := func(engine string) (lines float64, known bool) {
		lines, known = page(t, "http://"+admin+"/metrics")[fmt.Sprintf(
			`tidefill_runner_allowance_lines{pool="m",runner=%q}`, "gw/"+strings.TrimPrefix(engine,
				"http://"))]
		return lines, known
	}
	awaitThat(t, 2*time.Minute, "lines run on all engines", func() bool {
		for _, e := range engines {
			if lines, _ := allowance(e); lines < 5 || sum(page(t, e+"/metrics"),
				"vllm:request_success_total") < readFelt(t, e, bound).all+50 {
				return false
			}
		}
		return true
	})
	for _, e := range engines {
		if f := readFelt(t, e, bound); f.within < 0.97*f.all {
			t.Errorf("%s: %v of %v users kept the time per token", e, f.within, f.all)
		}
	}
	kill[0]()
	time.AfterFunc(2*time.Second, func() { balancer.without.Store(0) })
	awaitThat(t, time.Minute, "the engine that is gone counts no longer", func() bool {
		_, known := allowance(engines[0])
		return !known
	})
	if done := c.AwaitEnd(t, b.ID, 3*time.Minute); done.RequestCounts.Completed != 1200 {
		t.Errorf("got %+v, want 1200 lines completed", done.RequestCounts)
	}
	d.Verify(t, b.ID)
	for _, e := range engines[1:] {
		f := readFelt(t, e, bound)
		t.Logf("%s: %v of %v users kept the time per token", e, f.within, f.all)
		if f.within < 0.97*f.all {
			t.Errorf("%s: %v of %v users kept the time per token", e, f.within, f.all)
		}
	}
}
