package live

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/tidefill/tidefill/runner/emulator"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// Outcome is how a trial went. Requests that arrived in its first and last edge are not counted,
// as in simulations.
type Outcome struct {
	Requests   int     `json:"requests"`
	Attainment float64 `json:"attainment"` // share that met both objectives
	Failed     int     `json:"failed"`     // without a complete answer; they missed
	TTFT       Times   `json:"ttft_ms"`
	TPOT       Times   `json:"tpot_ms"`
	// Worst is the lowest attainment over a minute's arrivals in a row, WorstAt its begin.
	WorstMinute float64 `json:"worst_minute"`
	// Tokens are those of batch lines answered by the end, input and output; Lines the number of
	// these lines.
	Tokens float64 `json:"batch_tokens"`
	Lines  float64 `json:"batch_lines"`
	// MeanInFlight is the mean number of batch lines in flight.
	MeanInFlight float64 `json:"mean_in_flight"`
	// DaemonCPU is the CPU time of the daemon, in cores.
	DaemonCPU float64 `json:"daemon_cores"`
	// SendError is the 99th percentile of the delay with which this program sent interactive
	// requests, in milliseconds: what the machine adds to all times.
	SendError float64 `json:"send_error_p99_ms"`
	// Engines is the timing of the runner that was latest, from its start to the end of the trial
	// or until it was killed.
	Engines emulator.Timing `json:"engines"`
	// Timeline has a row for each ten seconds.
	Timeline []Row `json:"timeline"`
	// Trace is what Recoveries needs.
	Trace Trace `json:"-"`
}

// maxLateness is the largest lateness of engines for a trial to be trusted, as a share of their
// mean iteration. With more, it says more of the machine than of the policy.
const maxLateness = 0.05

// Lateness returns the 99th percentile of the lateness with which engines ended their iterations,
// as a share of the mean iteration. tooMuch reports whether that is too much to trust the times of
// the trial.
func (o Outcome) Lateness() (share float64, tooMuch bool) {
	if o.Engines.Mean == 0 {
		return 0, false
	}
	share = o.Engines.LateP99 / o.Engines.Mean
	return share, share > maxLateness
}

// Times are quantiles in milliseconds.
type Times struct {
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	Mean float64 `json:"mean"`
}

// Row is a part of a timeline.
type Row struct {
	At       float64  `json:"at_s"`
	Requests int      `json:"requests"` // interactive, by arrival
	Late     int      `json:"late"`     // of these
	Tokens   float64  `json:"batch_tokens"`
	InFlight float64  `json:"in_flight"` // at the end
	Reasons  []string `json:"reasons,omitempty"`
}

const rowLength = 10 * time.Second

// recorder collects what a trial measures.
type recorder struct {
	objective scenario.SLO

	mu       sync.Mutex
	answered []answered
	states   []state
}

func (r *recorder) request(a answered) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answered = append(r.answered, a)
}

func (r *recorder) state(s state) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.states = append(r.states, s)
}

func (r *recorder) late(a answered) bool {
	return a.err != nil || a.ttft > r.objective.FirstToken(a.Input) || a.tpot > r.objective.TPOT
}

// outcome sums up a trial of a length, of which an edge at both ends is not counted.
func (r *recorder) outcome(length, edge time.Duration) Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortFunc(r.answered, func(a, b answered) int { return cmp.Compare(a.At, b.At) })
	var o Outcome
	var ttft, tpot, sent []float64
	minutes := make([]attained, length/time.Minute+1)
	met := 0
	for _, a := range r.answered {
		if a.At < edge || a.At >= length-edge {
			continue
		}
		o.Requests++
		minute := &minutes[(a.At-edge)/time.Minute]
		minute.all++
		sent = append(sent, milliseconds(a.late))
		if a.err != nil {
			o.Failed++
			continue
		}
		ttft = append(ttft, milliseconds(a.ttft))
		if a.tpot > 0 {
			tpot = append(tpot, milliseconds(a.tpot))
		}
		if !r.late(a) {
			met++
			minute.met++
		}
	}
	o.Attainment = share(met, o.Requests)
	o.TTFT, o.TPOT, o.SendError = times(ttft), times(tpot), times(sent).P99
	o.WorstMinute = 1
	for _, m := range minutes {
		o.WorstMinute = min(o.WorstMinute, share(m.met, m.all))
	}
	r.addBatch(&o, length)
	o.Timeline = r.timeline(length)
	o.Trace = r.trace(length)
	return o
}

func (r *recorder) trace(length time.Duration) Trace {
	t := Trace{End: length}
	for _, a := range r.answered {
		t.Arrivals = append(t.Arrivals, Arrival{a.At, r.late(a)})
	}
	for _, s := range r.states {
		t.Levels = append(t.Levels, Level{s.at, s.inFlight})
	}
	return t
}

type attained struct{ met, all int }

// addBatch adds what the daemon's metrics show. Counters begin again when the daemon does.
func (r *recorder) addBatch(o *Outcome, length time.Duration) {
	var before state
	cpu, inFlight := 0.0, 0.0
	for _, s := range r.states {
		o.Tokens += since(before.tokens, s.tokens)
		o.Lines += since(before.lines, s.lines)
		cpu += since(before.cpu, s.cpu)
		inFlight += s.inFlight
		before = s
	}
	o.DaemonCPU = cpu / length.Seconds()
	o.MeanInFlight = inFlight / float64(max(1, len(r.states)))
}

// since returns the growth of a counter.
func since(before, now float64) float64 {
	if now < before {
		return now
	}
	return now - before
}

func (r *recorder) timeline(length time.Duration) []Row {
	rows := make([]Row, (length+rowLength-1)/rowLength)
	for i := range rows {
		rows[i].At = (time.Duration(i) * rowLength).Seconds()
	}
	for _, a := range r.answered {
		if i := int(a.At / rowLength); i < len(rows) {
			rows[i].Requests++
			if r.late(a) {
				rows[i].Late++
			}
		}
	}
	var before state
	for _, s := range r.states {
		if i := int(s.at / rowLength); i < len(rows) {
			rows[i].Tokens += since(before.tokens, s.tokens)
			rows[i].InFlight, rows[i].Reasons = s.inFlight, s.reasons
		}
		before = s
	}
	return rows
}

func times(ms []float64) Times {
	if len(ms) == 0 {
		return Times{}
	}
	slices.Sort(ms)
	sum := 0.0
	for _, x := range ms {
		sum += x
	}
	at := func(q float64) float64 { return ms[int(math.Ceil(q*float64(len(ms))))-1] }
	return Times{P50: at(.5), P99: at(.99), Mean: sum / float64(len(ms))}
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

func share(part, whole int) float64 {
	if whole == 0 {
		return 1
	}
	return float64(part) / float64(whole)
}
