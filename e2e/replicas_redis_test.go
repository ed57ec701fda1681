package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/internal/testservers/redis"
)

// Nothing depends on what is in Redis: it is flushed every second, killed, suspended and started
// again while batches run, and every line has one result.
func TestRedisMayBeLost(t *testing.T) {
	t.Parallel()
	server := redis.Start(t)
	tr := beginOnBucket(t, "Redis flushed, killed and suspended")
	r := startReplicas(t, tr, append(clusterStore(t, postgres.Start(t)), liveStore(server)...)...)
	inputs := map[string]Lines{}
	slowest := time.Duration(0)
	feed := func(name string) {
		lines := NewLines(name, "m", inShort(500, 1500))
		file, err := r.any(len(inputs)).Client().Upload(lines.Content)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		b, err := r.any(len(inputs)+1).Client().CreateBatch(file.ID, `{"priority":9}`)
		if err != nil {
			t.Fatal(err)
		}
		slowest = max(slowest, time.Since(began))
		inputs[b.ID] = lines
	}
	degraded := func() bool {
		for _, d := range r.daemons {
			if !d.Readiness(t).Ready || len(d.Readiness(t).Degraded) == 0 {
				return false
			}
		}
		return true
	}
	for round := range sized(1, 10) {
		for i := range inShort(2, 4) {
			feed(fmt.Sprintf("flush-%d-%d", round, i))
			server.Do("FLUSHALL")
			time.Sleep(time.Second)
			tr.Tried++
		}
		for fault, heal := range map[string]func(){"killed": server.Restart,
			"suspended": server.Resume} {
			if fault == "killed" {
				server.Kill()
			} else {
				server.Suspend()
			}
			feed(fmt.Sprintf("%s-%d", fault, round))
			await(t, 10*time.Second, "that all are ready, and say that Redis is "+fault, degraded)
			from := r.stub.Requests()
			feed(fmt.Sprintf("without-%s-%d", fault, round))
			await(t, 10*time.Second, "that lines are sent while Redis is "+fault, func() bool {
				return r.stub.Requests() > from+100
			})
			heal()
			feed(fmt.Sprintf("after-%s-%d", fault, round))
			await(t, 10*time.Second, "that Redis is used again", func() bool {
				for _, d := range r.daemons {
					if len(d.Readiness(t).Degraded) > 0 {
						return false
					}
				}
				return true
			})
			tr.Tried++
		}
	}
	r.checkResults(t, tr, inputs)
	if tr.Resent = r.stub.Repeats(); tr.Resent > 0 {
		t.Errorf("%d lines were sent again, although no daemon ended", tr.Resent)
	}
	if slowest > 3*time.Second {
		t.Errorf("a request to create a batch took %v", slowest)
	}
	t.Logf("the slowest request to create a batch took %v", slowest)
}
