package kube

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/tidefill/tidefill/autoscale"
)

// composer composes the state of a pool from copies of its objects.
type composer struct {
	pool   string
	cfg    PoolConfig
	roles  map[Role]labels.Selector
	appear map[string]time.Time // when endpoints that are no pods were first seen
	absent []time.Time          // since when pods of the target have been missing
}

func newComposer(pool string, cfg PoolConfig) *composer {
	c := &composer{pool: pool, cfg: cfg, roles: map[Role]labels.Selector{},
		appear: map[string]time.Time{}}
	for role, text := range map[Role]string{Prefill: cfg.Prefill, Decode: cfg.Decode} {
		if selector, err := labels.Parse(text); err == nil && text != "" {
			c.roles[role] = selector
		}
	}
	return c
}

// objects are the copies.
type objects struct {
	pods    map[string]pod
	service service
	slices  map[string]slice
	ports   []int32 // of an InferencePool
	target  scale
}

// compose returns the state of the pool. Its error says what could not be used; the rest of the
// state holds.
func (c *composer) compose(now time.Time, o objects) State {
	s := State{Pool: c.pool, Desired: Unknown}
	for name, p := range o.pods {
		if p.ended {
			delete(o.pods, name)
		}
	}
	if c.cfg.Service != "" {
		s.Runners, s.Err = c.endpoints(now, o)
	} else {
		s.Runners, s.Err = c.pods(o)
	}
	slices.SortFunc(s.Runners, func(a, b Runner) int { return cmp.Compare(a.Name, b.Name) })
	s.Replicas = replicas(c.counted(s.Runners, o))
	if c.cfg.Target.Name != "" && o.target.known {
		s.Desired = o.target.desired
		s.Replicas = append(s.Replicas, c.missing(now, o)...)
	}
	return s
}

// pods returns the runners of a pool that is found by its pods.
func (c *composer) pods(o objects) (runners []Runner, err error) {
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(o.pods)) {
		p := o.pods[name]
		ports := o.ports
		if c.cfg.InferencePool == "" {
			number, err := p.port(c.cfg.Port)
			if err != nil {
				faults = append(faults, err)
				runners = append(runners, c.runner(p, p.name, "", p.phase, p.since))
				continue
			}
			ports = []int32{number}
		}
		for _, number := range ports {
			name, url := p.name, ""
			if len(ports) > 1 {
				name = fmt.Sprintf("%s:%d", p.name, number)
			}
			if len(p.addresses) > 0 {
				url = c.url(p.addresses[0], number)
			}
			runners = append(runners, c.runner(p, name, url, p.phase, p.since))
		}
	}
	return runners, first(faults)
}

// port returns the port of the runner in a pod.
func (p pod) port(wanted string) (int32, error) {
	if number, err := strconv.ParseInt(wanted, 10, 32); err == nil {
		return int32(number), nil
	}
	for _, x := range p.ports {
		if wanted == "" && len(p.ports) == 1 || wanted != "" && x.name == wanted {
			return x.number, nil
		}
	}
	if wanted == "" {
		return 0, fmt.Errorf("pod %s declares %d ports, %s; set pools[].kubernetes.port to the "+
			"one of its runner", p.name, len(p.ports), portNames(p.ports))
	}
	return 0, fmt.Errorf("pod %s has no port %s, only %s; correct pools[].kubernetes.port", p.name,
		wanted, portNames(p.ports))
}

// endpoints returns the runners of a pool that is found by its Service: its endpoints, and its pods
// that are no endpoints yet.
func (c *composer) endpoints(now time.Time, o objects) (runners []Runner, err error) {
	var faults []error
	found := map[string]Runner{}
	primary := map[string]bool{} // runners with the primary address of their pod
	for _, key := range slices.SortedFunc(maps.Keys(o.slices), func(a, b string) int {
		return cmp.Or(cmp.Compare(o.slices[a].family, o.slices[b].family), cmp.Compare(a, b))
	}) {
		x := o.slices[key]
		if len(x.endpoints) == 0 {
			continue
		}
		number, err := o.service.port(c.cfg.Port, x)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		for _, e := range x.endpoints {
			r := c.endpoint(now, o.pods[e.pod], e, number)
			isPrimary := slices.Index(o.pods[e.pod].addresses, e.address) == 0
			// A pod with two addresses is in slices of both families, and while a slice is
			// divided, an endpoint can be in both parts.
			if _, known := found[r.Name]; !known || isPrimary && !primary[r.Name] {
				found[r.Name], primary[r.Name] = r, isPrimary
			}
		}
	}
	for name, p := range o.pods {
		if _, known := found[name]; !known {
			phase := p.phase
			if phase == autoscale.Ready {
				phase = autoscale.Starting // it is no endpoint yet
			}
			found[name] = c.runner(p, name, "", phase, p.sinceIn(phase))
		}
	}
	maps.DeleteFunc(c.appear, func(name string, _ time.Time) bool {
		_, known := found[name]
		return !known
	})
	return slices.Collect(maps.Values(found)), first(faults)
}

