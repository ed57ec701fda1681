package live

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"sync"
)

// pages serves the runners' metrics to the daemon, so that they can fail while the runners do not.
type pages struct {
	runners *runners
	address string
	server  *http.Server

	mu    sync.Mutex
	state pagesState
	kept  map[int][]byte // pages while they are frozen
}

type pagesState int

const (
	pagesPresent pagesState = iota
	pagesAbsent             // 503
	pagesFrozen             // the page of the first request after the begin
)

func startPages(r *runners) (*pages, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &pages{runners: r, address: listener.Addr().String()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{runner}", p.serve)
	p.server = &http.Server{Handler: mux}
	go p.server.Serve(listener)
	return p, nil
}

func (p *pages) stop() { p.server.Shutdown(context.Background()) }

func (p *pages) url(i int) string { return "http://" + p.address + "/" + strconv.Itoa(i) }

func (p *pages) set(state pagesState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state, p.kept = state, map[int][]byte{}
}

func (p *pages) serve(w http.ResponseWriter, r *http.Request) {
	i, err := strconv.Atoi(r.PathValue("runner"))
	if err != nil || i < 0 || i >= len(p.runners.address) {
		http.NotFound(w, r)
		return
	}
	p.mu.Lock()
	state, text := p.state, p.kept[i]
	p.mu.Unlock()
	if state == pagesAbsent {
		http.Error(w, "metrics are away", http.StatusServiceUnavailable)
		return
	}
	if state == pagesPresent || text == nil {
		if text, err = fetch(r.Context(), p.runners.url(i)+"/metrics"); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
	}
	if state == pagesFrozen {
		p.mu.Lock()
		p.kept[i] = text
		p.mu.Unlock()
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	w.Write(text)
}
