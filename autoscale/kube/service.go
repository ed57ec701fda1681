package kube

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// service is what is used of a Service.
type service struct {
	selector labels.Set // empty: its endpoints are listed by hand
	ports    []port
}

func newService(o any) service {
	s, ok := o.(*corev1.Service)
	if !ok {
		return service{}
	}
	x := service{selector: s.Spec.Selector}
	for _, p := range s.Spec.Ports {
		x.ports = append(x.ports, port{p.Name, p.Port})
	}
	return x
}

// slice is what is used of an EndpointSlice.
type slice struct {
	family    discoveryv1.AddressType
	endpoints []endpoint
	ports     []port
}

type endpoint struct {
	pod                string // empty: it is no pod
	address            string
	ready, terminating bool
}

func newSlice(o any) slice {
	s, ok := o.(*discoveryv1.EndpointSlice)
	if !ok {
		return slice{}
	}
	x := slice{family: s.AddressType}
	for _, p := range s.Ports {
		if p.Port != nil && (p.Protocol == nil || *p.Protocol == corev1.ProtocolTCP) {
			x.ports = append(x.ports, port{deref(p.Name), *p.Port})
		}
	}
	for _, e := range s.Endpoints {
		if len(e.Addresses) == 0 {
			continue
		}
		// The documentation of EndpointConditions says how to read absent ones.
		y := endpoint{address: e.Addresses[0],
			ready:       e.Conditions.Ready == nil || *e.Conditions.Ready,
			terminating: deref(e.Conditions.Terminating)}
		if e.TargetRef != nil && e.TargetRef.Kind == "Pod" {
			y.pod = e.TargetRef.Name
		}
		x.endpoints = append(x.endpoints, y)
	}
	return x
}

func deref[T any](p *T) (value T) {
	if p != nil {
		value = *p
	}
	return value
}

// port returns the port of the endpoints of a slice that is meant by a number or a name of a
// Service's port. A number that is none of the Service's is one of the endpoints.
func (s service) port(wanted string, x slice) (int32, error) {
	number, err := strconv.Atoi(wanted)
	isNumber := err == nil
	if wanted == "" {
		if len(x.ports) == 1 {
			return x.ports[0].number, nil
		}
		return 0, fmt.Errorf("the Service has %d ports, %s; set pools[].kubernetes.port to the "+
			"one of the runners", len(x.ports), portNames(x.ports))
	}
	name := wanted
	if i := slices.IndexFunc(s.ports, func(p port) bool {
		return isNumber && int(p.number) == number
	}); i >= 0 {
		name, isNumber = s.ports[i].name, false
	}
	for _, p := range x.ports {
		if isNumber && int(p.number) == number || !isNumber && p.name == name {
			return p.number, nil
		}
	}
	return 0, fmt.Errorf("the Service has no port %s, only %s; correct pools[].kubernetes.port",
		wanted, portNames(x.ports))
}

// portNames lists ports for an error message.
func portNames(ports []port) string {
	names := make([]string, 0, len(ports))
	for _, p := range ports {
		text := strconv.Itoa(int(p.number))
		if p.name != "" {
			text += " (" + p.name + ")"
		}
		names = append(names, text)
	}
	slices.Sort(names)
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(slices.Compact(names), ", ")
}
