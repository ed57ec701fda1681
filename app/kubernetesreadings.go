package app

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/tidefill/tidefill/autoscale"
	"github.com/tidefill/tidefill/autoscale/kube"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/dispatch"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/telemetry"
)

// clusterSource names the readings from the metrics APIs of Kubernetes.
const clusterSource = "kubernetes"

// sources returns the metrics APIs of Kubernetes as sources of readings, one for each pool that has
// metrics configured.
func (k *kubernetes) sources(cfg config.Config) (sources []telemetry.Source) {
	if k == nil {
		return nil
	}
	for _, p := range cfg.Pools {
		if !p.Kubernetes.HasReadings() {
			continue
		}
		sources = append(sources, telemetry.Source{Target: p.Name, Kind: clusterSource,
			Every: cfg.Kubernetes.MetricsEvery, Timeout: 5 * kube.RequestTimeout,
			Read: func(ctx context.Context) ([]telemetry.Sample, error) {
				read, err := k.cluster.Readings(ctx, p.Name)
				state, known := k.cluster.State(p.Name)
				if !known {
					return nil, fmt.Errorf("the pods of pool %s are not known yet", p.Name)
				}
				return samplesOf(read, state.Runners, k.enginesOf(p)), err
			}})
	}
	return sources
}

// enginesOf returns the function that names a runner of a pool as flow control does: behind
// gateways, it is an engine of each.
func (k *kubernetes) enginesOf(p config.PoolConfig) func(kube.Runner) []string {
	return func(r kube.Runner) (names []string) {
		if r.Role == kube.Both {
			return []string{r.Name}
		}
		engine, err := dispatch.EngineName(r.MetricsURL())
		if err != nil {
			return nil
		}
		for _, gateway := range k.gatewaysOf(p.Name) {
			names = append(names, dispatch.EngineRunner(gateway, engine))
		}
		return names
	}
}

// samplesOf returns the readings of pods as samples of their runners. What a pod with several
// runners shows, and what is known of the pool as a whole, is spread evenly.
func samplesOf(
	read []kube.Reading, runners []kube.Runner, named func(kube.Runner) []string,
) (samples []telemetry.Sample) {
	byPod := map[string][]kube.Runner{}
	var pool *kube.Reading
	for _, r := range runners {
		if r.Phase != autoscale.Starting && r.URL != "" {
			byPod[r.Pod] = append(byPod[r.Pod], r)
		}
	}
	own := map[string]kube.Reading{}
	for i, x := range read {
		if x.Pod == "" {
			pool = &read[i]
			continue
		}
		own[x.Pod] = x
	}
	ready := 0
	for _, of := range byPod {
		ready += len(of)
	}
	for _, r := range runners {
		if r.Phase == autoscale.Starting || r.URL == "" {
			continue
		}
		reading := flowcontrol.NoReading(flowcontrol.Metrics, time.Time{})
		if x, known := own[r.Pod]; known && r.Pod != "" {
			fill(&reading, x, float64(len(byPod[r.Pod])))
		}
		if pool != nil {
			fill(&reading, *pool, float64(ready))
		}
		if reading.Sampled.IsZero() {
			continue
		}
		for _, name := range named(r) {
			of := reading
			samples = append(samples, telemetry.Sample{Runner: name, Reading: &of,
				Cluster: true})
		}
	}
	return samples
}

// fill sets what is unknown in a reading to the part of a runner in what was read of several. The
// reading is as old as its oldest value.
func fill(to *flowcontrol.Reading, x kube.Reading, runners float64) {
	set := func(field *float64, v kube.Value, value float64) {
		if !math.IsNaN(*field) || math.IsNaN(value) || v.At.IsZero() {
			return
		}
		*field = value
		if to.Sampled.IsZero() || v.At.Before(to.Sampled) {
			to.Sampled = v.At
		}
	}
	set(&to.Running, x.Running, x.Running.Value/runners)
	set(&to.Waiting, x.Waiting, x.Waiting.Value/runners)
	if x.KVUsed.Value <= 1 { // a sum of shares is no share
		set(&to.KVUsed, x.KVUsed, x.KVUsed.Value)
	}
}

// ownPages notes which runners show metrics pages of their own, which say more and are newer.
type ownPages struct {
	mu   sync.Mutex
	seen map[string]time.Time // by runner
}

// ownPageFor is the time after the last reading of a runner's own page during which nothing else is
// used.
const ownPageFor = time.Minute

// prefers reports whether a reading is to be used. It notes those of runners' own pages.
func (o *ownPages) prefers(runner string, now time.Time, ofCluster bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if ofCluster {
		return now.Sub(o.seen[runner]) > ownPageFor
	}
	for name, at := range o.seen {
		if now.Sub(at) > ownPageFor {
			delete(o.seen, name)
		}
	}
	if o.seen == nil {
		o.seen = map[string]time.Time{}
	}
	o.seen[runner] = now
	return true
}

// gatewaysOf lists the gateways of a pool by name.
func (k *kubernetes) gatewaysOf(pool string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.gateways[pool]
}
