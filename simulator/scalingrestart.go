package simulator

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tidefill/tidefill/autoscale"
)

// learned returns what the fleet has learned; nil: there is none.
func (s *scaling) learned() []byte {
	if s.fleet == nil {
		return nil
	}
	text, err := json.Marshal(s.fleet.Learned(s.sim.now))
	if err != nil {
		panic(fmt.Sprintf("simulator: what the fleet has learned is no JSON: %v", err))
	}
	return text
}

// stop ends the decisions, because the daemon is killed. The pools keep the replicas they have.
func (s *scaling) stop() {
	s.fleet, s.nextStep, s.counts, s.mix = nil, time.Time{}, nil, meanMix{}
	for _, v := range s.verdicts {
		v.last = "" // the next planner does not know it
	}
}

// startAgain lets a new fleet decide, with what the last one has saved unless that is forgotten.
func (s *scaling) startAgain(was saved, forget bool) {
	if s.cfg.Policy == "" {
		return // there was no fleet
	}
	now := s.sim.now
	fleet, err := autoscale.NewFleet(s.cfg)
	if err != nil { // what was built once can be built again
		panic(err)
	}
	s.fleet, s.counts = fleet, []count{{now, s.arrived}}
	if forget || was.scaling == nil {
		return
	}
	var pools []autoscale.PoolLearned
	if err := json.Unmarshal(was.scaling, &pools); err != nil {
		panic(fmt.Sprintf("simulator: what the fleet has saved can't be read: %v", err))
	}
	for _, l := range pools {
		if err := fleet.Recall(now, l, now.Sub(was.scaled)); err != nil {
			panic("simulator: " + err.Error())
		}
	}
}
