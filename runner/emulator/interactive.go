package emulator

import (
	"context"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tidefill/tidefill/simulator/engine"
)

// generateInteractive submits interactive requests until ctx ends. Arrivals are a Poisson process
// at the highest rate, thinned to the present rate.
func (l *engineLoop) generateInteractive(ctx context.Context, load Interactive) {
	rng := rand.New(rand.NewPCG(load.Seed, 1))
	peak := load.RPS * (1 + load.Swing)
	begin := l.clock.now()
	at := begin
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		at = at.Add(time.Duration(rng.ExpFloat64() / peak * float64(time.Second)))
		timer.Reset(l.clock.until(at))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if rng.Float64()*peak > load.rate(at.Sub(begin)) {
			continue
		}
		t := &ticket{interactive: true, finish: finishStop, changed: make(chan struct{}, 1)}
		request := engine.Request{
			Prompt: min(load.Prompt.draw(rng), l.engine.MaxModelLen()-1),
			Output: load.Output.draw(rng),
		}
		if l.submit([]*ticket{t}, []engine.Request{request}) != nil {
			l.metrics.interactiveShed.Inc()
		}
	}
}

// rate returns requests per emulated second.
func (i Interactive) rate(since time.Duration) float64 {
	if i.Swing == 0 {
		return i.RPS
	}
	return i.RPS * (1 + i.Swing*math.Sin(2*math.Pi*since.Seconds()/i.Period))
}
