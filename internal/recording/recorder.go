package recording

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/tidefill/tidefill/dispatch/plan"
	"github.com/tidefill/tidefill/flowcontrol"
)

// Sink receives the entries of a recording. Put must not block.
type Sink interface{ Put(Entry) }

// Recorder converts events of the planner to entries of a recording. It replaces the names of
// runners, models and jobs by numbers. It may be used concurrently.
type Recorder struct {
	began time.Time // start of the recording, to which the times of entries are relative
	sink  Sink

	mu         sync.Mutex
	last       float64 // time of the last entry, in seconds
	runners    numbers
	models     numbers
	jobs       map[plan.JobKey]int
	serving    map[int][]int             // numbers of the models of a runner
	inFlight   map[int]int               // number of lines in flight on a runner
	firstToken map[lineKey]time.Duration // latency, of lines in flight
	latencies  map[[2]int]time.Time      // last entry of Latencies, by runner and model
	shadows    map[string]recordedShadow // last entry of Shadow, by pool
}

// recordedShadow is an entry of Shadow and its time.
type recordedShadow struct {
	entry Shadow
	at    time.Time
}

// lineKey identifies a line in flight.
type lineKey struct {
	job         plan.JobKey
	chunk, slot int
}

// latenciesInterval is the minimum interval between two entries of latency histograms. Histograms
// are large, and only their changes over minutes are used.
const latenciesInterval = 10 * time.Second

// shadowInterval is the minimum interval between two entries of a pool's shadow.
const shadowInterval = time.Second

// NewRecorder returns a Recorder that writes to a sink. began is the start of the recording.
func NewRecorder(began time.Time, sink Sink) *Recorder {
	return &Recorder{
		began: began, sink: sink, jobs: map[plan.JobKey]int{}, serving: map[int][]int{},
		inFlight: map[int]int{}, firstToken: map[lineKey]time.Duration{},
		latencies: map[[2]int]time.Time{}, shadows: map[string]recordedShadow{},
	}
}

// numbers assigns a number to each name, counting from 1 in the order of first use.
type numbers map[string]int

func (n *numbers) of(name string) int {
	if *n == nil {
		*n = numbers{}
	}
	number, known := (*n)[name]
	if !known {
		number = len(*n) + 1
		(*n)[name] = number
	}
	return number
}

// Step records an event of the planner and its actions.
func (r *Recorder) Step(now time.Time, ev plan.Event, actions plan.Actions) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range actions.Start {
		r.inFlight[r.runners.of(actions.Start[i].Runner)]++
	}
	switch ev := ev.(type) {
	case plan.RunnerUp:
		r.runner(now, ev.Runner, ev.Models)
	case plan.RunnerGone:
		r.runner(now, ev.Runner, nil)
	case plan.BatchPut:
		r.batch(now, ev.Batch)
	case *plan.FirstToken:
		r.firstToken[keyOf(&ev.Start)] = ev.Latency
	case *plan.Finished:
		r.finished(now, ev)
	case plan.TokenGaps:
		runner := r.runners.of(ev.Runner)
		r.put(now, Entry{Gaps: &Gaps{Runner: runner, Count: ev.Gaps, Took: seconds(ev.Time),
			Lines: r.inFlight[runner]}})
	case plan.Reading:
		reading := newReading(ev.Reading, now)
		if ev.Runner != "" {
			reading.Runner = r.runners.of(ev.Runner)
		} else if ev.Model != "" {
			reading.Model = r.models.of(ev.Model)
		}
		r.put(now, Entry{Reading: reading})
	}
}

// Latencies records the latency histograms of a runner or, if runner is empty, of the gateway in
// front of a model's pools.
func (r *Recorder) Latencies(now time.Time, runner, model string, ttft, tpot []flowcontrol.Bucket) {
	if len(ttft)+len(tpot) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l := Latencies{TTFT: newHistogram(ttft), TPOT: newHistogram(tpot)}
	if runner != "" {
		l.Runner = r.runners.of(runner)
	} else if model != "" {
		l.Model = r.models.of(model)
	}
	key := [2]int{l.Runner, l.Model}
	if last, known := r.latencies[key]; known && now.Sub(last) < latenciesInterval {
		return
	}
	r.latencies[key] = now
	r.put(now, Entry{Latencies: &l})
}

