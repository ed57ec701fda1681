package emulator

import (
	"fmt"
	"net/http"
	"time"

	"github.com/tidefill/tidefill/runner"
)

func (s *Server) getCapabilities(w http.ResponseWriter, _ *http.Request) {
	if s.injector.current().NoCapabilities {
		resetConnection(w)
	}
	if !s.serving() {
		notServing().write(w)
		return
	}
	w.Header().Set("Cache-Control", fmt.Sprintf("max-age=%d", runner.CapabilitiesTTL/time.Second))
	write(w, http.StatusOK, s.readCapabilities(time.Now()))
}

// readCapabilities returns a response that is at most runner.CapabilitiesTTL old. It is cached for
// that long on purpose: like a real runner's, it does not follow every change.
func (s *Server) readCapabilities(now time.Time) []byte {
	s.capabilitiesMu.Lock()
	defer s.capabilitiesMu.Unlock()
	age := now.Sub(s.capabilitiesAt)
	if s.capabilities != nil && age < runner.CapabilitiesTTL {
		return s.capabilities
	}
	c := runner.Capabilities{
		RunnerType: "tidefill-emulator", RunnerID: s.config.RunnerID,
		Models: runner.Models{Loaded: []runner.LoadedModel{}, Loading: []runner.LoadingModel{},
			Available: s.config.Models},
		Resources: runner.Resources{GPUIDs: []int{}},
		Queue:     runner.Queue{MaxDepth: s.config.MaxQueueDepth},
		Capabilities: runner.Features{
			Streaming: true, PrefixCaching: s.config.PrefixCaching && s.loop != nil,
			MultiTenant: true,
		},
		Health: runner.Healthy,
	}
	for _, id := range s.served() {
		c.Models.Loaded = append(c.Models.Loaded,
			runner.LoadedModel{ID: id, ContextLength: s.contextLength(),
				LoadedAt: s.started.Unix()})
	}
	if s.loop != nil {
		snapshot, waits := s.loop.read()
		c.Queue.Depth = snapshot.Waiting
		c.Queue.AvgWaitMs, c.Queue.P95WaitMs = waits.meanAndP95()
		c.Resources.KVCacheUtilization = snapshot.KVUtilization()
		if s.capabilities != nil {
			c.Resources.GPUUtilization = min(1,
				float64(s.loop.clock.real(snapshot.Busy-s.busyBefore))/float64(age))
		}
		s.busyBefore = snapshot.Busy
	}
	s.capabilities = mustJSON(c)
	s.capabilitiesAt = now
	return s.capabilities
}
