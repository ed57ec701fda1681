package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// How long before a kill an answer may have been given and still be asked for again, not counting the time that the medium took
// nothing. A group commit collects for at most 50 ms, so most answers are safe within commitWindow; a busy machine may take a few up
// to busyWindow.
const (
	commitWindow = 60 * time.Millisecond
	busyWindow   = 500 * time.Millisecond
	// A request that was on its way may be taken up by the stub this long after the one who sent it was killed.
	arrivalWindow = 50 * time.Millisecond
)

// small makes every stage short, so that kills hit them all.
var small = []string{
	"dispatch.chunk_lines=16", "dispatch.plan.look_ahead=48", "dispatch.poll_every=100ms", "dispatch.progress_every=50ms",
	"flowcontrol.policy=fixed", "flowcontrol.fixed.per_runner=12",
	"dispatch.plan.retry.base=20ms", "dispatch.plan.breaker.base=50ms", "dispatch.plan.breaker.max=500ms",
}

// seeded is a source of randomness that a failing run can be repeated with: TIDEFILL_E2E_SEED.
func seeded(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	if given := os.Getenv("TIDEFILL_E2E_SEED"); given != "" {
		var err error
		if seed, err = strconv.ParseUint(given, 10, 64); err != nil {
			t.Fatalf("TIDEFILL_E2E_SEED: %v", err)
		}
	}
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// moment is when a process was killed: not before begin, not after end.
type moment struct{ begin, end time.Time }

func TestKilledAtRandomMomentsLosesAndDoublesNothing(t *testing.T) {
	const kills = 50
	const users = 4
	random := seeded(t)
	stub := NewStub(t, "m")
	stub.MinDelay, stub.MaxDelay = time.Millisecond, 30*time.Millisecond
	d := NewDaemon(t, Options{Upstreams: []string{stub.URL}, Set: small})
	medium := WatchMedium(t, t.TempDir())

	// Users submit batch after batch through all kills, each repeated under its idempotency key until it is answered.
	killing, stopKilling := context.WithCancel(t.Context())
	var mu sync.Mutex
	submitted := map[string]Lines{}
	var all sync.WaitGroup
	defer all.Wait()
	defer stopKilling()
	for user := range users {
		own := rand.New(rand.NewPCG(random.Uint64(), uint64(user)))
		all.Go(func() {
			c := d.Client()
			for n := 0; killing.Err() == nil; n++ {
				lines := NewLines(fmt.Sprintf("user%d-%d", user, n), "m", 50+own.IntN(251))
				id, err := persist(t.Context(), c, lines)
				if err != nil {
					t.Errorf("user %d: %v", user, err)
					return
				}
				mu.Lock()
				submitted[id] = lines
				mu.Unlock()
			}
		})
	}

	var killed []moment
	for range kills {
		time.Sleep(time.Duration(random.ExpFloat64() * float64(250*time.Millisecond)))
		begin := time.Now()
		d.Kill()
		killed = append(killed, moment{begin, time.Now()})
		d.Start()
		if random.IntN(4) > 0 { // else the next kill may hit the start
			d.AwaitReady()
		}
	}
	stopKilling()
	d.AwaitReady()
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}

	c := d.Client()
	total := 0
	files := map[string]bool{}
	for id, lines := range submitted {
		b := c.AwaitEnd(t, id, time.Minute)
		c.CheckComplete(t, b, lines)
		d.Verify(t, id)
		total += len(lines.Bodies)
		files[b.InputFileID] = true
		if b.OutputFileID != nil {
			files[*b.OutputFileID] = true
		}
	}
	if batches := listAll(t, c, "/v1/batches?limit=100"); len(batches) != len(submitted) {
		t.Errorf("there are %d batches, %d were submitted: a repeated create made a second one", len(batches), len(submitted))
	}
	for _, id := range listAll(t, c, "/v1/files?limit=10000") {
		if !files[id] {
			t.Errorf("file %s is listed and belongs to no batch", id)
		}
	}
	checkSwept(t, d, files)
	checkRepeats(t, stub.Ledger(), killed, medium, total)
	t.Logf("%d kills, %d batches, %d lines, %d requests", len(killed), len(submitted), total, stub.Requests())
}

