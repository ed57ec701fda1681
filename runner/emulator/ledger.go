package emulator

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"sync"
)

// Ledger counts inference requests since the start or the last DELETE of /admin/requests.
type Ledger struct {
	Received  int `json:"received"`  // bodies read in full
	Completed int `json:"completed"` // answered 200, completely
	Shed      int `json:"shed"`      // answered 429 or 503
	Failed    int `json:"failed"`    // any other end, including clients that left
	InFlight  int `json:"in_flight"`

	// bodies
	Distinct         int    `json:"distinct"`           // bodies
	Repeated         int    `json:"repeated"`           // bodies received more than once
	CompletedTwice   int    `json:"completed_twice"`    // bodies completed more than once
	MaxReceived      int    `json:"most_received"`      // times the most frequent body was received
	DistinctComplete int    `json:"distinct_completed"` // bodies completed at least once
	Bodies           []Body `json:"bodies,omitempty"`   // with ?bodies=true, by hash
}

// Body counts a request body, byte for byte.
type Body struct {
	SHA256    string `json:"sha256"` // in hexadecimal
	Received  int    `json:"received"`
	Completed int    `json:"completed"`
}

type digest [sha256.Size]byte

// ledger updates the counts of a Ledger.
type ledger struct {
	mu     sync.Mutex
	totals Ledger
	record bool
	bodies map[digest]*Body
}

func newLedger(record bool) *ledger {
	return &ledger{record: record, bodies: map[digest]*Body{}}
}

// entry is one request in the ledger.
type ledgerEntry struct {
	ledger *ledger
	body   *Body // nil without Config.Record
	status int   // 0: no complete response was sent
}

// receive opens the entry of a request. It must be closed.
func (l *ledger) receive(body []byte) *ledgerEntry {
	e := &ledgerEntry{ledger: l}
	var key digest
	if l.record {
		key = sha256.Sum256(body)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.totals.Received++
	l.totals.InFlight++
	if l.record {
		if e.body = l.bodies[key]; e.body == nil {
			e.body = &Body{SHA256: hex.EncodeToString(key[:])}
			l.bodies[key] = e.body
		}
		e.body.Received++
	}
	return e
}

// finish records that a complete response was sent.
func (e *ledgerEntry) finish(status int) { e.status = status }

func (e *ledgerEntry) close() {
	e.ledger.mu.Lock()
	defer e.ledger.mu.Unlock()
	totals := &e.ledger.totals
	totals.InFlight--
	switch e.status {
	case http.StatusOK:
		totals.Completed++
		if e.body != nil {
			e.body.Completed++
		}
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		totals.Shed++
	default:
		totals.Failed++
	}
}

func (l *ledger) read(withBodies bool) Ledger {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := l.totals
	counts.Distinct = len(l.bodies)
	for _, b := range l.bodies {
		if b.Received > 1 {
			counts.Repeated++
		}
		if b.Completed > 0 {
			counts.DistinctComplete++
		}
		if b.Completed > 1 {
			counts.CompletedTwice++
		}
		counts.MaxReceived = max(counts.MaxReceived, b.Received)
		if withBodies {
			counts.Bodies = append(counts.Bodies, *b)
		}
	}
	slices.SortFunc(counts.Bodies, func(a, b Body) int { return cmp.Compare(a.SHA256, b.SHA256) })
	return counts
}

// reset resets the counts; requests in flight stay in flight.
func (l *ledger) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.totals = Ledger{InFlight: l.totals.InFlight}
	l.bodies = map[digest]*Body{}
}
