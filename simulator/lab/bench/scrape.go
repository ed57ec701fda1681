package bench

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// pageBytes is the size of the page that benchScrape has the daemon read: that of an engine with
// many labels.
const pageBytes = 1 << 20

// benchScrape measures what the metrics page of a runner costs each time the daemon reads it.
func benchScrape(ctx context.Context, l *environment) ([]figure, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	runner := &http.Server{Handler: largePage(enginePage(pageBytes))}
	go runner.Serve(listener)
	defer runner.Close()
	data, err := l.newDir("scrape")
	if err != nil {
		return nil, err
	}
	const every = 100 * time.Millisecond
	d, err := l.startDaemon(ctx, data, "http://"+listener.Addr().String(),
		"flowcontrol.policy=headroom", "telemetry.every="+every.String())
	if err != nil {
		return nil, err
	}
	defer d.kill()
	f := figure{What: "CPU of reading a runner's metrics of 1 MiB", Unit: "ms", Goal: atMost(50)}
	for range l.runs {
		used, err := d.cpuTime()
		if err != nil {
			return nil, err
		}
		begun := time.Now()
		if err := pause(ctx, l.sizes.fleetSpan); err != nil {
			return nil, err
		}
		now, err := d.cpuTime()
		if err != nil {
			return nil, err
		}
		scrapes := time.Since(begun).Seconds() / every.Seconds()
		f.Values = append(f.Values, (now-used).Seconds()*1000/scrapes)
	}
	return []figure{f}, nil
}

// largePage serves a page of metrics and a list of models.
func largePage(page []byte) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		w.Write(page)
	})
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"object":"list","data":[{"id":%q,"object":"model"}]}`, model)
	})
	return mux
}

// enginePage returns metrics of a vLLM with histograms for many labels.
func enginePage(size int) []byte {
	var page bytes.Buffer
	for _, gauge := range []string{"num_requests_running", "num_requests_waiting",
		"kv_cache_usage_perc"} {
		fmt.Fprintf(&page, "# TYPE vllm:%s gauge\nvllm:%s{engine=\"0\",model_name=%q} 0\n", gauge,
			gauge, model)
	}
	const gap = "vllm:inter_token_latency_seconds"
	fmt.Fprintf(&page, "# TYPE %s histogram\n", gap)
	for engine := 0; page.Len() < size; engine++ {
		labels := fmt.Sprintf("engine=\"%d\",model_name=%q", engine, model)
		for bound := 1; bound <= 20; bound++ {
			fmt.Fprintf(&page, "%s_bucket{%s,le=\"%d\"} %d\n", gap, labels, bound, bound)
		}
		fmt.Fprintf(&page, "%[1]s_bucket{%[2]s,le=\"+Inf\"} 20\n%[1]s_sum{%[2]s} 1\n"+
			"%[1]s_count{%[2]s} 20\n", gap, labels)
	}
	return page.Bytes()
}
