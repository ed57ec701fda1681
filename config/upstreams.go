package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/tidefill/tidefill/dispatch"
)

// validateUpstreams reports upstreams that are listed twice. Each entry has an allowance of its
// own, so an engine with two entries would get twice the batch work that it may have.
func (c Config) validateUpstreams() error {
	var faults []error
	addresses, names := map[string]int{}, map[string]int{}
	for i, u := range c.Upstreams {
		address, err := addressOf(u)
		name, noName := u.Runner()
		if err != nil || noName != nil {
			continue // reported as no URL
		}
		first, listed := addresses[address]
		namesake, taken := names[name]
		switch {
		case listed && !mayShareAddress(u, c.Upstreams[first]):
			remedy := "remove one"
			if leadElsewhere(u, c.Upstreams[first]) {
				remedy += ", or give each a name if they lead to different engines"
			}
			faults = append(faults, fmt.Errorf(
				"upstreams[%d].url: %s is listed twice, first as %s in upstreams[%d]; %s", i,
				withoutCredentials(u.URL), withoutCredentials(c.Upstreams[first].URL), first,
				remedy))
		case taken:
			key := "name"
			if u.Name == "" {
				key = "url" // of which the name is made
			}
			faults = append(faults, fmt.Errorf("upstreams[%d].%s: upstreams[%d] is named %q too; "+
				"give each upstream a name of its own", i, key, namesake, name))
		}
		if !listed {
			addresses[address] = i
		}
		if !taken {
			names[name] = i
		}
	}
	return errors.Join(faults...)
}

// mayShareAddress reports whether two upstreams may have the same address: with names of their own,
// if they lead to different engines.
func mayShareAddress(a, b dispatch.Upstream) bool {
	return a.Name != "" && b.Name != "" && leadElsewhere(a, b)
}

// leadElsewhere reports whether requests of two upstreams with one address may go to different
// engines: a router decides, by the pool, or by what the requests carry.
func leadElsewhere(a, b dispatch.Upstream) bool {
	return a.IsGateway() && b.IsGateway() || a.APIKeyEnv != b.APIKeyEnv ||
		!maps.Equal(a.Headers, b.Headers) || !slices.Equal(a.Models, b.Models)
}

// addressOf returns host, port and path of an upstream, the same for every way to write its URL. It
// resolves no name. The scheme only sets the default port, since a port has one protocol.
func addressOf(u dispatch.Upstream) (string, error) {
	base, err := url.Parse(u.Base())
	if err != nil {
		return "", err
	}
	defaults := map[string]string{"http": "80", "https": "443"}
	return net.JoinHostPort(strings.ToLower(base.Hostname()),
		cmp.Or(base.Port(), defaults[base.Scheme])) + strings.TrimRight(base.Path, "/"), nil
}
