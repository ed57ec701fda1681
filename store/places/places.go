package places

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/tidefill/tidefill/store"
)

// Options configures New. The zero value works.
type Options struct {
	// SecretsDir holds a directory for each Secret, named after it. Empty: only absolute paths name
	// Secrets.
	SecretsDir string
	// Data is the daemon's data directory, in which no storage may be. Empty: there is none.
	Data string
	// Existing has directories used only if they exist. Others are created.
	Existing bool
	// Logger receives reports of work in the background. Nil: none.
	Logger *slog.Logger
	// AskAfter is the time after which a storage that did not answer is asked again. Default: 5 s.
	AskAfter time.Duration
}

// Places holds the open storages of profiles. It is safe for concurrent use.
type Places struct {
	opts Options

	mu     sync.Mutex
	places map[store.Storage]*place
}

// New returns places of which none is open.
func New(o Options) *Places {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.AskAfter <= 0 {
		o.AskAfter = askAfter
	}
	return &Places{opts: o, places: map[store.Storage]*place{}}
}

// Of returns the blobs of a storage. Their first use opens it.
func (p *Places) Of(s store.Storage) store.Blobs {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.places[s]
	if known == nil {
		known = &place{storage: s, opts: &p.opts, turn: make(chan struct{}, 1)}
		p.places[s] = known
	}
	return &blobs{known}
}

// Close closes all clients.
func (p *Places) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var faults []error
	for _, known := range p.places {
		faults = append(faults, known.close())
	}
	return errors.Join(faults...)
}
