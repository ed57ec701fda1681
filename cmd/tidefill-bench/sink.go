package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
)

// sink writes the body of a request into a file as it comes, form and all, and syncs: the least
// that an upload can cost.
type sink struct{ path string }

func (s sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := s.keep(r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	io.WriteString(w, "{}")
}

func (s sink) keep(body io.Reader) (err error) {
	f, err := os.Create(s.path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.Copy(f, body); err != nil {
		return err
	}
	return f.Sync()
}

// startSink starts a sink in a process of its own.
func (l *lab) startSink(ctx context.Context, path string) (p *process, url string, err error) {
	if p, err = l.startRole(ctx, "sink", path); err != nil {
		return nil, "", fmt.Errorf("start sink: %w", err)
	}
	if url, err = p.readLine(); err != nil {
		p.kill()
		return nil, "", fmt.Errorf("start sink: %w", err)
	}
	return p, url, nil
}
