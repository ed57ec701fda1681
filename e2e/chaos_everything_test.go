package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

var eventsFlag = flag.Int("events", 1000, "how many events the chaos of the cluster has in full")

// userLimit limits one request of a user. It is above the lease, so that a daemon that waits for a
// leader can answer.
const userLimit = 10 * time.Second

// endLimit limits how long a batch may run on after the last event. It is far above what the work
// takes, since a slow machine is not a loss.
const endLimit = 5 * time.Minute

// Everything fails at random times, several things at once, while users work through any of three
// daemons. Nothing is lost, doubled or back after it was deleted, and the answers to users are
// those of one machine.
func TestChaosClusterEverything(t *testing.T) {
	long(t, "a fault of the suite of chaos")
	t.Parallel()
	tr := beginOnBucket(t, "3 daemons, PostgreSQL with a standby, bucket, Redis: everything")
	random := seeded(t)
	in := newInstallation(t, tr)
	history := NewHistory()
	working, stopWorking := context.WithCancel(t.Context())
	defer stopWorking()
	// Users finish what they began.
	finishing, stopFinishing := context.WithCancel(t.Context())
	var users []*user
	var sdkUsers []*sdkUser
	var all sync.WaitGroup
	defer func() { stopFinishing(); all.Wait() }()
	busy := func(act func(context.Context) error) {
		all.Go(func() {
			for working.Err() == nil {
				if err := act(finishing); err != nil {
					if finishing.Err() == nil {
						t.Errorf("%s: %v", time.Now().Format("15:04:05.000"), err)
					}
					stopWorking()
					return
				}
			}
		})
	}
	for i := range 6 {
		source := func() *rand.Rand { return rand.New(rand.NewPCG(random.Uint64(), uint64(i))) }
		u := newUser(fmt.Sprintf("user%d", i), in.client(source(), userLimit), source(),
			func(string) {})
		users = append(users, u)
		if i%2 == 0 {
			s := newSDKUser(u, history)
			sdkUsers = append(sdkUsers, s)
			busy(s.act)
			continue
		}
		// Pauses are left to the other users: one that was given up can take effect later.
		activities := []func(context.Context) error{u.runOne, u.runOfParts, u.cancel, u.expire,
			u.stop, u.retry, u.remove}
		busy(func(ctx context.Context) error {
			u.done++
			return activities[u.random.IntN(len(activities))](ctx)
		})
	}
	events := newChaosEvents(in, random)
	events.run(sized(40, *eventsFlag), sized(1500*time.Millisecond, 900*time.Millisecond),
		func() bool { return working.Err() == nil })
	tr.Tried = events.happened()
	t.Logf("%d events: %s; daemons ended by themselves %d times", tr.Tried, events.summary(),
		in.exits)
	stopWorking()
	finished := make(chan struct{})
	go func() { all.Wait(); close(finished) }()
	for deadline := time.After(endLimit); ; {
		select {
		case <-finished:
		case <-time.After(100 * time.Millisecond):
			in.supervise()
			continue
		case <-deadline:
			stopFinishing()
			all.Wait()
			t.Errorf("users did not finish within %v after the last event", endLimit)
		}
		break
	}
	if t.Failed() {
		in.describeUnfinished(users)
		t.FailNow()
	}
	for _, name := range in.names {
		in.daemons[name].AwaitReady()
	}
	checkPromises(t, tr, in.daemons["a"], users)
	for _, u := range sdkUsers {
		for _, file := range u.deleted {
			if err := u.findFile(finishing, file); err != nil {
				t.Error(err)
			}
		}
		for _, p := range u.batches {
			if _, err := u.get(finishing, p.id); err != nil {
				t.Error(err)
			}
		}
	}
	checkHistory(t, userModel, history.Calls())
	tr.Resent = in.stub.Repeats()
	if most := events.mayRepeat(in.stub.AttemptList(Lines{})); tr.Resent > most {
		t.Errorf("%d lines were sent again, want at most %d", tr.Resent, most)
	}
	t.Logf("%d requests of lines, %d sent again", in.stub.Requests(), tr.Resent)
}

// describeUnfinished logs the batches that have not ended.
func (in *installation) describeUnfinished(users []*user) {
	c := in.client(rand.New(rand.NewPCG(1, 1)), userLimit)
	for _, u := range users {
		for _, p := range u.batches {
			if b, err := c.Batch(p.id); !p.deleted && (err != nil || !b.Ended()) {
				waiting := ""
				if b.Tidefill.Waiting != nil {
					waiting = *b.Tidefill.Waiting
				}
				in.t.Logf("batch %s of %s is %s, %+v, in flight %d, waiting %q, %v", p.id, u.name,
					b.Status, b.RequestCounts, b.Tidefill.InFlight, waiting, err)
			}
		}
	}
}
