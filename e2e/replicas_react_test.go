package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/internal/testservers/redis"
)

// What a user does at one replica reaches the leader, which is another process, at once: by
// notifications of PostgreSQL, also around PgBouncer, or by Redis.
func TestReplicasReactAtOnce(t *testing.T) {
	long(t, "it judges times, and runs alone")
	server := postgres.Start(t)
	bouncer := postgres.StartBouncer(t, server)
	through := func(set []string) (pooled []string, direct string) {
		for _, s := range set {
			if name, url, is := strings.Cut(s, ".url="); is {
				direct = name + ".direct_url=" + url
				s = strings.Replace(s, fmt.Sprintf("127.0.0.1:%d", server.Port),
					fmt.Sprintf("127.0.0.1:%d", bouncer.Port), 1)
			}
			pooled = append(pooled, s)
		}
		return pooled, direct
	}
	for name, set := range map[string]func() []string{
		"PostgreSQL": func() []string { return clusterStore(t, server) },
		"PostgreSQL and Redis": func() []string {
			return append(clusterStore(t, server), liveStore(redis.Start(t))...)
		},
		"PgBouncer": func() []string {
			pooled, direct := through(clusterStore(t, server))
			return append(pooled, direct)
		},
		"PgBouncer and Redis": func() []string {
			pooled, _ := through(clusterStore(t, server))
			return append(pooled, liveStore(redis.Start(t))...)
		},
	} {
		t.Run(name, func(t *testing.T) { testReactions(t, set()...) })
	}
}

// reactions are how long replicas took to react.
type reactions map[string][]time.Duration

func (r reactions) add(what string, took time.Duration) { r[what] = append(r[what], took) }

func testReactions(t *testing.T, set ...string) {
	tr := beginOnBucket(t, "create, pause and cancel at a replica that does not lead")
	r := startReplicas(t, tr, set...)
	r.stub.Intercept(func(_ http.ResponseWriter, request *http.Request, body []byte) bool {
		held := strings.Contains(string(body), "held")
		if held {
			<-request.Context().Done()
		}
		return held
	})
	took := reactions{}
	for round := range sized(8, 100) {
		r.react(t, round, took)
	}
	for what, most := range map[string]time.Duration{
		"first line after create":  150 * time.Millisecond,
		"lines ended after cancel": 100 * time.Millisecond,
		"last line after pause":    100 * time.Millisecond,
		"first line after resume":  150 * time.Millisecond,
		"event of pause elsewhere": 300 * time.Millisecond,
		newLine:                    2500 * time.Millisecond,
	} {
		all := took[what]
		slices.Sort(all)
		median, longest := all[len(all)/2], all[len(all)-1]
		t.Logf("%s: median %v, most %v", what, median.Round(time.Millisecond),
			longest.Round(time.Millisecond))
		judged, by := median, "median"
		if what == newLine {
			judged, by = longest, "longest"
		}
		if judged > most {
			t.Errorf("%s: %s %v, want at most %v", what, by, judged, most)
		}
	}
}

// newLine waits for a timer: PostgreSQL gets progress every two seconds, and events look every
// 0.3 s. Where in these a line ends is chance, which the median of a few does not show, but none
// takes longer than both.
const newLine = "event of a new line elsewhere"

// react creates, pauses, resumes and cancels a batch at different replicas.
func (r *replicas) react(t *testing.T, round int, took reactions) {
	t.Helper()
	here, there := r.api[round%2].Client(), r.api[(round+1)%2].Client()
	act := func(c *Client, id, action string) time.Time {
		t.Helper()
		began := time.Now()
		answer, err := c.Do(http.MethodPost, "/v1/batches/"+id+"/"+action, "", nil)
		if err != nil || answer.Status != http.StatusOK {
			t.Fatalf("%s: %v %s", action, err, answer.Body)
		}
		return began
	}
	lines := NewLines(fmt.Sprintf("held-%d", round), "m", 2*nodePerRunner)
	file, err := here.Upload(lines.Content)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	b, err := here.CreateBatch(file.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	events := there.Follow(t, b.ID)
	await(t, 10*time.Second, "that the lines are in flight", func() bool {
		return r.stub.InFlight() == nodePerRunner
	})
	sent := r.stub.AttemptList(lines)[0].Begin
	took.add("first line after create", sent.Sub(began))
	shown := events.Await(t, "lines in flight", func(e Event) bool {
		var p struct {
			InFlight int `json:"in_flight"`
		}
		return e.Name == "progress" && json.Unmarshal(e.Data, &p) == nil && p.InFlight > 0
	})
	took.add(newLine, shown.At.Sub(sent))

	began = act(here, b.ID, "cancel")
	await(t, 10*time.Second, "that no line is in flight", func() bool {
		return r.stub.InFlight() == 0
	})
	for _, a := range r.stub.AttemptList(lines) {
		took.add("lines ended after cancel", a.End.Sub(began))
	}
	there.AwaitEnd(t, b.ID, 20*time.Second)

	lines = NewLines(fmt.Sprintf("flow-%d", round), "m", 5000)
	b = here.Submit(t, lines.Content, "")
	await(t, 10*time.Second, "that lines are sent", func() bool {
		return r.stub.InFlight() == nodePerRunner
	})
	events = here.Follow(t, b.ID)
	began = act(there, b.ID, "pause")
	shown = events.Await(t, "pause", func(e Event) bool {
		return e.Name == "state" && strings.Contains(string(e.Data), `"paused":true`)
	})
	took.add("event of pause elsewhere", shown.At.Sub(began))
	await(t, 10*time.Second, "that no line is in flight", func() bool {
		return r.stub.InFlight() == 0
	})
	sentBefore := r.stub.AttemptList(lines)
	took.add("last line after pause", max(0, sentBefore[len(sentBefore)-1].Begin.Sub(began)))
	began = act(there, b.ID, "resume")
	await(t, 10*time.Second, "that lines are sent", func() bool {
		return len(r.stub.AttemptList(lines)) > len(sentBefore)
	})
	took.add("first line after resume",
		r.stub.AttemptList(lines)[len(sentBefore)].Begin.Sub(began))
	act(here, b.ID, "cancel")
	here.AwaitEnd(t, b.ID, 20*time.Second)
}
