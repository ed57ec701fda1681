package engine

// memory counts the KV blocks of an engine. A block is free, private to one sequence, or in the
// prefix cache. A cached block that no sequence uses is idle. Idle blocks are evicted when blocks
// are needed, least recently used first.
type memory struct {
	total   int
	private int

	cache map[Hash]int32 // index into nodes
	nodes []cacheNode    // nodes[0] is the ring of idle blocks: next is the oldest
	spare []int32        // unused nodes
	idle  int
}

type cacheNode struct {
	hash       Hash
	refs       int
	prev, next int32 // ring of idle blocks, while refs is 0
}

func newMemory(blocks int) *memory {
	return &memory{total: blocks, cache: map[Hash]int32{}, nodes: make([]cacheNode, 1)}
}

// available returns the number of blocks that can be taken.
func (m *memory) available() int { return m.total - m.private - len(m.cache) + m.idle }

// used returns the number of blocks that sequences use.
func (m *memory) used() int { return m.total - m.available() }

// take makes n blocks private. The caller has checked that they are available.
func (m *memory) take(n int) {
	m.private += n
	for m.private+len(m.cache) > m.total {
		m.evict()
	}
}

// cachedPrefix returns the number of leading hashes that are cached, and the number of idle blocks
// among them.
func (m *memory) cachedPrefix(prefix []Hash) (hits, idle int) {
	for _, h := range prefix {
		i, ok := m.cache[h]
		if !ok {
			break
		}
		hits++
		if m.nodes[i].refs == 0 {
			idle++
		}
	}
	return hits, idle
}

// share turns one private block into the cached block of h. If another sequence has cached the same
// block meanwhile, that one is used and the private block becomes free.
func (m *memory) share(h Hash) {
	m.private--
	if _, ok := m.cache[h]; ok {
		m.refer(h)
		return
	}
	var i int32
	if last := len(m.spare) - 1; last >= 0 {
		i, m.spare = m.spare[last], m.spare[:last]
	} else {
		i = int32(len(m.nodes))
		m.nodes = append(m.nodes, cacheNode{})
	}
	m.nodes[i] = cacheNode{hash: h, refs: 1}
	m.cache[h] = i
}

// refer adds a reference to the cached block of h.
func (m *memory) refer(h Hash) {
	i := m.cache[h]
	if m.nodes[i].refs == 0 {
		m.unlink(i)
	}
	m.nodes[i].refs++
}

// unrefer removes a reference. The block stays cached, as the most recently used.
func (m *memory) unrefer(h Hash) {
	i := m.cache[h]
	node := &m.nodes[i]
	node.refs--
	if node.refs > 0 {
		return
	}
	newest := m.nodes[0].prev
	node.prev, node.next = newest, 0
	m.nodes[newest].next = i
	m.nodes[0].prev = i
	m.idle++
}

func (m *memory) unlink(i int32) {
	node := m.nodes[i]
	m.nodes[node.prev].next = node.next
	m.nodes[node.next].prev = node.prev
	m.idle--
}

func (m *memory) evict() {
	oldest := m.nodes[0].next
	m.unlink(oldest)
	delete(m.cache, m.nodes[oldest].hash)
	m.spare = append(m.spare, oldest)
}

// flush evicts every idle block and returns their number.
func (m *memory) flush() int {
	n := m.idle
	for m.idle > 0 {
		m.evict()
	}
	return n
}

// release frees the blocks of s. Its last cached block becomes idle first, because a prefix is
// useless without its beginning.
func (m *memory) release(s *sequence) {
	for i := s.shared - 1; i >= 0; i-- {
		m.unrefer(s.Prefix[i])
	}
	m.private -= s.private
	s.shared, s.private = 0, 0
}
