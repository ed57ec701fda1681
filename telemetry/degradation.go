package telemetry

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Degradation is a source that gives no usable reading.
type Degradation struct {
	Target, Source string // as the labels of tidefill_reading_degraded
	State          string
	Since          time.Time
	Meaning        string // a sentence, with what to do
}

// meanings words the states of sources.
var meanings = map[state]string{
	stateAway: "No connection, no answer in time, or one that broke off. If it stays so, check " +
		"the URL and TLS.",
	stateRefused: "It refuses access (401 or 403). Check the key of the upstream, or the " +
		"credentials below telemetry.prometheus.",
	stateNoPage: "It has no such page, or no metrics of a known engine. Set " +
		"upstreams[].metrics or telemetry.signals.",
	stateTooLarge: "Its answer is too large. The log has the error.",
	stateGarbled:  "Its answer can't be understood. The log has the error.",
	stateFailing:  "It answers with an error. The log has it.",
	stateNoData: "Prometheus has no series that are selected. Check the names below " +
		"telemetry.prometheus, and that it scrapes them.",
	stateMixed: "Several engines answer under one URL in turn. List the engines as upstreams, or " +
		"set upstreams[].mode: gateway and list their pages in upstreams[].engines.",
	stateStarting: "Its capabilities are answered with 503, so it gets no lines. If it serves " +
		"all the same, repair them.",
	stateFrozen: "It shows requests, but nothing moves. Nothing to do: a line moves the engine.",
}

// degradations holds the sources that are degraded now. It is safe for concurrent use.
type degradations struct {
	mu  sync.Mutex
	all map[sourceKey]Degradation
}

type sourceKey struct{ target, kind string }

// set records the state of a source; empty: it is not degraded.
func (d *degradations) set(s source, now state) {
	key := sourceKey{s.target, s.kind}
	d.mu.Lock()
	defer d.mu.Unlock()
	if now == "" {
		delete(d.all, key)
		return
	}
	if d.all == nil {
		d.all = map[sourceKey]Degradation{}
	}
	d.all[key] = Degradation{Target: s.target, Source: s.kind, State: string(now),
		Since: time.Now(), Meaning: meanings[now]}
}

// Degraded returns the sources that give no usable reading, by target.
func (r *Reader) Degraded() []Degradation {
	r.degraded.mu.Lock()
	defer r.degraded.mu.Unlock()
	all := make([]Degradation, 0, len(r.degraded.all))
	for _, d := range r.degraded.all {
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b Degradation) int {
		return cmp.Or(cmp.Compare(a.Target, b.Target), cmp.Compare(a.Source, b.Source))
	})
	return all
}
