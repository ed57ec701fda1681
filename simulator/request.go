package simulator

import (
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/workload"
)

// request is a request inside an engine.
type request struct {
	arrived       time.Time // when the user first sent it
	sent          time.Time // when this try was sent
	id            engine.ID
	input, output int
	class         int       // of interactive traffic, by number
	first         time.Time // time of the first token; zero: none yet
	line          *attempt  // of a batch; nil: interactive
	replica       *replica
	judged        bool // counted already, and leaving the engine
	// of an interactive request, in case another replica must serve it
	content workload.Request
	work    assumedWork // of what is left of it, as expectedLoad expects
	user    *user       // of a closed loop; nil: of an open stream
	offer   *offer      // to the planner; nil: it does not pass through the daemon
}
