package e2e

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// killer kills a daemon again and again, at any moment or within an operation that a user has
// begun.
type killer struct {
	d      *Daemon
	random *rand.Rand
	begun  chan string    // operations, as they begin
	killed []moment       // by time
	within map[string]int // kills by the operation that was under way
}

// anyMoment is what a kill hits that aims at nothing: lines under way most of the time, or a start.
const anyMoment = "any moment"

// aimed are the operations that kills aim at.
var aimed = []string{"upload", "part", "assemble", "create", "pause", "resume", "cancel", "retry",
	"finalize", "delete batch", "delete file"}

func newKiller(d *Daemon, random *rand.Rand) *killer {
	return &killer{d: d, random: random, begun: make(chan string), within: map[string]int{}}
}

// announce says that an operation begins. It waits for nobody.
func (k *killer) announce(operation string) {
	select {
	case k.begun <- operation:
	default:
	}
}

// strike kills the daemon once and starts it again.
func (k *killer) strike() {
	within := k.await()
	time.Sleep(time.Duration(k.random.ExpFloat64() * float64(10*time.Millisecond)))
	begin := time.Now()
	k.d.Kill()
	k.killed = append(k.killed, moment{begin, time.Now()})
	k.within[within]++
	k.d.Start()
	if k.random.IntN(4) > 0 { // else the next kill may hit the start
		k.d.AwaitReady()
	}
}

// await waits for a random time, or in most cases for an operation to begin, the rarely hit ones
// first.
func (k *killer) await() (within string) {
	if k.random.IntN(4) == 0 {
		time.Sleep(time.Duration(k.random.ExpFloat64() * float64(250*time.Millisecond)))
		return anyMoment
	}
	least := k.within[aimed[0]]
	for _, operation := range aimed {
		least = min(least, k.within[operation])
	}
	limit := time.After(time.Second)
	for {
		select {
		case operation := <-k.begun:
			if k.random.IntN(1+k.within[operation]-least) == 0 {
				return operation
			}
		case <-limit:
			return anyMoment
		}
	}
}

// aims lists how often each operation was hit, for the log.
func (k *killer) aims() []string {
	var aims []string
	for operation, n := range k.within {
		aims = append(aims, fmt.Sprintf("%d x %s", n, operation))
	}
	slices.Sort(aims)
	return aims
}
