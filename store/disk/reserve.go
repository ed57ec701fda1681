package disk

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"

	"github.com/tidefill/tidefill/store"
)

const (
	// reserveShare limits a reserve to a sixteenth of its file system.
	reserveShare = 16
	ballastName  = "reserve"
)

// space is the free and total number of bytes of a file system.
type space struct{ free, total int64 }

// reserve is space on the medium that files and results do not use, so that the writes that free
// space always succeed: deletions, changes of states, claims and leases, all of them small writes
// of the database.
//
// One half of it is free space that blobs and journals do not use. The other half is the ballast, a
// file whose space other programs can't use either. It is truncated when a small write finds no
// space, and written again once there is enough; blobs and journals wait until then. Several
// processes may share the ballast.
type reserve struct {
	dir    string
	size   int64 // of both halves; 0: there is no reserve
	statfs func(dir string) (space, error)
	log    *slog.Logger
	waits  string // what waits while the disk is full

	mu   sync.Mutex // held while the ballast changes
	full bool       // as logged last: blobs and journals wait
}

// newReserve returns a reserve of at most o.ReserveBytes. It writes nothing.
func newReserve(dir string, o Options) *reserve {
	r := &reserve{dir: dir, size: o.ReserveBytes, statfs: o.statfs, log: o.Logger,
		waits: "no new lines and no uploads"}
	if o.Scratch {
		r.waits = "no new lines whose answers are too large for memory"
	}
	if s, err := r.statfs(dir); err == nil {
		r.size = min(r.size, s.total/reserveShare)
	}
	r.size = max(0, r.size)
	return r
}

func (r *reserve) path() string { return filepath.Join(r.dir, ballastName) }

func (r *reserve) ballast() int64 { return r.size / 2 }

// ballastSize returns the present size of the ballast.
func (r *reserve) ballastSize() int64 {
	info, err := os.Stat(r.path())
	if err != nil {
		return 0
	}
	return info.Size()
}

// check returns ErrNoSpace if n more bytes of blobs or journals would use the reserve. On systems
// that do not report free space there is space until a write fails.
func (r *reserve) check(n int64) error {
	if r.size == 0 {
		return nil
	}
	s, err := r.statfs(r.dir)
	if err != nil {
		return nil //nolint:nilerr // a write will fail when the medium is full
	}
	if s.free-n >= r.size { // whatever the ballast
		return nil
	}
	if left := r.left(s); left < n {
		return fmt.Errorf("%w: %d bytes are free, and the last %d are reserved", store.ErrNoSpace,
			s.free, r.size)
	}
	return nil
}

// left returns the free bytes without the reserve; negative: that many of it are used.
func (r *reserve) left(s space) int64 {
	if r.size == 0 {
		return s.free
	}
	return s.free + r.ballastSize() - r.size
}

// unused returns the bytes that are free for blobs, journals and temporary files; math.MaxInt64 on
// systems that do not report free space.
func (r *reserve) unused() int64 {
	s, err := r.statfs(r.dir)
	if err != nil {
		return math.MaxInt64
	}
	return max(0, r.left(s))
}

// release truncates the ballast. It reports whether there was any.
func (r *reserve) release() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ballastSize() == 0 {
		return false
	}
	if err := os.Truncate(r.path(), 0); err != nil {
		r.log.Error("could not release the reserve of the data directory", "path", r.path(),
			"error", err)
		return false
	}
	r.log.Warn("the disk is full: released the reserve, so that files can be deleted and batches "+
		"be changed", "path", r.path(), "bytes", r.ballast())
	return true
}

// restore writes the ballast again if there is space for it, and logs when the space for files ends
// and when there is some again.
func (r *reserve) restore() {
	if r.size == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s, err := r.statfs(r.dir)
	if err != nil {
		return
	}
	held := r.ballastSize()
	full := s.free+held < r.size
	if full != r.full {
		r.full = full
		if full {
			r.log.Warn("the disk is full except for the reserve: "+r.waits+" until there is free "+
				"space", "free_bytes", s.free, "reserve_bytes", r.size)
		} else {
			r.log.Info("there is free space again", "free_bytes", s.free)
		}
	}
	if full || held >= r.ballast() {
		return
	}
	if err := r.refill(); err != nil {
		r.log.Debug("could not restore the reserve", "error", err)
	}
}

// refill writes the ballast to its full size.
func (r *reserve) refill() error {
	f, err := os.OpenFile(r.path(), os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return translate(err)
	}
	return errors.Join(translate(allocate(f, r.ballast())), f.Close())
}

// prepare truncates the ballast if there is no space for the first small files of a start, and else
// writes it.
func (r *reserve) prepare() {
	if s, err := r.statfs(r.dir); err == nil && r.size > 0 && s.free < r.ballast() {
		r.release()
	}
	r.restore()
}

// fill writes random bytes, which no file system can compress, up to size.
func fill(f *os.File, size int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	block, random := make([]byte, 64<<10), rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))
	for left := size - info.Size(); left > 0; {
		for i := range block {
			block[i] = byte(random.Uint32())
		}
		n, err := f.Write(block[:min(left, int64(len(block)))])
		if left -= int64(n); err != nil {
			return err
		}
	}
	return nil
}
