package disk

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"

	"github.com/tidefill/tidefill/store"
)

const (
	// reserveShare is the share of its file system that a reserve takes at most: a sixteenth.
	reserveShare = 16
	ballastName  = "reserve"
)

// space is what a file system has.
type space struct{ free, total int64 }

// reserve keeps room on the medium that files and results don't get, so that what frees room always
// can be written down: deletions, changes of states, claims and leases, all of them small writes of
// the database.
//
// One half of it is free space that blobs and journals leave alone. The other half is the ballast,
// a file that other programs can't take the room of either. It is given up when a small write finds
// no room, and made again once there is enough: blobs and journals wait until then. Several
// processes may share the ballast.
type reserve struct {
	dir    string
	size   int64 // of both halves; 0: there is no reserve
	statfs func(dir string) (space, error)
	log    *slog.Logger

	mu   sync.Mutex // held while the ballast changes
	full bool       // the log knows that blobs and journals wait
}

// newReserve makes a reserve of at most so many bytes. It doesn't touch the medium.
func newReserve(dir string, o Options) *reserve {
	r := &reserve{dir: dir, size: o.ReserveBytes, statfs: o.statfs, log: o.Logger}
	if s, err := r.statfs(dir); err == nil {
		r.size = min(r.size, s.total/reserveShare)
	}
	r.size = max(0, r.size)
	return r
}

func (r *reserve) path() string { return filepath.Join(r.dir, ballastName) }

func (r *reserve) ballast() int64 { return r.size / 2 }

// held is the size of the ballast now.
func (r *reserve) held() int64 {
	info, err := os.Stat(r.path())
	if err != nil {
		return 0
	}
	return info.Size()
}

// room returns ErrNoSpace if n more bytes of blobs or journals would touch the reserve. Systems
// that don't say how much is left have room until a write fails.
func (r *reserve) room(n int64) error {
	if r.size == 0 {
		return nil
	}
	s, err := r.statfs(r.dir)
	if err != nil {
		return nil
	}
	if s.free-n >= r.size { // without a look at the ballast
		return nil
	}
	if left := s.free + r.held() - r.size; left < n {
		return fmt.Errorf("%w: %d bytes are free, and the last %d are reserved", store.ErrNoSpace,
			s.free, r.size)
	}
	return nil
}

// giveUp frees the ballast. It reports whether there was any.
func (r *reserve) giveUp() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held() == 0 {
		return false
	}
	if err := os.Truncate(r.path(), 0); err != nil {
		r.log.Error("could not give up the reserve of the data directory", "path", r.path(),
			"error", err)
		return false
	}
	r.log.Warn(
		"a small write found no room: gave up the reserve, so that files can be deleted and batches be changed",
		"path", r.path(), "bytes", r.ballast())
	return true
}

// look makes the ballast whole again if there is room for it, and notes in the log when room ends
// and comes back.
func (r *reserve) look() {
	if r.size == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s, err := r.statfs(r.dir)
	if err != nil {
		return
	}
	held := r.held()
	full := s.free+held < r.size
	if full != r.full {
		r.full = full
		if full {
			r.log.Warn(
				"the disk is full but for the reserve: no new lines and no uploads until there is room",
				"free_bytes", s.free, "reserve_bytes", r.size)
		} else {
			r.log.Info("there is room again", "free_bytes", s.free)
		}
	}
	if full || held >= r.ballast() {
		return
	}
	if err := r.refill(); err != nil {
		r.log.Debug("could not make the reserve whole", "error", err)
	}
}

// refill makes the ballast whole.
func (r *reserve) refill() error {
	f, err := os.OpenFile(r.path(), os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return translate(err)
	}
	return errors.Join(translate(allocate(f, r.ballast())), f.Close())
}

// prepare frees the ballast at a start that would find no room for its first small files, and makes
// it otherwise.
func (r *reserve) prepare() {
	if s, err := r.statfs(r.dir); err == nil && r.size > 0 && s.free < r.ballast() {
		r.giveUp()
	}
	r.look()
}

// fill writes bytes that no file system can compress.
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
