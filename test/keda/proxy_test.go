package keda_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// proxy forwards connections to a server, with a delay.
type proxy struct {
	address string
	late    atomic.Int64 // time.Duration
	ended   chan struct{}
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{address: listener.Addr().String(), ended: make(chan struct{})}
	var running sync.WaitGroup
	t.Cleanup(func() {
		close(p.ended)
		listener.Close()
		running.Wait()
	})
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", server)
			if err != nil {
				client.Close()
				continue
			}
			closeBoth := sync.OnceFunc(func() { client.Close(); upstream.Close() })
			running.Go(func() { <-p.ended; closeBoth() })
			for _, way := range [][2]net.Conn{{client, upstream}, {upstream, client}} {
				running.Go(func() { defer closeBoth(); p.forward(way[0], way[1]) })
			}
		}
	})
	return p
}

// delay sets the time after which bytes are forwarded.
func (p *proxy) delay(d time.Duration) { p.late.Store(int64(d)) }

func (p *proxy) forward(from io.Reader, to io.Writer) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		select {
		case <-time.After(time.Duration(p.late.Load())):
		case <-p.ended:
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
