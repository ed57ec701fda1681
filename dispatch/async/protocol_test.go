package async

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	servers "github.com/tidefill/tidefill/internal/testservers/redis"
)

// model is a slow, obvious version of the queue, in which no lease ends by itself.
type model struct {
	items    map[string]*modelItem
	answered map[string]string // not collected yet, by id
}

type modelItem struct {
	deadline int64
	token    string // empty: it is queued
	lost     int    // leases that ended
}

// queued returns the ids in the order in which they are taken.
func (m *model) queued() []string {
	var ids []string
	for id, item := range m.items {
		if item.token == "" {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b string) int {
		if d := m.items[a].deadline - m.items[b].deadline; d != 0 {
			return int(d)
		}
		return strings.Compare(a, b)
	})
	return ids
}

// TestProtocolAgainstModel applies random operations to the scripts and to the model, and compares
// what they return. Old tokens are used too.
func TestProtocolAgainstModel(t *testing.T) {
	server := servers.Start(t)
	client := connect(t, server)
	ctx := t.Context()
	const process = "p"
	rapid.Check(t, func(rt *rapid.T) {
		if err := client.FlushAll(ctx).Err(); err != nil {
			rt.Fatal(err)
		}
		queue := newRunnerQueue(client, "t", runnerName)
		m := &model{items: map[string]*modelItem{}, answered: map[string]string{}}
		var leases []lease // all that were ever given
		next, takes := uint64(0), 0
		ok := func(err error) {
			rt.Helper()
			if err != nil {
				rt.Fatal(err)
			}
		}
		take := func(n int) {
			takes++
			token := fmt.Sprint("t", takes)
			got, err := queue.take(ctx, "w", n, time.Hour, token)
			ok(err)
			want := m.queued()
			want = want[:min(n, len(want))]
			var ids []string
			for _, l := range got {
				if l.body != "body of "+l.id {
					rt.Fatalf("%s has the body %q", l.id, l.body)
				}
				ids = append(ids, l.id)
				m.items[l.id].token = token
			}
			if !slices.Equal(ids, want) {
				rt.Fatalf("took %v, want %v", ids, want)
			}
			leases = append(leases, got...)
		}
		take(1) // so that the runner has a worker
		anyLease := func() (l lease, current bool) {
			l = rapid.SampledFrom(leases).Draw(rt, "lease")
			item := m.items[l.id]
			return l, item != nil && item.token == l.token
		}
		rt.Repeat(map[string]func(*rapid.T){
			"offer": func(rt *rapid.T) {
				id := itemID(process, next)
				if next++; rapid.IntRange(0, 9).Draw(rt, "again") == 0 && next > 1 {
					next--
					id = itemID(process, uint64(rapid.IntRange(0, int(next-1)).Draw(rt, "n")))
				}
				if _, done := m.answered[id]; done {
					rt.Skip() // a dispatcher offers none whose answer it has
				}
				deadline := int64(rapid.IntRange(1, 5).Draw(rt, "deadline"))
				served, err := queue.offer(ctx, process, time.Hour, id, time.UnixMilli(deadline),
					[]byte("body of "+id))
				ok(err)
				if !served {
					rt.Fatal("no worker serves the queue")
				}
				if m.items[id] == nil {
					m.items[id] = &modelItem{deadline: deadline}
				}
			},
			"take": func(rt *rapid.T) { take(rapid.IntRange(1, 4).Draw(rt, "n")) },
			"withdraw": func(rt *rapid.T) {
				id := itemID(process, uint64(rapid.IntRange(0, int(next)).Draw(rt, "n")))
				want := absent
				if item := m.items[id]; item != nil {
					if want = queued; item.token != "" {
						want = leased
					}
				}
				got, err := queue.withdraw(ctx, id)
				ok(err)
				if delete(m.items, id); got != want {
					rt.Fatalf("withdrew %s in state %v, want %v", id, got, want)
				}
			},
			"answer": func(rt *rapid.T) {
				if len(leases) == 0 {
					rt.Skip()
				}
				l, current := anyLease()
				got, err := queue.answer(ctx, l, []byte("answer by "+l.token))
				ok(err)
				if got != current {
					rt.Fatalf("an answer of %v counts: %v, want %v", l, got, current)
				}
				if current {
					delete(m.items, l.id)
					m.answered[l.id] = "answer by " + l.token
				}
			},
			"release": func(rt *rapid.T) {
				if len(leases) == 0 {
					rt.Skip()
				}
				l, current := anyLease()
				ok(queue.release(ctx, l))
				if current {
					m.items[l.id].token = ""
				}
			},
			"renew": func(rt *rapid.T) {
				if len(leases) == 0 {
					rt.Skip()
				}
				l, current := anyLease()
				gone, err := queue.renew(ctx, "w", time.Hour, time.Hour, []lease{l})
				ok(err)
				if (len(gone) == 0) != current {
					rt.Fatalf("renewed %v: gone %v, want current %v", l, gone, current)
				}
			},
			"lease ends": func(rt *rapid.T) {
				if len(leases) == 0 {
					rt.Skip()
				}
				l, current := anyLease()
				if !current {
					rt.Skip()
				}
				// by hand, since time is that of Redis
				ok(client.ZAdd(ctx, queue.keys[2], zAt(l.id, 1)).Err())
				_, err := queue.check(ctx, process, time.Hour, nil)
				ok(err)
				item := m.items[l.id]
				item.token = ""
				if item.lost++; item.lost == maxLost {
					delete(m.items, l.id)
					m.answered[l.id] = lostAnswer
				}
			},
			"collect": func(rt *rapid.T) {
				if len(m.answered) == 0 {
					rt.Skip()
				}
				for len(m.answered) > 0 {
					got, err := queue.collect(ctx, process, time.Second)
					ok(err)
					if len(got) == 0 {
						rt.Fatalf("%d answers are missing", len(m.answered))
					}
					for _, a := range got {
						id, answer, _ := strings.Cut(a, "\n")
						if m.answered[id] != answer {
							rt.Fatalf("%s: collected %q, want %q", id, answer, m.answered[id])
						}
						delete(m.answered, id)
					}
				}
			},
			"": func(rt *rapid.T) {
				var ids []string
				var want []state
				for n := range next {
					id := itemID(process, n)
					at := absent
					if item := m.items[id]; item != nil {
						if at = queued; item.token != "" {
							at = leased
						}
					}
					ids, want = append(ids, id), append(want, at)
				}
				got, err := queue.check(ctx, process, time.Hour, ids)
				ok(err)
				if !slices.Equal(got, want) {
					rt.Fatalf("states %v, want %v", got, want)
				}
				if n := client.ZCard(ctx, queue.keys[2]).Val(); int(n) != len(m.items)-
					len(m.queued()) {
					rt.Fatalf("%d leases, want %d", n, len(m.items)-len(m.queued()))
				}
			},
		})
	})
}

func zAt(id string, at float64) redis.Z { return redis.Z{Score: at, Member: id} }
