package kube_test

import (
	"io"
	"net"
	"sync"
	"testing"
)

// proxy is a way to the API server that can be cut.
type proxy struct {
	listener net.Listener

	mu          sync.Mutex
	cut         bool
	stalled     bool
	flows       *sync.Cond // stalled is false
	connections map[net.Conn]bool
	running     sync.WaitGroup
}

// newProxy returns a proxy that works until the test ends.
func newProxy(t *testing.T) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, connections: map[net.Conn]bool{}}
	p.flows = sync.NewCond(&p.mu)
	p.running.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.setCut(true)
		p.running.Wait()
	})
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// setCut ends all connections and refuses others, or permits them again.
func (p *proxy) setCut(cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut, p.stalled = cut, false
	p.flows.Broadcast()
	for c := range p.connections {
		if cut {
			c.Close()
		}
	}
}

// stall keeps connections open and passes nothing on, until setCut is called.
func (p *proxy) stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stalled = true
}

// await waits until the proxy passes data on.
func (p *proxy) await() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.stalled {
		p.flows.Wait()
	}
}

// flow is a side of a connection that passes on what is written to it.
type flow struct {
	net.Conn
	proxy *proxy
}

func (f flow) Write(b []byte) (int, error) {
	f.proxy.await()
	return f.Conn.Write(b)
}

// add notes a connection, so that it can be cut. It returns false if it is cut already.
func (p *proxy) add(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut {
		c.Close()
		return false
	}
	p.connections[c] = true
	return true
}

func (p *proxy) remove(c net.Conn) {
	c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.connections, c)
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		if !p.add(client) {
			continue
		}
		p.running.Go(func() { p.pass(client) })
	}
}

func (p *proxy) pass(client net.Conn) {
	defer p.remove(client)
	server, err := net.Dial("tcp", plane.address())
	if err != nil {
		return
	}
	defer p.remove(server)
	if !p.add(server) {
		return
	}
	p.running.Go(func() {
		defer p.remove(client)
		_, _ = io.Copy(flow{client, p}, server) // ends when one of them is closed
	})
	_, _ = io.Copy(flow{server, p}, client)
}
