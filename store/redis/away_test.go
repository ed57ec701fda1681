package redis_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	servers "github.com/tidefill/tidefill/internal/testservers/redis"
	"github.com/tidefill/tidefill/store"
	"github.com/tidefill/tidefill/store/live"
	"github.com/tidefill/tidefill/store/redis"
)

// TestAway kills or suspends the server, and checks that calls fail at once, do without it, and use
// it again.
func TestAway(t *testing.T) {
	for name, fault := range map[string]struct{ begin, end func(*servers.Server) }{
		"killed":    {(*servers.Server).Kill, (*servers.Server).Restart},
		"suspended": {(*servers.Server).Suspend, (*servers.Server).Resume},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := servers.Start(t)
			cfg := config("redis://" + server.Addr)
			cfg.Timeout = 250 * time.Millisecond
			board := live.NewBoard()
			db := open(t, cfg, redis.Options{Progress: board})
			other := open(t, cfg, redis.Options{})
			publishUntil(t, db, time.Second)
			awaitEvent(t, db, other, 10*time.Second)

			fault.begin(server)
			// One call fails; those after it take no time.
			_, _ = db.Snapshots(t.Context(), "pools")
			var slowest time.Duration
			for range 200 {
				began := time.Now()
				_, err := db.Snapshots(t.Context(), "pools")
				if !errors.Is(err, store.ErrUnavailable) {
					t.Fatalf("read snapshots of a server that is away: %v", err)
				}
				if taken := db.Take(t.Context(), "tenant", live.Limit{Most: 1000,
					Per: time.Second}); taken.Wait != 0 {
					t.Errorf("a request within the limit shall wait for %v", taken.Wait)
				}
				owner := store.Owner{Node: "n", Incarnation: 1}
				if err := db.PostProgress(t.Context(), owner, map[string]store.ProgressPost{
					"b": {Progress: store.Progress{Completed: 7}}}); err != nil {
					t.Fatalf("post progress without the server: %v", err)
				}
				posts, err := db.ProgressPosts(t.Context(), []string{"b"})
				if err != nil || len(posts["b"]) != 1 || posts["b"][0].Completed != 7 {
					t.Fatalf("progress without the server: %v %v", posts, err)
				}
				own := false
				stop := db.Subscribe(func(live.Topic, []string) { own = true })
				db.Emit(live.Batches, "b")
				stop()
				if !own {
					t.Fatal("an event did not reach the process that sent it")
				}
				slowest = max(slowest, time.Since(began))
				time.Sleep(5 * time.Millisecond)
			}
			if slowest > 100*time.Millisecond {
				t.Errorf("a round of calls took %v while the server was away", slowest)
			}
			t.Logf("the slowest of 200 rounds of calls without the server took %v", slowest)

			began := time.Now()
			fault.end(server)
			publishUntil(t, db, 5*time.Second)
			awaitEvent(t, db, other, 10*time.Second)
			t.Logf("used again %v after it came back", time.Since(began))
		})
	}
}

// A process that sends nothing notices that the server is away.
func TestIdleProcessNoticesThatRedisIsAway(t *testing.T) {
	for name, fault := range map[string]struct{ begin, end func(*servers.Server) }{
		"killed":    {(*servers.Server).Kill, (*servers.Server).Restart},
		"suspended": {(*servers.Server).Suspend, (*servers.Server).Resume},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := servers.Start(t)
			db := open(t, config("redis://"+server.Addr), redis.Options{})
			await := func(away bool) {
				t.Helper()
				for end := time.Now().Add(15 * time.Second); (db.Away() != nil) != away; {
					if time.Now().After(end) {
						t.Fatalf("after 15 s, away: %v, want %v", db.Away(), away)
					}
					time.Sleep(10 * time.Millisecond)
				}
			}
			time.Sleep(100 * time.Millisecond) // it subscribes
			await(false)
			fault.begin(server)
			await(true)
			fault.end(server)
			await(false)
		})
	}
}

// TestMissedEvents checks that a subscriber is notified after a time in which events were lost.
func TestMissedEvents(t *testing.T) {
	server := servers.Start(t)
	db := open(t, config("redis://"+server.Addr), redis.Options{})
	all := make(chan live.Topic, 1000)
	defer db.Subscribe(func(topic live.Topic, ids []string) {
		if len(ids) == 0 {
			all <- topic
		}
	})()
	awaitEvent(t, db, open(t, config("redis://"+server.Addr), redis.Options{}), 10*time.Second)
	for len(all) > 0 {
		<-all
	}
	server.Kill()
	server.Restart()
	var topics []string
	for timeout := time.After(10 * time.Second); len(topics) < 4; {
		select {
		case topic := <-all:
			topics = append(topics, string(topic))
		case <-timeout:
			t.Fatalf("after the server was away the topics %v may have changed, want 4", topics)
		}
	}
	if slices.Sort(topics); len(slices.Compact(topics)) != 4 {
		t.Errorf("topics %v", topics)
	}
}

// TestFlushedEverySecond checks what flushing costs: posts and snapshots are back with the next
// ones, and nothing fails.
func TestFlushedEverySecond(t *testing.T) {
	server := servers.Start(t)
	db := open(t, config("redis://"+server.Addr), redis.Options{})
	other := open(t, config("redis://"+server.Addr), redis.Options{})
	owner := store.Owner{Node: "n", Incarnation: 1}
	flush := time.NewTicker(time.Second)
	defer flush.Stop()
	missing, rounds := 0, 0
	for end := time.After(4 * time.Second); ; rounds++ {
		select {
		case <-end:
			if missing > rounds/4 {
				t.Errorf("progress was missing in %d of %d rounds", missing, rounds)
			}
			t.Logf("progress was missing in %d of %d rounds of 20 ms", missing, rounds)
			return
		case <-flush.C:
			server.Do("FLUSHALL")
			server.Do("SCRIPT", "FLUSH")
		case <-time.After(20 * time.Millisecond):
		}
		posts, err := other.ProgressPosts(t.Context(), []string{"b"})
		if err != nil {
			t.Fatal(err)
		}
		if len(posts["b"]) == 0 {
			missing++
		}
		if err := db.PostProgress(t.Context(), owner, map[string]store.ProgressPost{
			"b": {Progress: store.Progress{Completed: 1}}}); err != nil {
			t.Fatal(err)
		}
		if err := db.Publish(t.Context(), "pools", live.Snapshot{Name: "x"}); err != nil {
			t.Fatal(err)
		}
		if db.Away() != nil {
			t.Fatalf("a flushed server counts as away: %v", db.Away())
		}
	}
}

// TestKeysExpire checks that nothing stays for ever.
func TestKeysExpire(t *testing.T) {
	server := servers.Start(t)
	db := open(t, config("redis://"+server.Addr), redis.Options{})
	publishUntil(t, db, time.Second)
	if err := db.PostProgress(t.Context(), store.Owner{Node: "n"},
		map[string]store.ProgressPost{"b": {}}); err != nil {
		t.Fatal(err)
	}
	db.Take(t.Context(), "tenant", live.Limit{Most: 1, Per: time.Minute})
	for _, key := range []string{"tidefill:snapshots:{pools}", "tidefill:progress:{b}",
		"tidefill:window:{tenant}"} {
		if ttl := server.Do("PTTL", key); ttl == ":-1" || ttl == ":-2" {
			t.Errorf("PTTL %s = %s, want a time (-1: it never expires, -2: there is none)", key,
				ttl)
		}
	}
}
