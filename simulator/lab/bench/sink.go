package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
)

// sink writes the body of a request unchanged into a file and syncs it: the least that an upload
// can cost.
type sink struct{ path string }

func (s sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := s.write(r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	io.WriteString(w, "{}")
}

func (s sink) write(body io.Reader) (err error) {
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

// startSink starts a sink in a separate process.
func (l *environment) startSink(
	ctx context.Context, path string,
) (p *process, url string, err error) {
	if p, err = l.startRole(ctx, "sink", path); err != nil {
		return nil, "", fmt.Errorf("start sink: %w", err)
	}
	if url, err = p.readLine(); err != nil {
		p.kill()
		return nil, "", fmt.Errorf("start sink: %w", err)
	}
	return p, url, nil
}
