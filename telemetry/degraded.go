package telemetry

import (
	"context"
	"errors"
	"io"
	"net"
)

// Reasons why a source gives no reading. They are wrapped by the errors of reads.
var (
	// errUnknownPage reports that a server does not have the page that was requested.
	errUnknownPage = errors.New("the server has no such page")
	errRefused     = errors.New("the server refuses the credentials")
	errTooLarge    = errors.New("too large")
	errGarbled     = errors.New("can't be understood")
	// errUnavailable reports status 503.
	errUnavailable = errors.New("the server is not available")
	// errStarting reports that a runner starts up or shuts down, which is no failure.
	errStarting = errors.New("the runner starts or stops")
	errNoData   = errors.New("no series is selected that has counted a request")
)

// state names what is wrong with a source, as metrics and the log show it.
type state string

// The states of a source.
const (
	stateAway     state = "away"    // no connection, no answer in time, or one that breaks off
	stateRefused  state = "refused" // 401 or 403
	stateNoPage   state = "no_page" // the server does not have the page or its metrics
	stateTooLarge state = "too_large"
	stateGarbled  state = "garbled"
	stateFailing  state = "failing"  // another status than 200
	stateNoData   state = "no_data"  // Prometheus has no series that are selected
	stateStarting state = "starting" // the runner starts up or shuts down
	stateMixed    state = "mixed"    // several engines answer in turn
	stateFrozen   state = "frozen"   // the gauges show requests, but nothing moves
)

// stateOf returns the state of a source by the error of a read; empty: it is not degraded.
func stateOf(err error) state {
	var broken net.Error
	switch {
	case err == nil:
		return ""
	case errors.Is(err, errFrozen):
		return stateFrozen
	case errors.Is(err, errMixed):
		return stateMixed
	case errors.Is(err, errStarting):
		return stateStarting
	case errors.Is(err, errNoData):
		return stateNoData
	case errors.Is(err, errUnknownPage):
		return stateNoPage
	case errors.Is(err, errRefused):
		return stateRefused
	case errors.Is(err, errTooLarge):
		return stateTooLarge
	case errors.Is(err, errGarbled):
		return stateGarbled
	case errors.As(err, &broken), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF),
		errors.Is(err, context.DeadlineExceeded):
		return stateAway
	}
	return stateFailing
}
