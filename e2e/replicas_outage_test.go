package e2e

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/internal/testservers/redis"
)

// storeTimeout is the limit of a call of the database in tests of outages.
const storeTimeout = 2 * time.Second

// While PostgreSQL is away every request of users is answered 503 soon, batches pause, and the
// daemons say why. Then batches go on by themselves, and every line has one result.
func TestUsersSeeThatPostgreSQLIsAway(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		suspended bool // else killed
		live      bool // beside Redis
		full      bool // only in the full suite
	}{
		{"killed", false, false, false},
		{"suspended beside Redis", true, true, false},
		{"suspended", true, false, true},
		{"killed beside Redis", false, true, true},
	} {
		if test.full && !sized(false, true) {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.name != "killed" {
				long(t, "another outage of a database")
			}
			server := postgres.Start(t)
			set := clusterStore(t, server)
			if test.live {
				set = append(set, liveStore(redis.Start(t))...)
			}
			testDatabaseOutage(t, func() (heal func()) {
				if test.suspended {
					return server.Suspend(t)
				}
				server.Kill(t)
				return func() { server.Restart(t) }
			}, test.live, set...)
		})
	}
}

func testDatabaseOutage(t *testing.T, hit func() (heal func()), live bool, set ...string) {
	tr := beginOnBucket(t, "users while PostgreSQL is away")
	r := startReplicas(t, tr, append(set,
		"store.cluster.metadata.tuning.timeout="+storeTimeout.String())...)
	o, inputs := r.objects(t)
	c := r.api[0].Client()

	events := c.Follow(t, o.Running)
	uploading := c.BeginUpload(NewLines("interrupted", "m", 10).Content)
	heal := hit()
	began := time.Now()
	defer func() { heal() }()
	interrupted := uploading.End()
	// A request makes a few calls, each of which may use up its time: those that fail clean up.
	slowest := c.CheckRefused(t, 3*storeTimeout+2*time.Second, UserRequests(o))
	t.Logf("the slowest request was refused after %v", slowest.Round(10*time.Millisecond))
	if answer := <-interrupted; answer.Status != http.StatusServiceUnavailable {
		t.Errorf("an upload in progress: got %d %s, want 503", answer.Status, answer.Body)
	}

	events.Await(t, "the store is away", func(e Event) bool {
		return e.Name == "reason" && strings.Contains(string(e.Data), `"store_unreachable: `)
	})
	await(t, nodeLease+10*time.Second, "that no line is sent", func() bool {
		return r.stub.InFlight() == 0 && r.leaderSays(t, "store_unreachable")
	})
	t.Logf("paused after %v", time.Since(began).Round(10*time.Millisecond))
	sent := r.stub.Requests()
	for name, d := range r.daemons {
		role, _, _ := strings.Cut(name, "-")
		await(t, 10*time.Second, "/readyz of "+name+" to say so", func() bool {
			ready := d.Readiness(t)
			return !ready.Ready && strings.HasPrefix(strings.Join(ready.Roles[role].Waiting, ";"),
				"the store: ")
		})
		out, status := d.Run("explain", "--admin", "http://"+d.Admin)
		if status != 0 || !strings.Contains(out, "Not ready: the store: ") {
			t.Errorf("explain at %s: status %d\n%s", name, status, out)
		}
		await(t, 10*time.Second, name+" to show a lag of changes", func() bool {
			return d.metric(t, "tidefill_change_feed_lag_seconds") >= 2
		})
		if live {
			await(t, 10*time.Second, name+" to show the reason that Redis has", func() bool {
				return d.PoolReason(t) == "store_unreachable"
			})
		}
	}
	if again := r.stub.Requests(); again > sent {
		t.Errorf("%d lines were sent while PostgreSQL was away for longer than the lease",
			again-sent)
	}

	heal()
	heal = func() {}
	healed := time.Now()
	c.AwaitAnswers(t, 30*time.Second, UserRequests(o))
	await(t, 30*time.Second, "that lines are sent again", func() bool {
		return r.stub.Requests() > sent
	})
	t.Logf("lines are sent again after %v", time.Since(healed).Round(10*time.Millisecond))
	for name, d := range r.daemons {
		await(t, 20*time.Second, name+" to show that all is back", func() bool {
			age := d.metric(t, "tidefill_snapshot_lag_seconds")
			// The leader has no peer that leads.
			fresh := age < 10 || math.IsNaN(age) && strings.HasPrefix(name, "dispatch")
			return fresh && d.metric(t, "tidefill_change_feed_lag_seconds") < 3 &&
				d.metric(t, `tidefill_postgres_failovers_total{event="outage"}`) >= 1
		})
	}
	tr.Tried++
	events.Await(t, "done", func(e Event) bool { return e.Name == "done" })
	c.CheckFiles(t)
	r.checkResults(t, tr, inputs)
	if tr.Resent = r.resent(inputs[o.Running]); tr.Resent > 3*nodePerRunner {
		t.Errorf("%d lines were sent again", tr.Resent)
	}
}

