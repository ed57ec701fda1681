package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidefill/tidefill/runner/emulator"
	"github.com/tidefill/tidefill/simulator/scenario"
)

// event is something that happens to the pool or to what is beside it.
type event struct {
	at   time.Duration
	name string
	do   func(context.Context) error
}

// events returns what a scenario and its candidate do to the processes of a trial.
func (t *trial) events() ([]event, error) {
	var all []event
	for _, f := range t.setup.Scenario.EachFault() {
		if f.Kind == scenario.Restart {
			all = append(all, t.daemonFault(f)...)
			continue
		}
		made, err := t.runnerFault(f)
		if err != nil {
			return nil, err
		}
		all = append(all, made...)
	}
	if t.daemon == nil { // nobody reads metrics
		return all, nil
	}
	for _, f := range t.setup.Scenario.Metrics.Faults {
		all = append(all, t.metricsFault(f)...)
	}
	return all, nil
}

// daemonFault kills the daemon and starts it again.
func (t *trial) daemonFault(f scenario.Fault) []event {
	if t.daemon == nil {
		return nil
	}
	return []event{
		{f.At, "kill the daemon", func(context.Context) error {
			t.daemon.process.kill()
			return nil
		}},
		{f.At + f.For, "start the daemon again", t.daemon.launch},
	}
}

// runnerFault returns the begin and the end of a fault of runners.
func (t *trial) runnerFault(f scenario.Fault) ([]event, error) {
	affected := f.Replicas
	if len(affected) == 0 {
		for i := range t.runners.process {
			affected = append(affected, i)
		}
	}
	each := func(do func(context.Context, int) error) func(context.Context) error {
		return func(ctx context.Context) error {
			var all []error
			for _, i := range affected {
				all = append(all, do(ctx, i))
			}
			return errors.Join(all...)
		}
	}
	slow := func(factor float64) func(context.Context) error {
		return each(func(ctx context.Context, i int) error {
			return t.runners.change(ctx, i, func(f *emulator.Faults) { f.Slow = factor })
		})
	}
	var begin, end event
	switch f.Kind {
	case scenario.Crash:
		begin = event{f.At, fmt.Sprintf("kill runners %v", affected),
			each(func(ctx context.Context, i int) error {
				err := t.runners.readTiming(ctx, i)
				t.runners.process[i].kill()
				return err
			})}
		end = event{f.At + f.For, fmt.Sprintf("start runners %v again", affected),
			each(t.runners.launch)}
	case scenario.Slow:
		begin = event{f.At, fmt.Sprintf("slow down runners %v %v times", affected, f.Factor),
			slow(f.Factor)}
		end = event{f.At + f.For, fmt.Sprintf("end the slowness of runners %v", affected), slow(0)}
	case scenario.Shed, scenario.Fail, scenario.Deny, scenario.Garble:
		answer := func(probability float64) func(context.Context) error {
			return each(func(ctx context.Context, i int) error {
				return t.runners.change(ctx, i, func(faults *emulator.Faults) {
					*probabilityOf(f.Kind, faults) = probability
					faults.OnlyLow = probability > 0
				})
			})
		}
		begin = event{f.At, fmt.Sprintf("have runners %v %s batch lines", affected, f.Kind),
			answer(1)}
		end = event{f.At + f.For, fmt.Sprintf("have runners %v take batch lines again", affected),
			answer(0)}
	default:
		return nil, fmt.Errorf("faults: the kind %s can be simulated only", f.Kind)
	}
	if f.For == 0 {
		return []event{begin}, nil
	}
	return []event{begin, end}, nil
}

// probabilityOf returns the probability that a runner answers a request in the way of a fault.
func probabilityOf(kind scenario.FaultKind, of *emulator.Faults) *float64 {
	switch kind {
	case scenario.Fail:
		return &of.ServerError
	case scenario.Deny:
		return &of.Unauthorized
	case scenario.Garble:
		return &of.WrongJSON
	default:
		return &of.TooManyRequests
	}
}

