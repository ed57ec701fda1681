package disk

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/tidefill/tidefill/store"
)

// presenceLife is how long a look at the directories counts.
const presenceLife = 100 * time.Millisecond

// presence notices when the directories that were opened no longer stand under their names: they
// were deleted, replaced or unmounted under the process. What is written then is lost, or stands in
// another place than what was written before. The directories are kept open, so that their inodes
// aren't given to others.
type presence struct {
	dirs []*os.File

	mu     sync.Mutex
	looked time.Time
	fault  error // at the last look
}

func openPresence(paths ...string) (*presence, error) {
	p := &presence{}
	for _, path := range paths {
		d, err := os.Open(path)
		if err != nil {
			return nil, errors.Join(translate(err), p.close())
		}
		p.dirs = append(p.dirs, d)
	}
	return p, nil
}

func (p *presence) close() (err error) {
	for _, d := range p.dirs {
		err = errors.Join(err, d.Close())
	}
	return err
}

// check returns ErrUnavailable while a directory is gone. It comes back by itself if just that
// directory does.
func (p *presence) check() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.looked) > presenceLife {
		p.fault, p.looked = p.look(), time.Now()
	}
	return p.fault
}

// checkNow is check without regard to an earlier look.
func (p *presence) checkNow() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.looked = p.look(), time.Now()
	return p.fault
}

func (p *presence) look() error {
	for _, d := range p.dirs {
		opened, err := d.Stat()
		if err != nil {
			return fmt.Errorf("%w: look at directory %s: %w", store.ErrUnavailable, d.Name(), err)
		}
		now, err := os.Stat(d.Name())
		switch {
		case errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("%w: directory %s is gone: put it back, or restart with another",
				store.ErrUnavailable, d.Name())
		case err != nil:
			return fmt.Errorf("%w: look at directory %s: %w", store.ErrUnavailable, d.Name(), err)
		case !os.SameFile(opened, now):
			return fmt.Errorf(
				"%w: directory %s is another than the one that was opened: was it deleted or unmounted? Put it back, or restart",
				store.ErrUnavailable, d.Name())
		}
	}
	return nil
}

// missing explains that a file was not found: ErrUnavailable if its directory is gone as well.
func (p *presence) missing(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		if gone := p.checkNow(); gone != nil {
			return gone
		}
	}
	return err
}
