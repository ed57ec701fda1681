package httpserver

import (
	"container/list"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// freshTime is the time that a new connection has for its first request before it may be closed in
// favor of another connection.
const freshTime = 2 * time.Second

// connections counts the open connections of a server, in total and by address, and closes idle
// ones in favor of new ones.
type connections struct {
	max, maxPerAddress int // 0: no limit
	proxies            []netip.Prefix

	mu     sync.Mutex
	open   int
	counts map[netip.Addr]int
	idle   list.List // *conn between two requests, the longest idle first
	fresh  list.List // *conn without a request so far, the oldest first
}

// conn is a connection that is counted until it is closed.
type conn struct {
	net.Conn
	of      *connections
	address netip.Addr // that it counts for; invalid: it counts in total only

	// Guarded by of.mu.
	closed bool
	queue  *list.List // idle or fresh; nil: the connection serves a request
	place  *list.Element
	since  time.Time // when it was put into the queue
}

// exceededLimit is the reason for refusing a connection or request.
type exceededLimit string

const (
	noLimit      exceededLimit = "" // admitted
	totalLimit   exceededLimit = "total"
	addressLimit exceededLimit = "address"
)

// admit counts a connection and returns it. At a limit it closes an idle connection first; if there
// is none, it returns the limit.
func (c *connections) admit(inner net.Conn) (*conn, exceededLimit) {
	added := &conn{Conn: inner, of: c, address: c.counted(inner.RemoteAddr())}
	c.mu.Lock()
	defer c.mu.Unlock()
	if full := c.full(added.address); full != noLimit {
		victim := c.victim(full, added.address)
		if victim == nil {
			return nil, full
		}
		_ = c.closeLocked(victim)
		if full := c.full(added.address); full != noLimit { // the other limit
			return nil, full
		}
	}
	c.open++
	if added.address.IsValid() {
		c.counts[added.address]++
	}
	c.enqueue(added, &c.fresh)
	return added, noLimit
}

// full returns the limit that one more connection of an address would exceed. The address has
// precedence, so that its own connections are closed.
func (c *connections) full(address netip.Addr) exceededLimit {
	switch {
	case c.maxPerAddress > 0 && address.IsValid() && c.counts[address] >= c.maxPerAddress:
		return addressLimit
	case c.max > 0 && c.open >= c.max:
		return totalLimit
	}
	return noLimit
}

// victim returns the connection to close in favor of another one; nil: all serve requests.
func (c *connections) victim(full exceededLimit, address netip.Addr) *conn {
	for _, queue := range []*list.List{&c.idle, &c.fresh} {
		for place := queue.Front(); place != nil; place = place.Next() {
			candidate := place.Value.(*conn)
			if queue == &c.fresh && time.Since(candidate.since) < freshTime {
				break
			}
			if full == totalLimit || candidate.address == address {
				return candidate
			}
		}
	}
	return nil
}

// begin counts a request that shares its connection with others. The caller calls end if the
// request is admitted.
func (c *connections) begin(remote string) (end func(), full exceededLimit) {
	var address netip.Addr
	if parsed, err := netip.ParseAddrPort(remote); err == nil {
		address = c.countedAddress(parsed.Addr())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if full := c.full(address); full != noLimit {
		return nil, full
	}
	c.add(address, 1)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.add(address, -1)
	}, noLimit
}

func (c *connections) add(address netip.Addr, n int) {
	c.open += n
	if !address.IsValid() {
		return
	}
	if c.counts[address] += n; c.counts[address] == 0 {
		delete(c.counts, address)
	}
}

// counted returns the address that a client counts for. Invalid: the client is not limited.
func (c *connections) counted(remote net.Addr) netip.Addr {
	tcp, ok := remote.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return c.countedAddress(tcp.AddrPort().Addr())
}

func (c *connections) countedAddress(address netip.Addr) netip.Addr {
	address = address.Unmap().WithZone("")
	if address.IsLoopback() {
		return netip.Addr{}
	}
	for _, proxy := range c.proxies {
		if proxy.Contains(address) {
			return netip.Addr{}
		}
	}
	if address.Is6() { // a site usually has the complete /64
		prefix, _ := address.Prefix(64)
		return prefix.Addr()
	}
	return address
}

func (c *connections) enqueue(added *conn, queue *list.List) {
	if added.queue != nil {
		added.queue.Remove(added.place)
	}
	added.queue, added.place = queue, nil
	if queue != nil {
		added.since = time.Now()
		added.place = queue.PushBack(added)
	}
}

// stateChanged implements http.Server.ConnState.
func (c *connections) stateChanged(served net.Conn, state http.ConnState) {
	if secured, ok := served.(interface{ NetConn() net.Conn }); ok {
		served = secured.NetConn()
	}
	changed, ok := served.(*conn)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case changed.closed:
	case state == http.StateActive:
		c.enqueue(changed, nil)
	case state == http.StateIdle:
		c.enqueue(changed, &c.idle)
	}
}

// Close closes the connection and stops counting it.
func (c *conn) Close() error {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	return c.of.closeLocked(c)
}

func (c *connections) closeLocked(gone *conn) error {
	if !gone.closed {
		gone.closed = true
		c.enqueue(gone, nil)
		c.add(gone.address, -1)
	}
	return gone.Conn.Close()
}

// count returns the number of open connections.
func (c *connections) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

// CloseWrite closes the sending side, so that a client can read the answer to a request whose body
// was not read completely.
func (c *conn) CloseWrite() error {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		return tcp.CloseWrite()
	}
	return nil
}
