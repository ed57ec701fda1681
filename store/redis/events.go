package redis

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/tidefill/tidefill/store/live"
)

// maxQueued limits the events that wait to be sent. Beyond it, events are dropped: whoever misses
// one polls.
const maxQueued = 1024

// events sends events and receives those of other processes.
type events struct {
	db          *DB
	origin      string // of this process's events, which it has seen already
	subscribers live.Subscribers
	queue       chan event
	end         context.CancelFunc
	running     sync.WaitGroup
}

type event struct {
	Origin string
	Topic  live.Topic
	IDs    []string
}

func newEvents(db *DB, origin string) *events {
	ctx, end := context.WithCancel(context.Background())
	e := &events{db: db, origin: origin, queue: make(chan event, maxQueued), end: end}
	e.running.Go(func() { e.send(ctx) })
	e.running.Go(func() { e.receive(ctx) })
	return e
}

func (e *events) close() {
	e.end()
	e.running.Wait()
}

// Emit implements [live.Events].
func (db *DB) Emit(topic live.Topic, ids ...string) {
	db.events.subscribers.Call(topic, ids)
	if db.breaker.open() {
		return
	}
	select {
	case db.events.queue <- event{Topic: topic, IDs: ids}:
	default:
	}
}

// Subscribe implements [live.Events].
func (db *DB) Subscribe(take func(live.Topic, []string)) (stop func()) {
	return db.events.subscribers.Add(take)
}

// send sends what is queued. Events of one topic that have gathered meanwhile become one.
func (e *events) send(ctx context.Context) {
	for {
		var order []live.Topic
		ids := map[live.Topic][]string{}
		gather := func(ev event) {
			if _, known := ids[ev.Topic]; !known {
				order = append(order, ev.Topic)
			}
			ids[ev.Topic] = append(ids[ev.Topic], ev.IDs...)
		}
		select {
		case <-ctx.Done():
			return
		case first := <-e.queue:
			gather(first)
		}
		for range len(e.queue) {
			gather(<-e.queue)
		}
		// An error has opened the breaker; the events are lost.
		_ = e.db.call(ctx, func(ctx context.Context) error {
			_, err := e.db.client.Pipelined(ctx, func(pipe redis.Pipeliner) error {
				for _, topic := range order {
					all := ids[topic]
					slices.Sort(all)
					text, err := json.Marshal(event{e.origin, topic, slices.Compact(all)})
					if err != nil {
						return err
					}
					pipe.Publish(ctx, e.db.key("events", ""), text)
				}
				return nil
			})
			return err
		})
	}
}

// receive passes on events of other processes. After a new connection anything may have been
// missed.
func (e *events) receive(ctx context.Context) {
	for ctx.Err() == nil {
		subscription := e.db.client.Subscribe(ctx, e.db.key("events", ""))
		// Its calls do not end with their contexts.
		stop := context.AfterFunc(ctx, func() { subscription.Close() })
		e.follow(ctx, subscription)
		stop()
		subscription.Close()
		if ctx.Err() == nil {
			// A process that has nothing to send notices this way that the server is away.
			_ = e.db.call(ctx, e.db.ping)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pingEvery):
		}
	}
}

func (e *events) follow(ctx context.Context, subscription *redis.PubSub) {
	for pinged := false; ; {
		message, err := subscription.ReceiveTimeout(ctx, receiveWait)
		if message != nil {
			pinged = false
		}
		switch m := message.(type) {
		case nil:
			if ctx.Err() != nil || !isTimeout(err) || pinged || subscription.Ping(ctx) != nil {
				return
			}
			pinged = true
		case *redis.Subscription:
			for _, topic := range []live.Topic{live.Batches, live.Progress, live.Leading,
				live.Scaling} {
				e.subscribers.Call(topic, nil)
			}
		case *redis.Message:
			var ev event
			if json.Unmarshal([]byte(m.Payload), &ev) == nil && ev.Origin != e.origin {
				e.subscribers.Call(ev.Topic, ev.IDs)
			}
		}
	}
}

// receiveWait is the time without a message after which the connection is checked by a ping, whose
// answer comes as a message. Without an answer within the same time the connection is given up.
const receiveWait = time.Second

func isTimeout(err error) bool {
	timeout, ok := err.(interface{ Timeout() bool })
	return ok && timeout.Timeout()
}
