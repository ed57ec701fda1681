package simulator

import (
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/workload"
)

// flight is a request inside an engine.
type request struct {
	arrived       time.Time // the request
	sent          time.Time // this try of it
	id            engine.ID
	input, output int
	class         int       // of interactive traffic, by number
	first         time.Time // token; zero: none yet
	line          *attempt  // of a batch; nil: interactive
	replica       *replica
	judged        bool             // judged already, and leaving
	content       workload.Request // of an interactive one, should it have to go elsewhere
	user          *user            // who asks; nil: somebody who asks once
}
