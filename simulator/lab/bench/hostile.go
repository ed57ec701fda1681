package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// hostile is an upstream that answers as a prompt requests: "KIND BYTES", see answerAs.
type hostile struct{}

func (hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/models" {
		(&stub{}).ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	_, prompt, _ := strings.Cut(string(body), `"input":"`)
	prompt, _, _ = strings.Cut(prompt, `"`)
	fields := strings.Fields(prompt)
	if len(fields) == 0 {
		http.Error(w, "no kind", http.StatusBadRequest)
		return
	}
	size, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil {
		http.Error(w, "no size", http.StatusBadRequest)
		return
	}
	answerAs(w, fields[0], size)
}

// answerAs answers with size bytes in the way that kind names.
func answerAs(w http.ResponseWriter, kind string, size int) {
	piece := []byte(strings.Repeat("-0.0123456,", 1000))
	pieces := func(n int, pause time.Duration) {
		io.WriteString(w, `{"data":[`)
		for sent := 0; sent < n; sent += len(piece) {
			if _, err := w.Write(piece); err != nil {
				return
			}
			time.Sleep(pause)
		}
		io.WriteString(w, `0],"usage":{"prompt_tokens":8,"total_tokens":8}}`)
	}
	switch kind {
	case "large":
		pieces(size, 0)
	case "drip": // in two seconds
		pieces(size, 2*time.Second/time.Duration(size/len(piece)+1))
	case "error":
		w.WriteHeader(http.StatusBadRequest) // a line's own fault: after a 500 it would wait
		pieces(size, 0)
	case "endless":
		pieces(1<<40, 0)
	case "header":
		endlessHeader(w)
	default: // small
		io.WriteString(w, `{"data":[0],"usage":{"prompt_tokens":8,"total_tokens":8}}`)
	}
}

func endlessHeader(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	lines := []byte(strings.Repeat("X-Filler: y\r\n", 300))
	for _, err = io.WriteString(conn, "HTTP/1.1 200 OK\r\n"); err == nil; {
		_, err = conn.Write(lines)
	}
}

// startHostile starts a hostile upstream in a separate process.
func (l *environment) startHostile(ctx context.Context) (*upstream, error) {
	p, err := l.startRole(ctx, "hostile")
	if err != nil {
		return nil, fmt.Errorf("start hostile upstream: %w", err)
	}
	url, err := p.readLine()
	if err != nil {
		p.kill()
		return nil, fmt.Errorf("start hostile upstream: %w", err)
	}
	return &upstream{p, url}, nil
}
