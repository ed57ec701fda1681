package recording

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/fixed"
	"github.com/tidefill/tidefill/flowcontrol/shadow"
	"github.com/tidefill/tidefill/scheduler"
)

// collected is a sink that stores entries.
type collected []Entry

func (k *collected) Put(e Entry) { *k = append(*k, e) }

// sameNumbers compares numbers; unknown ones are equal.
var sameNumbers = cmp.Comparer(func(a, b Number) bool { return a == b || !a.Known() && !b.Known() })

var began = time.Unix(1_700_000_000, 0)

// record records some events of a planner.
func record(t *testing.T, sink Sink) *Recorder {
	t.Helper()
	flow := flowcontrol.DefaultConfig().Select(fixed.Name, fixed.Config{PerRunner: 2})
	p, err := plan.New(plan.DefaultConfig(), plan.Deps{Scheduler: scheduler.DefaultConfig(),
		Flow: flow, Random: rand.New(rand.NewPCG(1, 1))})
	if err != nil {
		t.Fatal(err)
	}
	r := NewRecorder(began, sink)
	now := began
	var started []plan.Start
	step := func(after time.Duration, ev plan.Event) {
		now = now.Add(after)
		did := p.Step(now, ev)
		started = append(started, did.Start...)
		r.Step(now, ev, did)
	}
	step(0, plan.RunnerUp{Runner: "gpu-7.internal:8000", Models: []string{"secret-model"}})
	// no change
	step(time.Second, plan.RunnerUp{Runner: "gpu-7.internal:8000", Models: []string{
		"secret-model"}})
	step(0, plan.BatchPut{Batch: plan.Batch{
		ID: "batch_x", Tenant: "secret-tenant", Created: now.Add(-time.Minute), Deadline: now.Add(
			time.Hour),
		Models: []plan.ModelLines{{Model: "secret-model", Lines: 2, PromptTokens: 200,
			MaxTokens: 100}},
	}})
	step(0, plan.BatchPut{Batch: plan.Batch{ID: "batch_x", Tenant: "secret-tenant", Paused: false}})
	step(0, plan.Loaded{Key: plan.JobKey{Batch: "batch_x", Model: "secret-model"},
		Lines: []plan.Line{{Slot: 0, PromptTokens: 90}, {Slot: 1, PromptTokens: 110}}})
	step(250*time.Millisecond, &plan.FirstToken{Start: started[0], Latency: 250 * time.Millisecond})
	step(time.Second, plan.TokenGaps{Runner: "gpu-7.internal:8000", Gaps: 40,
		Time: 990 * time.Millisecond})
	reading := flowcontrol.NoReading(flowcontrol.Metrics, now.Add(-100*time.Millisecond))
	reading.Running, reading.KVUsed, reading.OutputTokens = 3, 0.5, math.Inf(1)
	step(0, plan.Reading{Runner: "gpu-7.internal:8000", Reading: &reading})
	gateway := flowcontrol.NoReading(flowcontrol.Gateway, now)
	gateway.TTFT = flowcontrol.Attainment{Requests: 9, Late: 1}
	step(0, plan.Reading{Model: "secret-model", Reading: &gateway})
	step(time.Second, &plan.Finished{Start: started[0], Outcome: plan.Succeeded,
		Latency: 2250 * time.Millisecond, InputTokens: 88, OutputTokens: 41, CachedTokens: 16})
	step(0, &plan.Finished{Start: started[1], Outcome: plan.Shed, Status: 429,
		Latency: 2 * time.Millisecond})
	histogram := []flowcontrol.Bucket{{Upper: 0.5, Count: 3}, {Upper: math.Inf(1), Count: 4}}
	r.Latencies(now, "gpu-7.internal:8000", "", histogram, nil)
	// within latenciesEvery
	r.Latencies(now.Add(time.Second), "gpu-7.internal:8000", "", histogram, histogram)
	// out of order
	r.Latencies(now.Add(-time.Second), "", "secret-model", nil, histogram)
	pools := func(lines int) []plan.PoolStatus {
		return []plan.PoolStatus{{Models: []string{"secret-model"}, Limit: 2, InFlight: 1,
			Granted: flowcontrol.ReasonRunnerLimit, Shadow: &shadow.Allowance{Policy: "aimd",
				Lines: lines, Reason: flowcontrol.ReasonGrowing}}, {Models: []string{"other"}}}
	}
	r.Pools(now, pools(5))
	r.Pools(now.Add(time.Second/2), pools(6)) // within shadowInterval
	r.Pools(now.Add(time.Minute), pools(5))   // no change
	return r
}

