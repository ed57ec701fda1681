package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// Event is an event of a batch, with the time at which it came.
type Event struct {
	At   time.Time
	Name string
	Data json.RawMessage
}

// EventStream follows the events of a batch.
type EventStream struct {
	mu     sync.Mutex
	events []Event
	ended  chan struct{}
}

// Follow opens the event stream of a batch. It ends with the batch or with the test.
func (c *Client) Follow(t testing.TB, id string) *EventStream {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		c.URL+"/v1/batches/"+id+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Key != "" {
		request.Header.Set("Authorization", "Bearer "+c.Key)
	}
	response, err := (&http.Client{Transport: Described{&http.Transport{}}}).Do(request)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("follow batch %s: %v %v", id, response, err)
	}
	s := &EventStream{ended: make(chan struct{})}
	go s.read(response)
	t.Cleanup(func() {
		cancel()
		<-s.ended
	})
	return s
}

func (s *EventStream) read(response *http.Response) {
	defer close(s.ended)
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	var next Event
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "event":
			next = Event{At: time.Now(), Name: value}
		case "data":
			next.Data = json.RawMessage(value)
			s.mu.Lock()
			s.events = append(s.events, next)
			s.mu.Unlock()
		}
	}
}

// Events returns what came so far.
func (s *EventStream) Events() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events[:len(s.events):len(s.events)]
}

// Await waits for an event for which is returns true, and returns it.
func (s *EventStream) Await(t testing.TB, what string, is func(Event) bool) Event {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(
		time.Millisecond) {
		for _, e := range s.Events() {
			if is(e) {
				return e
			}
		}
	}
	t.Fatalf("no event within 30 s: %s", what)
	return Event{}
}
