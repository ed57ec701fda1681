package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
)

// runLoop runs the bare loop, with which the dispatcher is compared. It posts the bodies of a batch
// file as plainly as net/http allows, and discards the answers. The bodies are in memory before the
// measurement.
//
// It prints "ready" when it has read the file. For every row "URL CONCURRENCY COUNT KIND" of its
// input it posts COUNT bodies and prints "done". KIND is plain, or streamed: then it asks for
// streams and reads their events.
func runLoop(path string, in io.Reader, out io.Writer) error {
	bodies, err := readBodies(path)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}}
	fmt.Fprintln(out, "ready")
	for orders := bufio.NewScanner(in); orders.Scan(); {
		var url, kind string
		var concurrency, count int
		if _, err := fmt.Sscan(orders.Text(), &url, &concurrency, &count,
			&kind); err != nil {
			return fmt.Errorf("parse order %q: %w", orders.Text(), err)
		}
		send, sent := post, bodies[:count]
		if kind == "streamed" {
			send, sent = postStream, streamedBodies(sent)
		}
		if err := postAll(sent, concurrency, func(body []byte) error {
			return send(client, url, body)
		}); err != nil {
			return err
		}
		fmt.Fprintln(out, "done")
	}
	return nil
}

func readBodies(path string) ([][]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var bodies [][]byte
	for line := range bytes.Lines(text) {
		_, body, found := bytes.Cut(line, []byte(`"body":`))
		if !found {
			return nil, fmt.Errorf("line %d of %s has no body", len(bodies)+1, path)
		}
		bodies = append(bodies, bytes.TrimSuffix(body, []byte("}\n")))
	}
	return bodies, nil
}

// streamedBodies adds what makes the requests streams.
func streamedBodies(plain [][]byte) [][]byte {
	all := make([][]byte, len(plain))
	for i, body := range plain {
		all[i] = slices.Concat([]byte("{"+streamed), bytes.TrimPrefix(body, []byte("{")))
	}
	return all
}

func postAll(bodies [][]byte, concurrency int, send func([]byte) error) error {
	next := make(chan []byte, concurrency)
	failed := make(chan error, concurrency)
	var senders sync.WaitGroup
	for range concurrency {
		senders.Go(func() {
			for body := range next {
				if err := send(body); err != nil {
					select {
					case failed <- err:
					default: // one error is enough
					}
				}
			}
		})
	}
	for _, body := range bodies {
		next <- body
	}
	close(next)
	senders.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

func post(client *http.Client, url string, body []byte) error {
	response, err := client.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, response.Body.Close())
}

// loop is the bare loop in a separate process.
type loop struct{ *process }

func (l *environment) startLoop(ctx context.Context, path string) (loop, error) {
	p, err := l.startRole(ctx, "loop", path)
	if err != nil {
		return loop{}, fmt.Errorf("start bare loop: %w", err)
	}
	if err := (loop{p}).expect("ready"); err != nil {
		p.kill()
		return loop{}, fmt.Errorf("start bare loop: %w", err)
	}
	return loop{p}, nil
}

// post posts the first count bodies and returns when all are answered.
func (l loop) post(url string, concurrency, count int) error {
	return l.order(url, concurrency, count, "plain")
}

// postStreamed does the same with streams.
func (l loop) postStreamed(url string, concurrency, count int) error {
	return l.order(url, concurrency, count, "streamed")
}

func (l loop) order(url string, concurrency, count int, kind string) error {
	if _, err := fmt.Fprintln(l.stdin, url, concurrency, count, kind); err != nil {
		return fmt.Errorf("post from the bare loop: %w", err)
	}
	if err := l.expect("done"); err != nil {
		return fmt.Errorf("post from the bare loop: %w", err)
	}
	return nil
}

func (l loop) expect(word string) error {
	got, err := l.readLine()
	if err == nil && strings.TrimSpace(got) != word {
		err = fmt.Errorf("got %q, want %q", got, word)
	}
	return err
}
