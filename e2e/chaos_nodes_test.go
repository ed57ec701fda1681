package e2e

import (
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	nodeLease     = 3 * time.Second
	nodePerRunner = 20
	// takeoverLimit is the lease plus the time to notice its end and load the batches.
	takeoverLimit = nodeLease + 3*time.Second
)

// nodes are daemons that share a store.
type nodes struct {
	stub    *Stub
	daemons map[string]*Daemon
	names   []string
}

func startNodes(t *testing.T, tr *Trial, count int, set ...string) *nodes {
	t.Helper()
	n := &nodes{stub: NewStub(t, "m"), daemons: map[string]*Daemon{},
		names: []string{"a", "b", "c"}[:count]}
	n.stub.MinDelay, n.stub.MaxDelay = 5*time.Millisecond, 25*time.Millisecond
	data := t.TempDir()
	for _, name := range n.names {
		upstreams := fmt.Sprintf("upstreams=[{url: %q, headers: {%s: %s}}]", n.stub.URL, NodeHeader,
			name)
		limit := fmt.Sprintf("flowcontrol.fixed.per_runner=%d", nodePerRunner)
		settings := append(with("dispatch.tuning.lease_ttl="+nodeLease.String(), limit, upstreams),
			set...)
		n.daemons[name] = tr.Watch(NewDaemon(t, Options{Data: data, Set: settings, Args: []string{
			"--node", name}}))
	}
	return n
}

// any returns each daemon in turn.
func (n *nodes) any(i int) *Daemon { return n.daemons[n.names[i%len(n.names)]] }

// Several daemons on one store respect every limit as one daemon does.
func TestChaosNodesRespectLimits(t *testing.T) {
	long(t, "a fault of the suite of chaos")
	t.Parallel()
	for _, count := range []int{2, 3} {
		t.Run(fmt.Sprintf("%d daemons", count), func(t *testing.T) {
			tr := begin(t, fmt.Sprintf("%d daemons, every limit", count))
			n := startNodes(t, tr, count)
			n.stub.Intercept(refuseMarked)
			c := n.any(0).Client()
			type limited struct {
				batch Batch
				lines Lines
			}
			submit := func(i int, name, extensions string, lines int) limited {
				l := limited{lines: NewLines(name, "m", lines)}
				l.batch = n.any(i).Client().Submit(t, l.lines.Content, extensions)
				return l
			}
			narrow := submit(0, "narrow", `{"max_concurrency":5}`, 300)
			narrower := submit(1, "narrower", `{"max_concurrency":1}`, 60)
			tokens := submit(2, "tokens", `{"max_total_tokens":1500}`, 2000)
			failing := submit(3, refusal, `{"max_failed_lines":10}`, 1000)
			wide := submit(4, "wide", "", 1500)
			all := []limited{narrow, narrower, tokens, failing, wide}
			for i := range all {
				all[i].batch = c.AwaitEnd(t, all[i].batch.ID, time.Minute)
				sum := c.CheckOnce(t, all[i].batch, all[i].lines)
				tr.Lost += sum.Lost
				tr.Doubled += sum.Doubled
				n.any(i).Verify(t, all[i].batch.ID)
				tr.Tried++
			}
			narrow, narrower, tokens, failing, wide = all[0], all[1], all[2], all[3], all[4]
			if most := n.stub.AttemptList(narrow.lines).Most(nil); most > 5 {
				t.Errorf("%d lines of the batch with max_concurrency 5 were in flight at once",
					most)
			}
			if most := n.stub.AttemptList(narrower.lines).Most(nil); most > 1 {
				t.Errorf("%d lines of the batch with max_concurrency 1 were in flight at once",
					most)
			}
			// Lines in flight when a limit is reached may finish.
			const tokensPerLine = 5
			if used := tokens.batch.RequestCounts.Completed *
				tokensPerLine; used > 1500+nodePerRunner*tokensPerLine ||
				tokens.batch.Status != "failed" {
				t.Errorf("the batch with max_total_tokens 1500 is %s and used %d",
					tokens.batch.Status, used)
			}
			if refused := refusedLines(t, c, failing.batch); refused > 10+nodePerRunner ||
				failing.batch.Status != "failed" {
				t.Errorf(
					"the batch with max_failed_lines 10 is %s and %d of its lines were refused",
					failing.batch.Status, refused)
			}
			for _, l := range []limited{narrow, narrower, wide} {
				c.CheckComplete(t, l.batch, l.lines)
			}
			if most := n.stub.AttemptList(Lines{}).Most(nil); most > nodePerRunner {
				t.Errorf("%d lines were in flight at the runner with per_runner %d", most,
					nodePerRunner)
			}
			if tr.Resent = n.stub.Repeats(); tr.Resent > 0 {
				t.Errorf("%d lines were sent again without a fault", tr.Resent)
			}
		})
	}
}

