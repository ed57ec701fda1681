package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tidefill/tidefill/internal/testservers/s3"
)

// event is one kind of fault of an installation.
type event struct {
	name   string
	weight int
	// begin lets it happen to a daemon, and returns how long it lasts and what ends it; nil: it is
	// over, or could not happen now. busy marks what two faults must not do at once.
	begin func(daemon string) (lasts time.Duration, heal func())
	// shared events are about a server, and the others about one daemon.
	shared string
	// link is the server to which the daemon's connection has the fault; empty: the process.
	link string
	// loses events may cost the lines in flight of the daemon, or of all daemons, and those that
	// were answered within the last commit interval.
	loses bool
}

// underway is an event that has not ended.
type underway struct {
	event event
	on    string // a daemon or one of its links, or the server of a shared event
	until time.Time
	heal  func()
	fault *fault
}

// fault is an event as far as it may cost requests.
type fault struct {
	daemon     string // empty: all
	begin, end time.Time
}

// chaosEvents has events happen to an installation, several at a time.
type chaosEvents struct {
	in       *installation
	random   *rand.Rand
	events   []event
	underway []underway
	counts   map[string]int
	faults   []*fault
}

func newChaosEvents(in *installation, random *rand.Rand) *chaosEvents {
	c := &chaosEvents{in: in, random: random, counts: map[string]int{}}
	short := func() time.Duration { return c.upTo(3 * time.Second) }
	link := func(name string, weight int, relays func(*links) []*Relay) {
		for fault, how := range map[RelayFault]string{Refuses: "cut off", Drops: "silent"} {
			c.add(event{name: name + " " + how, weight: weight, link: name, loses: true,
				begin: func(daemon string) (time.Duration, func()) {
					all := relays(in.links[daemon])
					set := func(f RelayFault) {
						for _, relay := range all {
							relay.Set(f)
						}
					}
					set(fault)
					return c.upTo(bucketLease + 4*time.Second), func() { set(Passes) }
				}})
		}
		c.add(event{name: name + ": connections cut", weight: 2 * weight, link: name,
			loses: true,
			begin: func(daemon string) (time.Duration, func()) {
				for _, relay := range relays(in.links[daemon]) {
					relay.Cut()
				}
				return 0, nil
			}})
	}
	link("PostgreSQL", 3, func(l *links) []*Relay { return l.postgres[:] })
	link("bucket", 3, func(l *links) []*Relay { return []*Relay{l.bucket} })
	link("runner", 3, func(l *links) []*Relay { return []*Relay{l.runner} })
	link("Redis", 1, func(l *links) []*Relay { return []*Relay{l.live} })
	c.add(event{name: "daemon killed", weight: 12, loses: true,
		begin: func(daemon string) (time.Duration, func()) {
			d := in.daemons[daemon]
			in.down[daemon] = true
			d.Kill()
			return c.upTo(2 * time.Second), func() { in.down[daemon] = false; d.Start() }
		}})
	c.add(event{name: "daemon frozen", weight: 8, loses: true,
		begin: func(daemon string) (time.Duration, func()) {
			d := in.daemons[daemon]
			d.Signal(syscall.SIGSTOP)
			lasts := bucketLease + time.Second + short()
			if random.IntN(2) == 0 {
				lasts = short()
			}
			return lasts, func() { d.Signal(syscall.SIGCONT) }
		}})
	c.add(event{name: "PostgreSQL killed", weight: 4, shared: "postgres", loses: true,
		begin: func(string) (time.Duration, func()) {
			in.primary.Kill(in.t)
			return short(), func() { in.primary.Restart(in.t) }
		}})
	c.add(event{name: "PostgreSQL's sessions ended", weight: 4, shared: "postgres", loses: true,
		begin: func(string) (time.Duration, func()) {
			in.primary.Cut(in.t, in.database)
			return 0, nil
		}})
	c.add(event{name: "PostgreSQL suspended", weight: 3, shared: "postgres", loses: true,
		begin: func(string) (time.Duration, func()) { return short(), in.primary.Suspend(in.t) }})
	c.add(event{name: "standby promoted", weight: 3, shared: "postgres", loses: true,
		begin: func(string) (time.Duration, func()) {
			in.failOver()
			return 0, nil
		}})
	c.add(event{name: "bucket killed", weight: 2, shared: "bucket", loses: true,
		begin: func(string) (time.Duration, func()) {
			in.bucket.Kill()
			return short(), func() {
				if err := in.bucket.Resume(); err != nil {
					in.t.Fatal(err)
				}
			}
		}})
	for fault, name := range map[s3.Fault]string{s3.Error: "500", s3.SlowDown: "503 SlowDown",
		s3.Stall: "no answer", s3.Lost: "answers lost", s3.CutRequest: "bodies cut",
		s3.CutResponse: "answers cut", s3.StallRequest: "answers stall"} {
		c.add(event{name: "bucket: " + name, weight: 3, link: "storage", loses: true,
			begin: func(daemon string) (time.Duration, func()) {
				storage, share := in.links[daemon].storage, 0.2+0.8*random.Float64()
				storage.Choose(func(*http.Request) s3.Fault {
					if rand.Float64() < share {
						return fault
					}
					return s3.None
				})
				return c.upTo(4 * time.Second), func() { storage.Choose(nil) }
			}})
	}
	c.add(event{name: "Redis killed", weight: 3, shared: "redis",
		begin: func(string) (time.Duration, func()) {
			in.live.Kill()
			return short(), in.live.Restart
		}})
	c.add(event{name: "Redis flushed", weight: 5, shared: "redis",
		begin: func(string) (time.Duration, func()) {
			in.live.Do("FLUSHALL")
			return 0, nil
		}})
	c.add(event{name: "Redis suspended", weight: 2, shared: "redis",
		begin: func(string) (time.Duration, func()) {
			in.live.Suspend()
			return short(), in.live.Resume
		}})
	// The order of maps is random, and a seed repeats a run.
	slices.SortFunc(c.events, func(a, b event) int { return strings.Compare(a.name, b.name) })
	return c
}

