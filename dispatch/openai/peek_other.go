//go:build !unix

package openai

import (
	"errors"
	"net"
	"os"
	"time"
)

// peeker looks whether anything has come on a connection.
type peeker struct{ conn net.Conn }

func newPeeker(conn net.Conn) peeker { return peeker{conn} }

// peek reports whether the connection is open and nothing has come. A deadline that has passed
// would end the read before it looks.
func (p *peeker) peek() bool {
	if p.conn.SetReadDeadline(time.Now().Add(time.Millisecond)) != nil {
		return false
	}
	var b [1]byte
	_, err := p.conn.Read(b[:])
	return errors.Is(err, os.ErrDeadlineExceeded) && p.conn.SetReadDeadline(time.Time{}) == nil
}
