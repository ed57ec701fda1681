package simulator

import (
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/flowcontrol"
)

// PolicyWarning is what a policy warned an operator of during a run.
type PolicyWarning struct {
	Pool string `json:"pool"` // its models
	Code string `json:"warning"`
	// Text is that of the first warning, and From its time.
	Text string  `json:"text"`
	From float64 `json:"from_s"`
	// Minutes counts those in which the policy warned.
	Minutes int `json:"minutes"`
}

// watchWarnings collects the policy's warnings once a minute.
func (d *dispatcher) watchWarnings() {
	sim := d.sim
	sim.queue.add(sim.now.Add(time.Minute), func() {
		warnings := d.planner.Warnings(sim.now)
		if slices.ContainsFunc(warnings, func(w []flowcontrol.Warning) bool { return len(w) > 0 }) {
			for i, pool := range d.planner.Pools() {
				d.collect(strings.Join(pool.Models, ","), warnings[i])
			}
		}
		d.watchWarnings()
	})
}

func (d *dispatcher) collect(pool string, warnings []flowcontrol.Warning) {
	for _, w := range warnings {
		i := slices.IndexFunc(d.warnings, func(known PolicyWarning) bool {
			return known.Pool == pool && known.Code == w.Code
		})
		if i < 0 {
			i = len(d.warnings)
			d.warnings = append(d.warnings, PolicyWarning{Pool: pool, Code: w.Code, Text: w.Text,
				From: d.sim.now.Sub(epoch).Seconds()})
		}
		d.warnings[i].Minutes++
	}
}
