package segments

import (
	"container/list"
	"sync"
)

// pieceID is the place of a piece of a journal in the object storage.
type pieceID struct {
	key    Key
	offset int64
}

// cache keeps the pieces that were read last. Objects never change, so pieces stay valid.
type cache struct {
	limit int64

	mu     sync.Mutex
	bytes  int64
	byID   map[pieceID]*list.Element
	recent list.List // of *cached, the last used one first
}

type cached struct {
	id   pieceID
	data []byte
}

func newCache(limit int64) *cache {
	return &cache{limit: limit, byID: map[pieceID]*list.Element{}}
}

// get returns a piece, which must not be changed; nil: the cache does not have it.
func (c *cache) get(id pieceID) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byID[id]
	if e == nil {
		return nil
	}
	c.recent.MoveToFront(e)
	return e.Value.(*cached).data
}

// put adds a piece and drops the ones that were not used for longest.
func (c *cache) put(id pieceID, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if int64(len(data)) > c.limit || c.byID[id] != nil {
		return
	}
	c.byID[id] = c.recent.PushFront(&cached{id, data})
	c.bytes += int64(len(data))
	for c.bytes > c.limit {
		oldest := c.recent.Remove(c.recent.Back()).(*cached)
		delete(c.byID, oldest.id)
		c.bytes -= int64(len(oldest.data))
	}
}
