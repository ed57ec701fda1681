//go:build !unix

package openai

import (
	"errors"
	"net"
	"os"
	"time"
)

// idleCheck finds out whether an idle connection is still open and nothing has been received on it.
type idleCheck struct{ conn net.Conn }

func newIdleCheck(conn net.Conn) idleCheck { return idleCheck{conn} }

// isIdle reports whether the connection is open and nothing has been received. It waits for a
// millisecond, since a deadline in the past would end the read before it starts.
func (c *idleCheck) isIdle() bool {
	if c.conn.SetReadDeadline(time.Now().Add(time.Millisecond)) != nil {
		return false
	}
	var b [1]byte
	_, err := c.conn.Read(b[:])
	return errors.Is(err, os.ErrDeadlineExceeded) && c.conn.SetReadDeadline(time.Time{}) == nil
}