// objects makes the objects of a user: a batch that has ended and one that runs. inputs are those
// of both.
func (r *replicas) objects(t *testing.T) (o Objects, inputs map[string]Lines) {
	t.Helper()
	c := r.api[0].Client()
	few, many := NewLines("ended", "m", 20), NewLines("running", "m", 2500)
	ended := c.Submit(t, few.Content, "")
	ended = c.AwaitEnd(t, ended.ID, time.Minute)
	running := c.Submit(t, many.Content, "")
	o = Objects{Ended: ended.ID, Running: running.ID, Input: ended.InputFileID}
	if ended.OutputFileID == nil {
		t.Fatalf("batch %s has no output: %+v", ended.ID, ended)
	}
	o.Output = *ended.OutputFileID
	var made struct{ ID string }
	if err := c.json("POST", "/v1/uploads", "application/json", strings.NewReader(
		`{"filename":"in.jsonl","purpose":"batch","mime_type":"text/plain","bytes":10}`),
		&made); err != nil {
		t.Fatal(err)
	}
	o.Upload, o.Part = made.ID, "part_none"
	c.Await(t, running.ID, 30*time.Second, func(b Batch) bool {
		return b.RequestCounts.Completed > 0 && len(r.stub.AttemptList(many)) > 100
	})
	return o, map[string]Lines{ended.ID: few, running.ID: many}
}

// resent returns how many requests of the lines there were beyond one of each.
func (r *replicas) resent(lines Lines) int {
	return len(r.stub.AttemptList(lines)) - len(lines.Bodies)
}

// leaderSays reports whether the daemon that leads shows the reason for its pool.
func (r *replicas) leaderSays(t *testing.T, reason string) bool {
	t.Helper()
	for _, d := range r.dispatch {
		if d.PoolReason(t) == reason {
			return true
		}
	}
	return false
}

// Connections to PostgreSQL are cut again and again. Users who repeat refused requests with their
// keys get one batch for each, and never an internal error.
func TestUsersWhileConnectionsAreCut(t *testing.T) {
	long(t, "connections are cut for half a minute")
	t.Parallel()
	tr := beginOnBucket(t, "users while connections to PostgreSQL are cut")
	server := postgres.Start(t)
	r := startReplicas(t, tr, clusterStore(t, server)...)
	lines := NewLines("cut", "m", 3)
	input, err := r.api[0].Client().Upload(lines.Content)
	if err != nil {
		t.Fatal(err)
	}
	const users, each = 4, 15
	var refused, unknown atomic.Int64
	var all sync.WaitGroup
	made := make([][]string, users)
	for user := range users {
		all.Go(func() {
			for i := range each {
				key := fmt.Sprintf("cut-%d-%d", user, i)
				for try, began := 0, time.Now(); ; try++ {
					c := r.any(user + i + try).Client()
					b, err := c.CreateBatch(input.ID, `{"priority":1}`, "Idempotency-Key", key)
					if err == nil {
						made[user] = append(made[user], b.ID)
						break
					}
					var got statusError
					switch status := errors.As(err, &got); {
					case time.Since(began) > 2*time.Minute:
						t.Errorf("%s: refused for ever: %v", key, err)
						return
					case status && got.answer.Status == http.StatusServiceUnavailable:
						refused.Add(1)
					case status && got.answer.Status == http.StatusConflict: // it is being made
						unknown.Add(1)
					default:
						t.Errorf("%s: %v", key, err)
						return
					}
					time.Sleep(20 * time.Millisecond)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		all.Wait()
	}()
	for cutting := true; cutting; {
		server.Cut(t, "db1")
		tr.Tried++
		select {
		case <-done:
			cutting = false
		case <-time.After(30 * time.Millisecond):
		}
	}
	t.Logf("%d cuts: %d requests were refused, %d in progress", tr.Tried, refused.Load(),
		unknown.Load())
	if refused.Load() == 0 {
		t.Error("no request was refused, so the test shows nothing")
	}
	c := r.api[0].Client()
	ids := map[string]bool{}
	for _, own := range made {
		for _, id := range own {
			ids[id] = true
			c.CheckComplete(t, c.AwaitEnd(t, id, time.Minute), lines)
		}
	}
	var list struct{ Data []Batch }
	if err := c.json("GET", "/v1/batches?limit=100", "", nil, &list); err != nil {
		t.Fatal(err)
	}
	if len(ids) != users*each || len(list.Data) != len(ids) {
		t.Errorf("%d requests made %d batches, and there are %d", users*each, len(ids),
			len(list.Data))
	}
}