func TestRecordingHasNoNames(t *testing.T) {
	var got collected
	record(t, &got)
	nan := Number(math.NaN())
	unknown := Reading{
		Age: nan, Running: nan, Waiting: nan, KVUsed: nan, KVTokens: nan, PromptTokens: nan,
		CachedTokens: nan, OutputTokens: nan, Preemptions: nan,
		TTFTRequests: nan, TTFTLate: nan, TPOTRequests: nan, TPOTLate: nan,
	}
	engine, gateway := unknown, unknown
	engine.Source, engine.Runner, engine.Age, engine.Running, engine.KVUsed = "metrics", 1, 0.1, 3,
		0.5
	gateway.Source, gateway.Model, gateway.Age, gateway.TTFTRequests, gateway.TTFTLate = "gateway",
		1, 0, 9, 1
	want := collected{
		{At: 0, Runner: &Runner{ID: 1, Models: []int{1}}},
		{At: 1, Job: &Job{ID: 1, Model: 1, Lines: 2, Prompt: 100, Most: 50, Deadline: 3600,
			Age: 60}},
		{At: 2.25, Gaps: &Gaps{Runner: 1, Count: 40, Took: 0.99, Lines: 2}},
		{At: 2.25, Reading: &engine},
		{At: 2.25, Reading: &gateway},
		{At: 3.25, Line: &Line{Job: 1, Runner: 1, End: "succeeded", Took: 2.25, First: 0.25,
			Prompt: 88, Cached: 16, Output: 41}},
		{At: 3.25, Line: &Line{Job: 1, Runner: 1, End: "shed", Took: 0.002}},
		{At: 3.25, Latencies: &Latencies{Runner: 1, TTFT: Histogram{{0.5, 3}, {-1, 4}}}},
		{At: 3.25, Latencies: &Latencies{Model: 1, TPOT: Histogram{{0.5, 3}, {-1, 4}}}},
		{At: 3.25, Shadow: &Shadow{Models: []int{1}, Policy: "aimd", Lines: 5, Reason: "growing",
			Granted: 2, GrantedReason: "runner_limit", InFlight: 1}},
	}
	if diff := cmp.Diff(want, got, sameNumbers); diff != "" {
		t.Error(diff)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"secret", "gpu-7", "batch_"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("the recording contains %q: %s", secret, text)
		}
	}
	if again := got[7].Latencies.TTFT.Buckets(); again[0].Upper != 0.5 ||
		!math.IsInf(again[1].Upper, 1) || again[1].Count != 4 {
		t.Errorf("buckets are %v", again)
	}
}

// Histograms with values that JSON does not have are left out.
func TestHistogramsHaveNumbersOnly(t *testing.T) {
	inf := math.Inf(1)
	for _, b := range []flowcontrol.Bucket{{Upper: -inf}, {Upper: math.NaN()},
		{Upper: 1, Count: inf}, {Upper: 1, Count: math.NaN()}} {
		h := newHistogram([]flowcontrol.Bucket{b, {Upper: inf, Count: 3}})
		if _, err := json.Marshal(h); err != nil || h != nil {
			t.Errorf("%v: got %v, %v, want none", b, h, err)
		}
	}
}

// write records entries into a file, after change has modified it.
func write(t *testing.T, path string, change func(*File), entries func(*File)) {
	t.Helper()
	f, err := OpenFile(path, Header{Began: began, Policy: "fixed", TTFT: 2, TPOT: 0.1},
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(f)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- f.Run(ctx) }()
	entries(f)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func readAll(t *testing.T, path string) (h Header, all collected) {
	t.Helper()
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if h, err = Read(path, in, func(e Entry) error { all.Put(e); return nil }); err != nil {
		t.Fatal(err)
	}
	return h, all
}

func TestEntriesAreReadAsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recording.jsonl")
	var want collected
	record(t, &want)
	write(t, path, nil, func(f *File) { record(t, f) })
	h, got := readAll(t, path)
	if diff := cmp.Diff(want, got, sameNumbers); diff != "" {
		t.Error(diff)
	}
	if h.Version != Version || !h.Began.Equal(began) || h.Policy != "fixed" || h.TTFT != 2 {
		t.Errorf("the header is %+v", h)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, want 0600: %v", info.Mode(), err)
	}
}

func TestFilesAreLimitedAndReadableAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "recording.jsonl")
		line := Entry{Line: &Line{Job: 1, Runner: 1, End: "succeeded", Took: 1}}
		for range 3 { // restarts
			write(t, path, func(f *File) {
				f.limit = 2000
				f.SetPreamble(func() []Entry {
					return []Entry{{Runner: &Runner{ID: 1, Models: []int{1}}}}
				})
			}, func(f *File) {
				for range 250 {
					f.Put(line)
				}
				synctest.Wait() // until the queue is empty
			})
		}
		files, err := filepath.Glob(path + "*")
		if err != nil || len(files) != maxOldFiles+1 {
			t.Fatalf("%d files, want %d: %v, %v", len(files), maxOldFiles+1, files, err)
		}
		beginnings := 0
		for _, file := range files {
			if info, _ := os.Stat(file); info.Size() > 2200 {
				t.Errorf("%s has %d bytes", file, info.Size())
			}
			if _, entries := readAll(t, file); entries[0].Runner == nil {
				beginnings++ // of a daemon without runners yet
			}
		}
		if beginnings > 1 {
			t.Errorf("%d files do not begin with the runners, want at most the first of a start",
				beginnings)
		}
	})
}

// A file may begin while entries wait that are older than the state of the Recorder.
func TestFilesThatBeginWhileEntriesWaitAreReadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recording.jsonl")
	write(t, path, nil, func(f *File) {
		r := NewRecorder(began, f)
		f.limit = 2000
		f.SetPreamble(r.Preamble)
		for i := range 250 {
			r.Step(began.Add(time.Duration(i)*time.Second),
				plan.RunnerUp{Runner: "a", Models: []string{fmt.Sprint(i)}}, plan.Actions{})
		}
	})
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files: %v, %v", len(files), files, err)
	}
	for _, file := range files {
		readAll(t, file)
	}
}