// metricsFault returns the begin and the end of a fault of what the daemon reads.
func (t *trial) metricsFault(f scenario.MetricsFault) (all []event) {
	add := func(at time.Duration, name string, do func(context.Context) error) {
		all = append(all, event{at, name, do})
	}
	plain := func(do func()) func(context.Context) error {
		return func(context.Context) error { do(); return nil }
	}
	gateway := f.Source == "" || f.Source == scenario.GatewaySource
	engine := f.Source == "" || f.Source == scenario.EngineSource
	capabilities := f.Source == "" || f.Source == scenario.CapabilitiesSource
	switch f.Kind {
	case scenario.Absent:
		if gateway {
			add(f.From, "kill Prometheus", plain(t.prometheus.process.kill))
			add(f.To, "start Prometheus again", t.prometheus.launch)
		}
		if engine {
			add(f.From, "refuse the runners' metrics", plain(func() { t.pages.set(pagesAbsent) }))
			add(f.To, "serve the runners' metrics", plain(func() { t.pages.set(pagesPresent) }))
		}
		if capabilities {
			add(f.From, "refuse the runners' capabilities", t.withoutCapabilities(true))
			add(f.To, "serve the runners' capabilities", t.withoutCapabilities(false))
		}
	case scenario.Frozen:
		add(f.From, "have Prometheus repeat its answers", plain(func() { t.relay.freeze(true) }))
		add(f.To, "have Prometheus answer again", plain(func() { t.relay.freeze(false) }))
	case scenario.Restamped:
		if gateway {
			add(f.From, "freeze the gateway's metrics", plain(t.gateway.freeze))
			add(f.To, "thaw the gateway's metrics", plain(t.gateway.thaw))
		}
		if engine {
			add(f.From, "freeze the runners' metrics", plain(func() { t.pages.set(pagesFrozen) }))
			add(f.To, "thaw the runners' metrics", plain(func() { t.pages.set(pagesPresent) }))
		}
	case scenario.Reset:
		add(f.From, "reset the gateway's counters", plain(t.gateway.reset))
	}
	return all
}

// canHappen reports what of a fault can be simulated only. Capabilities count if the scenario has
// them.
func canHappen(f scenario.MetricsFault, m scenario.Metrics) error {
	shown := f.Source == scenario.CapabilitiesSource || f.Source == "" && m.Capabilities > 0
	switch {
	case f.Source == scenario.GatewaySource && m.Gateway == scenario.GatewayOff:
		return errors.New("metrics.gateway is off, so there is no gateway to fail")
	case f.Source == "" && m.Gateway == scenario.GatewayOff:
		return errors.New("metrics.gateway is off; give the source engine or capabilities")
	case len(f.Replicas) > 0:
		return errors.New("replicas can be simulated only; all runners fail")
	case f.Kind == scenario.Reset && f.Source != scenario.GatewaySource:
		return errors.New("a reset of engines can be simulated only; kill them, or give the " +
			"source gateway")
	case f.Kind == scenario.Frozen && f.Source != scenario.GatewaySource:
		return errors.New("only answers of Prometheus have a time that can stand still; give the " +
			"source gateway, or the kind restamped")
	case f.Kind == scenario.Restamped && shown:
		return errors.New("capabilities that stand still can be simulated only; give the source " +
			"engine or gateway")
	}
	return nil
}

func (t *trial) withoutCapabilities(away bool) func(context.Context) error {
	return func(ctx context.Context) error {
		var all []error
		for i := range t.runners.process {
			all = append(all, t.runners.change(ctx, i, func(f *emulator.Faults) {
				f.NoCapabilities = away
			}))
		}
		return errors.Join(all...)
	}
}

func sorted(events []event) []event {
	return slices.SortedStableFunc(slices.Values(events),
		func(a, b event) int { return cmp.Compare(a.at, b.at) })
}

// happen runs the events at their times, each in turn, until ctx is done.
func happen(ctx context.Context, start time.Time, events []event, logf logf) error {
	for _, e := range sorted(events) {
		if !sleepUntil(ctx, start.Add(e.at)) {
			return nil
		}
		logf("%v: %s", e.at, e.name)
		if err := e.do(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return nil
}

type logf func(format string, args ...any)
