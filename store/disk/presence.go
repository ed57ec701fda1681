package disk

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/tidefill/tidefill/store"
)

// presenceTTL is the time for which the result of an inspection is used.
const presenceTTL = 100 * time.Millisecond

// presence detects that the opened directories are no longer at their paths: they were deleted,
// replaced or unmounted while the process runs. Later writes would be lost, or be separated from
// earlier ones. It holds the directories open, so that their inodes are not reused. A file system
// that is shared can be replaced without that; a marker file shows it.
type presence struct {
	dirs []*os.File

	mu        sync.Mutex
	marker    string // path of a file that must be there; empty: none
	want      string // its content
	checkedAt time.Time
	err       error // of the last inspection
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

// check returns ErrUnavailable while a directory is missing. The directory may be moved back.
func (p *presence) check() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.checkedAt) > presenceTTL {
		p.err, p.checkedAt = p.inspect(), time.Now()
	}
	return p.err
}

// checkNow is check with a new inspection.
func (p *presence) checkNow() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err, p.checkedAt = p.inspect(), time.Now()
	return p.err
}

func (p *presence) inspect() error {
	for _, d := range p.dirs {
		opened, err := d.Stat()
		if err != nil {
			return fmt.Errorf("%w: inspect directory %s: %w", store.ErrUnavailable, d.Name(), err)
		}
		now, err := os.Stat(d.Name())
		switch {
		case errors.Is(err, os.ErrNotExist):
			return fmt.Errorf("%w: directory %s is missing: move it back, or restart with "+
				"another one", store.ErrUnavailable, d.Name())
		case err != nil:
			return fmt.Errorf("%w: inspect directory %s: %w", store.ErrUnavailable, d.Name(), err)
		case !os.SameFile(opened, now):
			return fmt.Errorf("%w: directory %s is not the one that was opened; was it deleted or "+
				"unmounted? Move it back, or restart", store.ErrUnavailable, d.Name())
		}
	}
	return p.inspectMarker()
}

func (p *presence) inspectMarker() error {
	if p.marker == "" {
		return nil
	}
	content, err := os.ReadFile(p.marker)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%w: file %s is missing, by which the directory is recognized; was it "+
			"unmounted? Mount it again", store.ErrUnavailable, p.marker)
	case err != nil:
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	case string(content) != p.want:
		return fmt.Errorf("%w: file %s is that of other files now; mount the directory of this "+
			"installation again", store.ErrUnavailable, p.marker)
	}
	return nil
}

// expect has the file checked from now on.
func (p *presence) expect(path, content string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.marker, p.want, p.checkedAt = path, content, time.Time{}
}

// explain replaces ErrNotFound by ErrUnavailable if the directories are missing as well.
func (p *presence) explain(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		if gone := p.checkNow(); gone != nil {
			return gone
		}
	}
	return err
}
