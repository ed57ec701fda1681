package app

import (
	"fmt"
	"slices"

	"github.com/tidefill/tidefill/autoscale/kube"
	"github.com/tidefill/tidefill/config"
	"github.com/tidefill/tidefill/flowcontrol"
	"github.com/tidefill/tidefill/flowcontrol/headroom"
	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/telemetry"
)

// shown counts the runners of a configuration by what shows how they do.
type shown struct {
	servers     int // with an address of their own, which are asked for capabilities
	pages       int // of these, with a metrics page
	engines     int // behind gateways, with a metrics page
	expressions int // for engines behind gateways, in Prometheus
}

func shownBy(runners []telemetry.Runner) (by shown) {
	for _, r := range runners {
		switch {
		case r.Engines != "":
			by.expressions++
		case r.Base == "":
			by.engines++
		default:
			by.servers++
			if r.Metrics != "" {
				by.pages++
			}
		}
	}
	return by
}

// signals lists what is read of runners and gateways for a policy that uses readings. Runners that
// are found in Kubernetes come and go, so they are named and not counted.
func signals(cfg config.Config) (all []string, err error) {
	runners, err := runnersOf(cfg)
	if err != nil {
		return nil, err
	}
	by, read := shownBy(runners), cfg.Telemetry
	add := func(exists bool, format string, args ...any) {
		if exists {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	pods, sides := inKubernetes(cfg.Pools, false), inKubernetes(cfg.Pools, true)
	if read.Every > 0 {
		every := read.Every.String()
		if 0 < read.Fastest && read.Fastest < read.Every {
			every += fmt.Sprintf(" (%v where that is cheap)", read.Fastest)
		}
		add(by.pages > 0 || pods, "metrics of %s every %s", listed(by.pages, "runner", pods), every)
		add(by.engines > 0 || sides, "metrics of %s behind gateways every %s",
			listed(by.engines, "engine", sides), every)
	}
	if p := read.Prometheus; p.URL != "" {
		others := by.servers - by.pages
		labelled := p.Runners.Label != ""
		add(labelled && others > 0, "metrics of %s from Prometheus every %v",
			humanize.Count(others, "runner"), p.Every)
		add(labelled && by.expressions > 0, "metrics of the engines behind gateways from "+
			"Prometheus every %v", p.Every)
		add(len(p.TTFT)+len(p.TPOT) > 0, "interactive latencies from Prometheus every %v", p.Every)
	}
	for _, p := range cfg.Pools {
		add(p.Kubernetes.Metrics != kube.Metrics{}, "metrics of pool %s from the metrics APIs of "+
			"Kubernetes every %v", p.Name, cfg.Kubernetes.MetricsEvery)
	}
	add(read.CapabilitiesEvery > 0 && (by.servers > 0 || pods),
		"capabilities of %s every %v where there are any", listed(by.servers, "runner", pods),
		read.CapabilitiesEvery)
	return all, nil
}

// inKubernetes reports whether a pool's runners are found in Kubernetes: of both sides, or, if it
// is divided into prefill and decode, behind the pool's gateways.
func inKubernetes(pools []config.PoolConfig, divided bool) bool {
	return slices.ContainsFunc(pools, func(p config.PoolConfig) bool {
		return !p.Kubernetes.IsZero() && (p.Kubernetes.Prefill != "") == divided
	})
}

// listed names n runners of the configuration, and those that are found.
func listed(n int, noun string, found bool) string {
	switch {
	case !found:
		return humanize.Count(n, noun)
	case n == 0:
		return "the " + noun + "s in Kubernetes"
	}
	return humanize.Count(n, noun) + " and those in Kubernetes"
}

// ownSignals lists what a policy observes of its own lines.
func ownSignals(flow flowcontrol.Config) []string {
	own, isHeadroom := flow.Selected().(headroom.Config)
	if isHeadroom && own.Streams != headroom.StreamsOff {
		return []string{"times of tokens of streamed lines", "times of answers"}
	}
	return []string{"times of answers"}
}
