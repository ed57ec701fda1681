package e2e

import (
	"net"
	"sync"
	"testing"
)

// Relay passes connections on to a server, and is the network between two programs: it can be cut
// and heal again.
type Relay struct {
	Address string

	mu          sync.Mutex
	to          string
	fault       RelayFault
	healed      chan struct{} // closed when the fault ends
	connections map[net.Conn]bool
}

// RelayFault is what a relay does to connections.
type RelayFault int

// Faults of a relay.
const (
	Passes  RelayFault = iota
	Refuses            // connections end, and new ones end at once
	Drops              // connections stay, and nothing passes in either direction
)

// NewRelay starts a relay to an address. It ends with the test.
func NewRelay(t testing.TB, to string) *Relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{Address: listener.Addr().String(), to: to, connections: map[net.Conn]bool{}}
	t.Cleanup(func() {
		listener.Close()
		r.Set(Refuses)
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go r.serve(conn)
		}
	}()
	return r
}

// Retarget passes new connections on to another address, and ends those that exist.
func (r *Relay) Retarget(to string) {
	r.mu.Lock()
	r.to = to
	r.mu.Unlock()
	r.Cut()
}

// Cut ends all connections. New ones pass.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for conn := range r.connections {
		conn.Close()
	}
}

// Set begins a fault, or ends it.
func (r *Relay) Set(f RelayFault) {
	r.mu.Lock()
	if r.healed != nil {
		close(r.healed)
		r.healed = nil
	}
	if r.fault = f; f == Drops {
		r.healed = make(chan struct{})
	}
	r.mu.Unlock()
	if f == Refuses {
		r.Cut()
	}
}

func (r *Relay) serve(client net.Conn) {
	defer client.Close()
	if !r.pass() {
		return
	}
	r.mu.Lock()
	to := r.to
	r.mu.Unlock()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	r.mu.Lock()
	if r.fault == Refuses {
		r.mu.Unlock()
		return
	}
	r.connections[client], r.connections[server] = true, true
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.connections, client)
		delete(r.connections, server)
	}()
	var both sync.WaitGroup
	both.Go(func() { r.copy(server, client) })
	r.copy(client, server)
	both.Wait()
}

// copy passes bytes on until one side ends, which ends the other.
func (r *Relay) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if !r.pass() {
			return
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pass waits while nothing passes, and reports whether the connection lasts.
func (r *Relay) pass() bool {
	for {
		r.mu.Lock()
		fault, healed := r.fault, r.healed
		r.mu.Unlock()
		if fault != Drops {
			return fault == Passes
		}
		<-healed
	}
}

// Target returns the address to which new connections are passed on.
func (r *Relay) Target() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.to
}
