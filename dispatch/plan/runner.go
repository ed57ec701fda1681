package plan

import (
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// runner is one model server: what it carries, what it may carry and whether it answers. It is
// known while it is part of the deployment, and after that until its last line has ended: should it
// come back, it still carries those.
type runner struct {
	id       string
	models   []string
	pool     *pool // nil: gone
	life     uint32
	inFlight int // lines of earlier lives included
	underWay underWay
	granted  flowcontrol.RunnerAllowance
	breaker  breaker
}

// room is how many more lines may start on the runner now.
func (r *runner) room(now time.Time) int {
	return min(r.underWay.room(r.granted, r.inFlight), r.breaker.admits(now))
}

// observation is one about the runner as it stands now.
func (r *runner) observation(kind flowcontrol.Kind) flowcontrol.Observation {
	return flowcontrol.Observation{Kind: kind, Runner: r.id, InFlight: r.inFlight,
		Prefilling: r.underWay.prefilling}
}