// Entries beyond the queue are counted while nothing is written.
func TestDroppedEntriesAreCounted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recording.jsonl")
	f, err := OpenFile(path, Header{Began: began}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	line := Entry{Line: &Line{Job: 1, Runner: 1, End: "succeeded"}}
	for range queueLength + 7 { // Run has not started
		f.Put(line)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := f.Run(ctx); err != nil {
		t.Fatal(err)
	}
	_, entries := readAll(t, path)
	if len(entries) != queueLength || entries[0].Lost != 7 {
		t.Errorf("%d entries, the first says that %d were lost; want %d and 7", len(entries),
			entries[0].Lost, queueLength)
	}
}

func TestFailedWritesLeaveNoPartialRow(t *testing.T) {
	var log strings.Builder
	path := filepath.Join(t.TempDir(), "recording.jsonl")
	f, err := OpenFile(path, Header{Began: began}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	f.flush()
	good := f.file
	if f.file, err = os.Open(path); err != nil { // read-only
		t.Fatal(err)
	}
	f.write(Entry{Line: &Line{Job: 1, Runner: 1}})
	f.flush()
	f.write(Entry{Line: &Line{Job: 2, Runner: 1}})
	f.flush()
	f.file.Close()
	f.file = good
	f.write(Entry{Line: &Line{Job: 3, Runner: 1}})
	f.flush()
	if _, entries := readAll(t, path); len(entries) != 1 || entries[0].Line.Job != 3 ||
		entries[0].Lost != 2 {
		t.Errorf("got %+v, want the third with 2 lost before it", entries)
	}
	if strings.Count(log.String(), "write recording failed") != 1 || strings.Count(log.String(),
		"can be written again") != 1 {
		t.Errorf("log:\n%s", log.String())
	}
}

// headerText returns the first row of a recording.
func headerText(version int) string {
	return fmt.Sprintf(`{"tidefill_recording":%d,"began":"2026-01-01T00:00:00Z",`+
		`"policy":"fixed","slo_ttft_s":2,"slo_tpot_s":0.1}`+"\n", version)
}

func TestReadErrorsNameTheRow(t *testing.T) {
	header := headerText(1)
	for name, c := range map[string]struct{ text, want string }{
		"empty":        {"", "file:1: this is no recording"},
		"another file": {`{"a":1}` + "\n", "file:1: this is no recording"},
		"a later format": {
			headerText(9), "file:1: the recording has format 9"},
		"no JSON": {header + "x\n", "file:2: invalid"},
		"two entries a line": {header +
			`{"t":1,"gaps":{"runner":1,"count":1,"took_s":1,"lines":1}} {}` + "\n",
			"file:2: text follows"},
		"an unknown key": {header + `{"t":1,"prompt":"x"}` + "\n",
			`file:2: json: unknown field "prompt"`},
		"an unknown key deep": {header + `{"t":1,"reading":{"source":"metrics","runing":1}}` + "\n",
			`file:2: json: unknown field "runing"`},
		"a negative shadow": {header +
			`{"t":1,"shadow":{"models":[1],"policy":"a","lines":-1,"granted":1,"in_flight":1}}` +
			"\n", "file:2: the values of a shadow"},
		"nothing": {header + `{"t":1}` + "\n", "file:2: an entry has one of"},
		"two things": {header +
			`{"t":1,"runner":{"id":1},"job":{"id":1,"model":1,"lines":1,"prompt":1}}` + "\n",
			"file:2: an entry has one of"},
		"t decreases": {header + `{"t":2,"runner":{"id":1}}` + "\n" +
			`{"t":1,"runner":{"id":1}}` + "\n", "file:3: t is 1, which is before"},
		"a negative figure": {header +
			`{"t":2,"line":{"job":1,"runner":1,"end":"","took_s":-1}}` + "\n",
			"file:2: the values of a line"},
		"too long": {header + strings.Repeat("x", longestLine+1) + "\n",
			"file:2: the row is longer"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read("file", strings.NewReader(c.text), func(Entry) error { return nil })
			if err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
	n := 0
	if _, err := Read("file", strings.NewReader(
		header+`{"t":1,"runner":{"id":1}}`+"\n"+`{"t":2,"run`), func(Entry) error {
		n++
		return nil
	}); err != nil || n != 1 {
		t.Errorf("an incomplete last row: %d entries, %v; want 1", n, err)
	}
}

func FuzzRead(f *testing.F) {
	header := headerText(1)
	f.Add(header + `{"t":1,"reading":{"source":"metrics","running":1}}` + "\n" +
		`{"t":2,"latencies":{"ttft":[[1,2],[-1,3]]}}` + "\n")
	f.Add(header + `{"t":1,"line":{"job":1,"runner":1,"end":"x","took_s":1}}` + "\n")
	f.Fuzz(func(t *testing.T, text string) {
		last := 0.0
		Read("file", strings.NewReader(text), func(e Entry) error {
			if e.At < last {
				t.Error("t decreases")
			}
			last = e.At
			again, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			var same Entry
			if err := decodeStrict(again, &same); err != nil {
				t.Fatalf("%s: %v", again, err)
			}
			return nil
		})
	})
}

func BenchmarkRecord(b *testing.B) {
	f := &File{limit: 1 << 62, log: slog.New(slog.DiscardHandler), preamble: func() []Entry {
		return nil
	}}
	out, err := os.Create(filepath.Join(b.TempDir(), "x"))
	if err != nil {
		b.Fatal(err)
	}
	f.file = out
	e := Entry{At: 12.3456, Line: &Line{Job: 1, Runner: 1, End: "succeeded", Took: 1.5, Prompt: 100,
		Output: 200}}
	for b.Loop() {
		f.write(e)
	}
	fmt.Fprint(io.Discard, f.size)
}

// Outcomes have the names of version 1 of the format.
func TestOutcomesHaveTheNamesOfTheFormat(t *testing.T) {
	want := []string{"succeeded", "refused", "shed", "failed", "garbled", "timed_out",
		"unreachable", "died", "recalled", "denied", "too_long", "check_failed"}
	for o := range plan.Outcomes {
		if got := endOf(plan.Outcome(o)); got != want[o] {
			t.Errorf("outcome %d is recorded as %q, want %q", o, got, want[o])
		}
	}
}
