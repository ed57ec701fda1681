package openai

import (
	"errors"
	"sync/atomic"
)

// errMixedUp: the answer came with the request id of another line, so it is not the answer to this
// one.
var errMixedUp = errors.New(
	"the answer carries another request's id: the connection mixes answers up")

// echo is whether a server answers with the request id that it was sent. A connection's first
// answer shows that beyond doubt; where it always was so, a later answer with another id was meant
// for somebody else.
type echo struct{ habit atomic.Int32 }

const (
	echoUnknown int32 = iota
	echoAlways
	echoNever // or not always: a gateway may have servers of both kinds behind it
)

// foreign reports whether an answer with the id got belongs to another request than the one with
// the id sent. reused says that its connection had carried answers before.
func (e *echo) foreign(sent, got string, reused bool) bool {
	switch {
	case got == "":
		return false
	case got == sent:
		e.habit.CompareAndSwap(echoUnknown, echoAlways)
		return false
	case !reused:
		e.habit.Store(echoNever)
		return false
	}
	return e.habit.Load() == echoAlways
}
