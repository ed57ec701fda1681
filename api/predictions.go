package api

import (
	"sync"
	"time"

	"github.com/tidefill/tidefill/store"
)

// predictions holds what was predicted of batches when they were created, until a dispatcher
// reports it. Without it a verdict would be known when a batch is created, unknown a moment later,
// and known again.
type predictions struct {
	mu      sync.Mutex
	byBatch map[string]prediction
}

type prediction struct {
	store.Forecast
	at time.Time
}

const (
	// predictionLife is the time for which a prediction is shown if no dispatcher reports one.
	// Decisions are at most five seconds apart.
	predictionLife = 15 * time.Second
	// maxPredictions limits the memory. Beyond it, all are dropped.
	maxPredictions = 10_000
)

// add notes what was predicted of a batch, unless nothing was.
func (p *predictions) add(batch string, of store.Forecast, now time.Time) {
	if of == (store.Forecast{}) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, known := range p.byBatch {
		if now.Sub(known.at) >= predictionLife {
			delete(p.byBatch, id)
		}
	}
	if p.byBatch == nil || len(p.byBatch) >= maxPredictions {
		p.byBatch = map[string]prediction{}
	}
	p.byBatch[batch] = prediction{of, now}
}

// of returns what was predicted of a batch when it was created, if that was just now.
func (p *predictions) of(batch string, now time.Time) store.Forecast {
	p.mu.Lock()
	defer p.mu.Unlock()
	known, found := p.byBatch[batch]
	if !found || now.Sub(known.at) >= predictionLife {
		return store.Forecast{}
	}
	return known.Forecast
}