// checkSwept fails the test unless the next start removes what kills left half written, and, once it is old, what they left
// whole and without a name.
func checkSwept(t *testing.T, d *Daemon, files map[string]bool) {
	t.Helper()
	d.Kill()
	old := time.Now().Add(-25 * time.Hour)
	for _, stray := range strays(t, d.Data, files) {
		if err := os.Chtimes(stray, old, old); err != nil {
			t.Fatal(err)
		}
	}
	d.Start()
	d.AwaitReady()
	var left []string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if left = strays(t, d.Data, files); len(left) == 0 {
			return
		}
	}
	for _, stray := range left {
		t.Errorf("%s was left behind", stray)
	}
}

// persist uploads and creates through whatever befalls the daemon, waits for the end, and returns the batch's id.
func persist(ctx context.Context, c *Client, lines Lines) (string, error) {
	key := fmt.Sprintf("key-%x", rand.Uint64())
	var f File
	err := insist(ctx, func() (err error) { f, err = c.Upload(lines.Content, "Idempotency-Key", "file-"+key); return err })
	if err != nil {
		return "", err
	}
	var b Batch
	if err := insist(ctx, func() (err error) { b, err = c.CreateBatch(f.ID, "", "Idempotency-Key", "batch-"+key); return err }); err != nil {
		return "", err
	}
	id := b.ID
	for !b.Ended() {
		if err := insist(ctx, func() (err error) { b, err = c.Batch(id); return err }); err != nil {
			return "", err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return id, nil
}

// insist repeats what no daemon answered, or one asked to have sent again. Any other answer that is no success ends it: a kill
// must not show as an error.
func insist(ctx context.Context, do func() error) error {
	for {
		err := do()
		if refused := (statusError{}); err == nil || errors.As(err, &refused) && refused.answer.Header.Get("Retry-After") == "" {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// checkRepeats fails the test for every request that no kill explains: a line may be sent again only if its sending before was
// under way at a kill, or answered within the last group commit.
func checkRepeats(t *testing.T, ledger map[string][]Sending, killed []moment, medium *Medium, lines int) {
	t.Helper()
	age := func(s Sending, k moment) time.Duration { // of an answer at a kill
		return k.begin.Sub(s.End) - medium.Stalled(s.End, k.begin)
	}
	repeats, late := 0, 0
	var oldest, oldestWithStalls time.Duration
	for digest, sendings := range ledger {
		for i := 1; i < len(sendings); i++ {
			repeats++
			before, again := sendings[i-1], sendings[i]
			k := slices.IndexFunc(killed, func(k moment) bool {
				return before.Begin.Before(k.end.Add(arrivalWindow)) && again.Begin.After(k.begin) &&
					(before.End.IsZero() || age(before, k) < busyWindow)
			})
			if k < 0 {
				t.Errorf("line %.8s was sent again at %v without need: before it came at %v and was answered at %v; last kill by then %v; "+
					"the medium stalled for %v since the answer", digest, clock(again.Begin), clock(before.Begin), clock(before.End),
					lastBefore(killed, again.Begin), medium.Stalled(before.End, again.Begin))
			} else if !before.End.IsZero() {
				oldest = max(oldest, age(before, killed[k]))
				oldestWithStalls = max(oldestWithStalls, killed[k].begin.Sub(before.End))
				if age(before, killed[k]) > commitWindow {
					late++
				}
			}
		}
	}
	if len(ledger) != lines {
		t.Errorf("the stub saw %d different bodies, there are %d lines", len(ledger), lines)
	}
	if late > 2+repeats/20 {
		t.Errorf("%d of %d lines that were sent again had been answered more than %v before the kill", late, repeats, commitWindow)
	}
	t.Logf("%d lines were sent again; the oldest of their answers came %v before that, %v with the medium's stalls",
		repeats, oldest, oldestWithStalls)
}

func clock(t time.Time) string { return t.Format("15:04:05.000000") }

// lastBefore is the last kill before a moment, in words.
func lastBefore(killed []moment, t time.Time) string {
	last := "none"
	for _, k := range killed {
		if k.begin.Before(t) {
			last = clock(k.begin) + " to " + clock(k.end)
		}
	}
	return last
}

// listAll walks all pages of a list and returns the ids, each of which must come once.
func listAll(t *testing.T, c *Client, path string) []string {
	t.Helper()
	var ids []string
	after := ""
	for {
		var page struct {
			Data    []struct{ ID string }
			HasMore bool `json:"has_more"`
		}
		if err := c.json("GET", path+after, "", nil, &page); err != nil {
			t.Fatal(err)
		}
		for _, entry := range page.Data {
			if slices.Contains(ids, entry.ID) {
				t.Fatalf("%s: %s comes twice", path, entry.ID)
			}
			ids = append(ids, entry.ID)
		}
		if !page.HasMore {
			return ids
		}
		after = "&after=" + ids[len(ids)-1]
	}
}

// strays lists what the data directory keeps below blobs and tmp that belongs to none of files.
func strays(t *testing.T, data string, files map[string]bool) []string {
	t.Helper()
	var strays []string
	for _, dir := range []string{"blobs", "tmp"} {
		err := filepath.WalkDir(filepath.Join(data, dir), func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			name, _, _ := strings.Cut(entry.Name(), ".")
			if !files[name] && name != "lock" && name != "gate" {
				strays = append(strays, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return strays
}

func TestTermDrainsAndPutsTheRestBack(t *testing.T) {
	stub := NewStub(t, "m")
	stub.MinDelay, stub.MaxDelay = 100*time.Millisecond, 200*time.Millisecond
	d := NewDaemon(t, Options{Upstreams: []string{stub.URL}, Set: append([]string{"shutdown.drain=1s"}, small...)})
	c := d.Client()
	lines := NewLines("drain", "m", 100)
	b := c.Submit(t, lines.Content, "")
	c.Await(t, b.ID, 10*time.Second, func(b Batch) bool { return b.RequestCounts.Completed > 10 })

	// Some lines never end by themselves: they are cut off at the limit.
	var hanging atomic.Int64
	stub.Answering(func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
		if rand.IntN(4) > 0 {
			return false
		}
		hanging.Add(1)
		<-r.Context().Done()
		return true
	})
	c.Await(t, b.ID, 10*time.Second, func(Batch) bool { return hanging.Load() > 2 })
	began := time.Now()
	d.Signal(syscall.SIGTERM)
	if status := d.Wait(4 * time.Second); status != 0 {
		t.Errorf("the drained daemon ended with status %d, want 0", status)
	}
	took := time.Since(began)
	if took < 900*time.Millisecond {
		t.Errorf("it ended after %v, with lines under way that had 1s to finish", took)
	}
	if n := stub.UnderWay(); n != 0 {
		t.Errorf("%d lines are still under way", n)
	}
	stub.Answering(nil)
	answered := map[string]bool{}
	for digest, sendings := range stub.Ledger() {
		answered[digest] = sendings[0].End.Sub(sendings[0].Begin) < 300*time.Millisecond
	}
	d.Start()
	d.AwaitReady()
	ended := c.AwaitEnd(t, b.ID, 20*time.Second)
	c.CheckComplete(t, ended, lines)
	d.Verify(t, b.ID)
	for digest, sendings := range stub.Ledger() {
		if answered[digest] && len(sendings) > 1 {
			t.Errorf("line %.8s was answered before the end, and sent again", digest)
		}
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	stub := NewStub(t, "m")
	stub.Answering(func(_ http.ResponseWriter, r *http.Request, _ []byte) bool { <-r.Context().Done(); return true })
	for _, second := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(second.String(), func(t *testing.T) {
			d := NewDaemon(t, Options{Upstreams: []string{stub.URL}, Set: small})
			c := d.Client()
			lines := NewLines("second-"+strconv.Itoa(int(second)), "m", 20)
			b := c.Submit(t, lines.Content, "")
			c.Await(t, b.ID, 10*time.Second, func(b Batch) bool { return b.Tidefill.InFlight > 0 })
			d.Signal(syscall.SIGTERM)
			time.Sleep(300 * time.Millisecond)
			select {
			case <-d.current().ended:
				t.Fatal("the daemon did not wait for the lines under way")
			default:
			}
			d.Signal(second)
			if status := d.Wait(time.Second); status == 0 {
				t.Error("a daemon that was cut off ended with status 0")
			}
		})
	}
}

func TestAnotherNodeTakesOverFromAFrozenOne(t *testing.T) {
	stub := NewStub(t, "m")
	stub.MinDelay, stub.MaxDelay = 20*time.Millisecond, 60*time.Millisecond
	set := append([]string{"dispatch.lease_ttl=3s"}, small...)
	data := t.TempDir()
	frozen := NewDaemon(t, Options{Upstreams: []string{stub.URL}, Set: set, Data: data, Args: []string{"--node", "one"}})
	other := NewDaemon(t, Options{Upstreams: []string{stub.URL}, Set: set, Data: data, Args: []string{"--node", "other"}})
	c := other.Client()
	inputs := map[string]Lines{}
	for i := range 3 {
		lines := NewLines(fmt.Sprintf("frozen-%d", i), "m", 800)
		inputs[c.Submit(t, lines.Content, "").ID] = lines
	}
	time.Sleep(700 * time.Millisecond)
	freeze(t, frozen, other)
	for id := range inputs {
		c.AwaitEnd(t, id, 20*time.Second) // its lease runs out meanwhile
	}
	frozen.Signal(syscall.SIGCONT)
	time.Sleep(500 * time.Millisecond) // for the late answers of the frozen one
	for id, lines := range inputs {
		b, err := c.Batch(id)
		if err != nil {
			t.Fatal(err)
		}
		c.CheckComplete(t, b, lines)
		other.Verify(t, id)
	}
	extra := stub.Requests() - 2400
	t.Logf("%d lines were sent again", extra)
	// What the frozen one had under way, and what was answered within its last group commit. It must not, thawed, send lines
	// that others have long taken over.
	if most := 12 + 18; extra == 0 || extra > most {
		t.Errorf("%d lines were sent again, want 1 to %d", extra, most)
	}
	// Both must go on serving.
	for _, d := range []*Daemon{frozen, other} {
		lines := NewLines("after-"+d.Args[1], "m", 50)
		b := d.Client().Submit(t, lines.Content, "")
		d.Client().CheckComplete(t, d.Client().AwaitEnd(t, b.ID, 20*time.Second), lines)
	}
}

// freeze stops a daemon at a moment when it isn't writing to the database: there it would hold the lock that all processes
// share, and a lock of SQLite ends with its holder only.
func freeze(t *testing.T, d, other *Daemon) {
	t.Helper()
	c := other.Client()
	c.HTTP.Timeout = time.Second
	for range 20 {
		d.Signal(syscall.SIGSTOP)
		if _, err := c.Upload([]byte(line("probe"))); err == nil {
			return
		}
		d.Signal(syscall.SIGCONT)
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the daemon writes to the database all the time")
}

func TestTwoNodesMayNotShareAName(t *testing.T) {
	stub := NewStub(t, "m")
	d := NewDaemon(t, Options{Upstreams: []string{stub.URL}})
	out, status := d.Run("serve", "--listen", freeAddress(t), "--admin-listen", "", "--data", d.Data, "--upstream", stub.URL)
	if status != 1 || !strings.Contains(out, "node") {
		t.Errorf("a second daemon of the same name: status %d\n%s", status, out)
	}
}
