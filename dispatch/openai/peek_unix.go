//go:build unix

package openai

import (
	"net"
	"syscall"
)

// peeker looks whether anything has come on a connection, without waiting and without taking it.
type peeker struct {
	raw   syscall.RawConn
	look  func(fd uintptr) bool // made once: a closure for each request would be garbage
	empty *bool
}

func newPeeker(conn net.Conn) peeker {
	tcp, ok := conn.(syscall.Conn)
	if !ok {
		return peeker{}
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return peeker{}
	}
	empty := new(bool)
	var b [1]byte
	return peeker{raw: raw, empty: empty, look: func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		*empty = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		return true
	}}
}

// peek reports whether the connection is open and nothing has come.
func (p *peeker) peek() bool {
	return p.raw != nil && p.raw.Read(p.look) == nil && *p.empty
}
