package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// killer kills a daemon repeatedly, at random times or within an operation of a user.
type killer struct {
	d      *Daemon
	random *rand.Rand
	began  chan string    // operations, when they begin
	killed []kill         // by time
	within map[string]int // kills by the operation in progress
}

// anyTime is the label of kills at random times: mostly while lines are in flight, or at a start.
const anyTime = "any moment"

// aimed lists the operations within which daemons are killed.
var aimed = []string{"upload", "part", "assemble", "create", "pause", "resume", "cancel", "retry",
	"finalize", "delete batch", "delete file"}

func newKiller(d *Daemon, random *rand.Rand) *killer {
	return &killer{d: d, random: random, began: make(chan string), within: map[string]int{}}
}

// announce reports the beginning of an operation. It does not block.
func (k *killer) announce(operation string) {
	select {
	case k.began <- operation:
	default:
	}
}

// killOnce kills the daemon and starts it again.
func (k *killer) killOnce() {
	within := k.await()
	time.Sleep(time.Duration(k.random.ExpFloat64() * float64(10*time.Millisecond)))
	begin := time.Now()
	k.d.Kill()
	k.killed = append(k.killed, kill{begin, time.Now()})
	k.within[within]++
	k.d.Start()
	if k.random.IntN(4) > 0 { // otherwise the next kill may hit the start
		k.d.AwaitReady()
	}
}

// await waits for a random time or, mostly, for the beginning of an operation, rarely hit ones
// first.
func (k *killer) await() (within string) {
	if k.random.IntN(4) == 0 {
		time.Sleep(time.Duration(k.random.ExpFloat64() * float64(250*time.Millisecond)))
		return anyTime
	}
	least := k.within[aimed[0]]
	for _, operation := range aimed {
		least = min(least, k.within[operation])
	}
	limit := time.After(time.Second)
	for {
		select {
		case operation := <-k.began:
			if k.random.IntN(1+k.within[operation]-least) == 0 {
				return operation
			}
		case <-limit:
			return anyTime
		}
	}
}

// hits lists how often each operation was hit, for the log.
func (k *killer) hits() []string {
	var hits []string
	for operation, n := range k.within {
		hits = append(hits, fmt.Sprintf("%d x %s", n, operation))
	}
	slices.Sort(hits)
	return hits
}
