package e2e

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/tidefill/tidefill/internal/testservers/postgres"
	"github.com/tidefill/tidefill/internal/testservers/redis"
)

// A leader that is asked to end hands its pools over: another one sends within a second, and no
// line is sent twice. One that is killed is replaced when its lease has ended.
func TestReplicasHandOver(t *testing.T) {
	long(t, "it judges times, and runs alone")
	server := postgres.Start(t)
	for name, live := range map[string]func() []string{
		"PostgreSQL":           func() []string { return nil },
		"PostgreSQL and Redis": func() []string { return liveStore(redis.Start(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			testHandOver(t, append(clusterStore(t, server), live()...)...)
		})
	}
}

func testHandOver(t *testing.T, set ...string) {
	tr := beginOnBucket(t, "a rolling update, and leaders killed")
	r := startReplicas(t, tr, set...)
	inputs := map[string]Lines{}
	feed := func(name string) {
		lines := NewLines(name, "m", 2000)
		inputs[r.any(len(inputs)).Client().Submit(t, lines.Content, "").ID] = lines
	}
	// end sends a signal to the leader, and returns after what time another one has sent.
	end := func(signal syscall.Signal, limit time.Duration) time.Duration {
		feed(fmt.Sprintf("%v-%d", signal, len(inputs)))
		before := time.Now()
		sender := ""
		await(t, 20*time.Second, "that a daemon sends", func() bool {
			sent := r.stub.AttemptList(Lines{}).After(before)
			sender = sent.Sender()
			return len(sent) > 200
		})
		d := r.daemons[sender]
		began := time.Now()
		d.Signal(signal)
		var first time.Time
		await(t, limit+10*time.Second, "that another daemon sends", func() bool {
			others := slices.DeleteFunc(r.stub.AttemptList(Lines{}).After(began), func(
				a Attempt) bool {
				return a.Node == sender
			})
			if len(others) > 0 {
				first = others[0].Begin
			}
			return len(others) > 0
		})
		d.Wait(20 * time.Second)
		d.Start()
		d.AwaitReady()
		tr.Tried++
		return first.Sub(began)
	}
	var handed []time.Duration
	for range sized(4, 20) {
		handed = append(handed, end(syscall.SIGTERM, time.Second))
	}
	if again := r.stub.Repeats(); again > 0 {
		t.Errorf("%d lines were sent again after leaders had handed over", again)
	}
	slices.Sort(handed)
	t.Logf("first line of the next leader after SIGTERM: %v", handed)
	if median := handed[len(handed)/2]; median > time.Second {
		t.Errorf("the next leader sent %v after SIGTERM, want at most 1s", median)
	}
	var killed []time.Duration
	rounds := sized(2, 20)
	for range rounds {
		killed = append(killed, end(syscall.SIGKILL, nodeLease+2*time.Second))
	}
	slices.Sort(killed)
	t.Logf("first line of the next leader after SIGKILL: %v", killed)
	if most := killed[len(killed)-1]; most > nodeLease+2*time.Second {
		t.Errorf("the next leader sent %v after SIGKILL, want at most the lease of %v and 2s", most,
			nodeLease)
	}
	r.checkResults(t, tr, inputs)
	// Lines in flight, and those answered within the last group commit.
	if tr.Resent = r.stub.Repeats(); tr.Resent > rounds*3*nodePerRunner {
		t.Errorf("%d lines were sent again after %d kills", tr.Resent, rounds)
	}
}
