//go:build unix

package openai

import (
	"net"
	"syscall"
)

// idleCheck finds out whether an idle connection is still open and nothing has been received on it,
// without waiting and without taking bytes from it.
type idleCheck struct {
	raw  syscall.RawConn
	peek func(fd uintptr) bool // made once, to spare a closure for each request
	idle *bool
}

func newIdleCheck(conn net.Conn) idleCheck {
	tcp, ok := conn.(syscall.Conn)
	if !ok {
		return idleCheck{}
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return idleCheck{}
	}
	idle := new(bool)
	var b [1]byte
	return idleCheck{raw: raw, idle: idle, peek: func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		*idle = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
		return true
	}}
}

// isIdle reports whether the connection is open and nothing has been received.
func (c *idleCheck) isIdle() bool {
	return c.raw != nil && c.raw.Read(c.peek) == nil && *c.idle
}
