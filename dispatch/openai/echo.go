package openai

import (
	"errors"
	"sync/atomic"
)

// errMixedUp reports an answer that has the request id of another line, so it does not belong to
// this one.
var errMixedUp = errors.New(
	"the answer has another request's id: the connection mixes answers up")

// echo learns whether a server returns the request id that it receives. The first answer of a
// connection shows that for certain. If all first answers returned it, a later answer with another
// id belongs to another request.
type echo struct{ state atomic.Int32 }

const (
	echoUnknown int32 = iota
	echoAlways
	echoNever // or not always: a gateway may have servers of both kinds
)

// foreign reports whether an answer with the id got does not belong to the request with the id
// sent. reused reports that its connection had carried answers before.
func (e *echo) foreign(sent, got string, reused bool) bool {
	switch {
	case got == "":
		return false
	case got == sent:
		e.state.CompareAndSwap(echoUnknown, echoAlways)
		return false
	case !reused:
		e.state.Store(echoNever)
		return false
	}
	return e.state.Load() == echoAlways
}