// Pools records what the shadow policies of pools would allow, if it has changed.
func (r *Recorder) Pools(now time.Time, pools []plan.PoolStatus) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range pools {
		if p.Shadow == nil {
			continue
		}
		s := Shadow{Policy: p.Shadow.Policy, Lines: p.Shadow.Lines,
			Reason: string(p.Shadow.Reason), Granted: p.Limit, GrantedReason: string(p.Granted),
			InFlight: p.InFlight}
		for _, m := range p.Models {
			s.Models = append(s.Models, r.models.of(m))
		}
		slices.Sort(s.Models)
		key := fmt.Sprint(s.Models)
		last, known := r.shadows[key]
		if known && (now.Sub(last.at) < shadowInterval || reflect.DeepEqual(last.entry, s)) {
			continue
		}
		r.shadows[key] = recordedShadow{s, now}
		r.put(now, Entry{Shadow: &s})
	}
}

// put writes an entry. Concurrent events may arrive slightly out of order, but the times of entries
// never decrease.
func (r *Recorder) put(now time.Time, e Entry) {
	r.last = max(r.last, seconds(now.Sub(r.began)))
	e.At = r.last
	r.sink.Put(e)
}

// runner records the models of a runner, if they have changed.
func (r *Recorder) runner(now time.Time, name string, models []string) {
	id := r.runners.of(name)
	var serving []int
	for _, m := range models {
		serving = append(serving, r.models.of(m))
	}
	slices.Sort(serving)
	if slices.Equal(r.serving[id], serving) {
		return
	}
	r.serving[id] = serving
	r.put(now, Entry{Runner: &Runner{ID: id, Models: serving}})
}

// batch records the jobs of a batch once, when it is added.
func (r *Recorder) batch(now time.Time, b plan.Batch) {
	for _, m := range b.Models {
		key := plan.JobKey{Batch: b.ID, Model: m.Model}
		if _, known := r.jobs[key]; known || m.Lines == 0 {
			continue
		}
		j := r.job(key)
		j.Lines, j.Priority, j.Age = m.Lines, b.Priority, seconds(max(0, now.Sub(b.Created)))
		j.Prompt, j.Most = float64(m.PromptTokens/int64(m.Lines)),
			float64(m.MaxTokens/int64(m.Lines))
		if !b.Deadline.IsZero() {
			j.Deadline = seconds(b.Deadline.Sub(now))
		}
		r.put(now, Entry{Job: &j})
	}
}

// job returns an entry with the number and the model of a job.
func (r *Recorder) job(key plan.JobKey) Job {
	id, known := r.jobs[key]
	if !known {
		id = len(r.jobs) + 1
		r.jobs[key] = id
	}
	return Job{ID: id, Model: r.models.of(key.Model)}
}

func keyOf(s *plan.Start) lineKey { return lineKey{s.Key, s.Chunk, s.Slot} }

func (r *Recorder) finished(now time.Time, f *plan.Finished) {
	key := keyOf(&f.Start)
	l := Line{
		Job: r.job(f.Start.Key).ID, Runner: r.runners.of(f.Start.Runner), End: endOf(f.Outcome),
		Took: seconds(f.Latency), First: seconds(r.firstToken[key]),
		Prompt: f.InputTokens, Cached: f.CachedTokens, Output: f.OutputTokens,
	}
	delete(r.firstToken, key)
	r.inFlight[l.Runner] = max(0, r.inFlight[l.Runner]-1)
	r.put(now, Entry{Line: &l})
}

// endOf returns the name of an outcome in a recording. The file format calls evicted lines
// "recalled".
func endOf(o plan.Outcome) string {
	if o == plan.Evicted {
		return "recalled"
	}
	return o.String()
}

// Preamble returns the entries at the beginning of each further file of a recording: the models of
// each runner. With them a file can be read without the files before it.
func (r *Recorder) Preamble() (all []Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range len(r.runners) {
		if models := r.serving[id+1]; len(models) > 0 {
			all = append(all, Entry{At: r.last, Runner: &Runner{ID: id + 1, Models: models}})
		}
	}
	return all
}
