package httpserver

import (
	"container/list"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// freshTime is how long a new connection may take to its first request before it has to make room
// for another.
const freshTime = 2 * time.Second

// connections counts the open connections of a server, in all and by address, and closes some to
// make room for others.
type connections struct {
	most, perAddress int // 0: no bound
	proxies          []netip.Prefix

	mu     sync.Mutex
	open   int
	counts map[netip.Addr]int
	idle   list.List // of *conn that wait for another request, the longest waiting first
	fresh  list.List // of *conn that have not sent a request, the oldest first
}

// conn is a connection that is counted until it is closed.
type conn struct {
	net.Conn
	of      *connections
	address netip.Addr // by which it is counted; invalid: in all only

	// Guarded by of.mu.
	closed bool
	queue  *list.List // that it stands in; nil: it serves a request
	place  *list.Element
	since  time.Time
}

// verdict is the reason not to serve a connection or request.
type verdict string

const (
	admitted  verdict = ""
	tooMany   verdict = "total"
	tooManyOf verdict = "address"
)

// admit counts a connection and returns it, after having made room for it if need be.
func (c *connections) admit(inner net.Conn) (*conn, verdict) {
	added := &conn{Conn: inner, of: c, address: c.counted(inner.RemoteAddr())}
	c.mu.Lock()
	defer c.mu.Unlock()
	if full := c.full(added.address); full != admitted {
		victim := c.victim(full, added.address)
		if victim == nil {
			return nil, full
		}
		c.closeLocked(victim)
		if full := c.full(added.address); full != admitted { // in the other respect
			return nil, full
		}
	}
	c.open++
	if added.address.IsValid() {
		c.counts[added.address]++
	}
	c.enqueue(added, &c.fresh)
	return added, admitted
}

// full reports which bound leaves no room for one more of an address. The address comes first: its
// own connections make room then.
func (c *connections) full(address netip.Addr) verdict {
	switch {
	case c.perAddress > 0 && address.IsValid() && c.counts[address] >= c.perAddress:
		return tooManyOf
	case c.most > 0 && c.open >= c.most:
		return tooMany
	}
	return admitted
}

// victim returns the connection to close for another one, nil if all are at work.
func (c *connections) victim(full verdict, address netip.Addr) *conn {
	for _, queue := range []*list.List{&c.idle, &c.fresh} {
		for place := queue.Front(); place != nil; place = place.Next() {
			candidate := place.Value.(*conn)
			if queue == &c.fresh && time.Since(candidate.since) < freshTime {
				break
			}
			if full == tooMany || candidate.address == address {
				return candidate
			}
		}
	}
	return nil
}

// begin counts a request that shares its connection with others; end must be called if it is
// admitted.
func (c *connections) begin(remote string) (end func(), full verdict) {
	var address netip.Addr
	if parsed, err := netip.ParseAddrPort(remote); err == nil {
		address = c.countedAddress(parsed.Addr())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if full := c.full(address); full != admitted {
		return nil, full
	}
	c.add(address, 1)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.add(address, -1)
	}, admitted
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

// counted returns the address by which a client is counted, invalid for one that isn't.
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
	if address.Is6() { // a site usually has all of it
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

// changed is an http.Server's ConnState.
func (c *connections) changed(served net.Conn, state http.ConnState) {
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

// count returns how many connections are open.
func (c *connections) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open
}

// CloseWrite lets the server close the sending side first, so that a client can read an answer to a
// request that was not read whole.
func (c *conn) CloseWrite() error {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		return tcp.CloseWrite()
	}
	return nil
}