func (c *chaosEvents) add(e event) { c.events = append(c.events, e) }

// upTo returns a random duration below limit.
func (c *chaosEvents) upTo(limit time.Duration) time.Duration {
	return time.Duration(c.random.Float64() * float64(limit))
}

// next draws an event and begins it. It returns false if it is about something that has a fault
// already.
func (c *chaosEvents) next() bool {
	total := 0
	for _, e := range c.events {
		total += e.weight
	}
	drawn, chosen := c.random.IntN(total), event{}
	for _, e := range c.events {
		if drawn -= e.weight; drawn < 0 {
			chosen = e
			break
		}
	}
	daemon := c.in.names[c.random.IntN(len(c.in.names))]
	if sender := c.in.stub.Sender(); c.random.IntN(2) == 0 && sender != "" {
		daemon = sender // most depends on the one that leads
	}
	on := daemon + "/" + chosen.link
	if chosen.shared != "" {
		on, daemon = chosen.shared, ""
	}
	if slices.ContainsFunc(c.underway, func(u underway) bool { return u.on == on }) {
		return false
	}
	f := &fault{daemon: daemon, begin: time.Now()}
	lasts, heal := chosen.begin(daemon)
	c.counts[chosen.name]++
	if f.end = time.Now(); chosen.loses {
		c.faults = append(c.faults, f)
	}
	c.in.t.Logf("%s %s %s for %v", time.Now().Format("15:04:05.000"), chosen.name, daemon,
		lasts.Round(time.Millisecond))
	if heal != nil {
		c.underway = append(c.underway, underway{chosen, on, time.Now().Add(lasts), heal, f})
	}
	return true
}

// heal ends what lasts no longer; all: everything.
func (c *chaosEvents) heal(all bool) {
	c.underway = slices.DeleteFunc(c.underway, func(u underway) bool {
		if !all && time.Now().Before(u.until) {
			return false
		}
		u.heal()
		u.fault.end = time.Now()
		return true
	})
}

// run has n events happen, one after each of random pauses with a mean.
func (c *chaosEvents) run(n int, mean time.Duration, alive func() bool) {
	for c.happened() < n && alive() {
		for tried := 0; !c.next() && tried < 20; tried++ {
		}
		pause := min(5*mean, time.Duration(c.random.ExpFloat64()*float64(mean)))
		for end := time.Now().Add(pause); ; {
			c.heal(false)
			c.in.supervise()
			if rest := time.Until(end); rest <= 0 {
				break
			} else {
				time.Sleep(min(rest, 50*time.Millisecond))
			}
		}
	}
	c.heal(true)
	c.in.supervise()
}

func (c *chaosEvents) happened() (n int) {
	for _, count := range c.counts {
		n += count
	}
	return n
}

// summary lists how often each event happened.
func (c *chaosEvents) summary() string {
	var names []string
	for name, n := range c.counts {
		names = append(names, fmt.Sprintf("%d %s", n, name))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// mayRepeat returns how many lines may be sent again: for each fault, those in flight of the
// daemons that it hit, and what these sent within a commit interval before it and while it lasted.
func (c *chaosEvents) mayRepeat(attempts AttemptList) (most int) {
	counted := make([]bool, len(attempts))
	for _, f := range c.faults {
		daemons := 1
		if f.daemon == "" {
			daemons = len(c.in.names)
		}
		most += daemons * nodePerRunner
		from := f.begin.Add(-commitInterval)
		first, _ := slices.BinarySearchFunc(attempts, from, func(a Attempt, t time.Time) int {
			return a.Begin.Compare(t)
		})
		for i := first; i < len(attempts) && attempts[i].Begin.Before(f.end); i++ {
			if !counted[i] && (f.daemon == "" || f.daemon == attempts[i].Node) {
				counted[i] = true
				most++
			}
		}
	}
	return most
}