// refusedLines returns the number of lines of a batch that the runner refused. The error file also
// has the lines that did not run.
func refusedLines(t *testing.T, c *Client, b Batch) (refused int) {
	t.Helper()
	_, failed := c.Results(t, b)
	for _, r := range failed {
		if r.Response != nil {
			refused++
		}
	}
	return refused
}

// The sending daemon is killed or frozen repeatedly, and another one continues.
func TestChaosNodesTakeOver(t *testing.T) {
	t.Parallel()
	for _, count := range []int{2, 3} {
		for fault, hit := range map[string]func(t *testing.T, n *nodes, sender string) (
			heal func()){"killed": killNode, "frozen": freezeNode} {
			t.Run(fmt.Sprintf("%d daemons, the sender %s", count, fault), func(t *testing.T) {
				testTakeOver(t, count, fault, hit)
			})
		}
	}
}

// diskCommit is above the time of a group commit on the disk of a loaded machine. What was sent
// earlier, and answered, is not sent again.
const diskCommit = 200 * time.Millisecond

func testTakeOver(
	t *testing.T, count int, fault string, hit func(*testing.T, *nodes, string) func(),
	set ...string,
) {
	what := fmt.Sprintf("%d daemons, the sender %s", count, fault)
	if len(set) > 0 {
		what += ", records in PostgreSQL"
	}
	tr := begin(t, what)
	n := startNodes(t, tr, count, set...)
	rounds := sized(4-count, 20)
	var mu sync.Mutex
	inputs := map[string]Lines{}
	feed := func(i int) { // enough for all rounds
		lines := NewLines(fmt.Sprintf("%s-%d", fault, i), "m", 2000)
		id := n.any(i).Client().Submit(t, lines.Content, "").ID
		mu.Lock()
		defer mu.Unlock()
		inputs[id] = lines
	}
	feed(0)
	var thawed []time.Time
	most := 0 // lines that may be sent again
	for round := range rounds {
		feed(round + 1)
		before := time.Now()
		sender := ""
		await(t, 20*time.Second, "that a daemon sends", func() bool {
			sent := n.stub.AttemptList(Lines{}).After(before)
			sender = sent.Sender()
			return len(sent) > 100
		})
		begin := time.Now()
		heal := hit(t, n, sender)
		most += 3 * nodePerRunner
		for _, a := range n.stub.AttemptList(Lines{}).After(begin.Add(-diskCommit)) {
			if a.Node == sender && a.Begin.Before(begin) {
				most++
			}
		}
		await(t, takeoverLimit, fmt.Sprintf("that another than %s sends", sender), func() bool {
			others := slices.DeleteFunc(n.stub.AttemptList(Lines{}).After(begin), func(
				s Attempt) bool {
				return s.Node == sender
			})
			return len(others) > 20
		})
		t.Logf("round %d: %s was %s; another sent after %v at most", round, sender, fault,
			time.Since(begin).Round(10*time.Millisecond))
		heal()
		thawed = append(thawed, time.Now())
		tr.Tried++
	}
	n.checkResults(t, tr, inputs)
	n.checkUsed(t, inputs)
	if tr.Resent = n.stub.Repeats(); tr.Resent > most {
		t.Errorf("%d lines were sent again in %d rounds, want at most %d", tr.Resent, rounds, most)
	}
	// A daemon that continues after a freeze may still write requests that it had begun to write.
	// The limit is exceeded at no other time.
	attempts := n.stub.AttemptList(Lines{})
	thawing := func(at time.Time) bool {
		return slices.ContainsFunc(thawed, func(from time.Time) bool {
			return at.After(from.Add(-500*time.Millisecond)) && at.Before(from.Add(time.Second))
		})
	}
	steady := func(at time.Time) bool { return !thawing(at) }
	if most := attempts.Most(steady); most > nodePerRunner {
		t.Errorf("%d lines were in flight at the runner with per_runner %d", most, nodePerRunner)
	}
	if most := attempts.Most(thawing); most > nodePerRunner+nodePerRunner/2 {
		t.Errorf("%d lines were in flight at the runner with per_runner %d when a daemon continued",
			most, nodePerRunner)
	}
}

func killNode(_ *testing.T, n *nodes, sender string) (heal func()) {
	d := n.daemons[sender]
	d.Kill()
	return func() {
		d.Start()
		d.AwaitReady()
	}
}

func freezeNode(t *testing.T, n *nodes, sender string) (heal func()) {
	other := n.names[0]
	if other == sender {
		other = n.names[1]
	}
	d := n.daemons[sender]
	freeze(t, d, n.daemons[other])
	return func() { d.Signal(syscall.SIGCONT) }
}