func (c *composer) endpoint(now time.Time, p pod, e endpoint, number int32) Runner {
	phase := autoscale.Starting
	// The watch of pods may be behind that of slices, and a Service may publish addresses that are
	// not ready.
	if e.ready && (p.name == "" || p.phase == autoscale.Ready) {
		phase = autoscale.Ready
	}
	if e.terminating || p.phase == autoscale.Draining {
		phase = autoscale.Draining
	}
	url := c.url(e.address, number)
	if p.name != "" {
		return c.runner(p, p.name, url, phase, p.sinceIn(phase))
	}
	name := cmp.Or(e.pod, net.JoinHostPort(e.address, strconv.Itoa(int(number))))
	if c.appear[name].IsZero() {
		c.appear[name] = now
	}
	r := c.runner(p, name, url, phase, c.appear[name])
	r.Pod = e.pod
	return r
}

func (c *composer) runner(p pod, name, url string, phase autoscale.Phase, since time.Time) Runner {
	r := Runner{Name: name, Pod: p.name, URL: url, MetricsPath: p.metricsPath, Pool: c.pool,
		Phase: phase, Since: since}
	for role, selector := range c.roles {
		if selector.Matches(p.labels) {
			r.Role = role
		}
	}
	return r
}

func (c *composer) url(address string, number int32) string {
	return c.cfg.Scheme + "://" + net.JoinHostPort(address, strconv.Itoa(int(number)))
}

// counted returns the runners that count as replicas. Of a pool with separate prefill and decode
// these are the ones whose number the target sets; without a target, those of the side of which
// fewer are ready, since a line needs both.
func (c *composer) counted(runners []Runner, o objects) (counted []Runner) {
	if len(c.roles) == 0 {
		return runners
	}
	ready := map[Role]int{}
	for _, r := range runners {
		if r.Phase == autoscale.Ready {
			ready[r.Role]++
		}
	}
	short := Decode
	if ready[Prefill] < ready[Decode] {
		short = Prefill
	}
	for _, r := range runners {
		counts := r.Role == short
		if c.cfg.Target.Name != "" && o.target.known {
			counts = o.target.selector.Matches(o.pods[r.Pod].labels)
		}
		if counts {
			counted = append(counted, r)
		}
	}
	return counted
}

// replicas returns a replica for each pod with runners, and for each other runner.
func replicas(runners []Runner) (all []autoscale.Replica) {
	for _, r := range runners {
		id := cmp.Or(r.Pod, r.Name)
		if n := len(all); n > 0 && all[n-1].ID == id {
			continue // another port of the pod
		}
		all = append(all, autoscale.Replica{ID: id, Phase: r.Phase, Since: r.Since})
	}
	return all
}

// missingPrefix begins the ID of a replica without a pod. No name of a pod has a slash.
const missingPrefix = "missing/"

// IsMissing reports whether a replica has no pod yet.
func IsMissing(replica string) bool { return strings.HasPrefix(replica, missingPrefix) }

// missing returns replicas for the pods that the target wants and that don't exist. They have been
// requested since the number rose.
func (c *composer) missing(now time.Time, o objects) (all []autoscale.Replica) {
	exist := 0
	for _, p := range o.pods {
		if p.phase != autoscale.Draining && o.target.selector.Matches(p.labels) {
			exist++
		}
	}
	count := max(0, o.target.desired-exist)
	c.absent = c.absent[:min(count, len(c.absent))]
	for len(c.absent) < count {
		c.absent = append(c.absent, now)
	}
	for i, since := range c.absent {
		all = append(all, autoscale.Replica{ID: missingPrefix + strconv.Itoa(i),
			Phase: autoscale.Starting, Since: since})
	}
	return all
}

// first returns the first of several faults of the same kind, and how many others there are.
func first(faults []error) error {
	switch len(faults) {
	case 0:
		return nil
	case 1:
		return faults[0]
	}
	return errors.Join(faults[0], fmt.Errorf("and %d more like this", len(faults)-1))
}
