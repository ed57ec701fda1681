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

// Places holds the open storages of profiles, and open buckets of users. It is safe for concurrent
// use.
type Places struct {
	opts Options

	mu     sync.Mutex
	places map[placeKey]*place
}

// placeKey identifies a storage and its use.
type placeKey struct {
	store.Storage
	shared bool
	below  string // begins all names that may be used of a shared bucket
}

// New returns places of which none is open.
func New(o Options) *Places {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.AskAfter <= 0 {
		o.AskAfter = askAfter
	}
	return &Places{opts: o, places: map[placeKey]*place{}}
}

// Of returns the blobs of a storage. Their first use opens it.
func (p *Places) Of(s store.Storage) store.Blobs { return &blobs{p.place(placeKey{Storage: s})} }

// Shared returns the objects of a bucket of users, by their own names. Their first use opens it,
// with a check that names below a prefix can be listed.
func (p *Places) Shared(s store.Storage, below string) *Shared {
	return &Shared{blobs{p.place(placeKey{s, true, below})}}
}

func (p *Places) place(key placeKey) *place {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.places[key]
	if known == nil {
		known = &place{placeKey: key, opts: &p.opts, turn: make(chan struct{}, 1)}
		p.places[key] = known
	}
	return known
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
