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

// validateEachUpstream reports what is wrong with single upstreams.
func (c Config) validateEachUpstream() error {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf(format, args...))
	}
	for i, u := range c.Upstreams {
		if u.Metrics != "" && u.Metrics != "none" && !isServer(u.Metrics) {
			fault("upstreams[%d].metrics is %s, not a URL; "+
				"write http://host:port/metrics, or none", i, quotedURL(u.Metrics))
		}
		faults = append(faults, section(fmt.Sprintf("upstreams[%d]", i), u.Validate()))
		for k, engine := range u.Engines {
			if name, err := dispatch.EngineName(engine); err == nil && name == "" &&
				(c.Telemetry.Prometheus.URL == "" || c.Telemetry.Prometheus.Runners.Label == "") {
				fault("upstreams[%d].engines[%d]: %s is no URL, and a label's value is looked up "+
					"in Prometheus; write http://host:port/metrics, or set "+
					"telemetry.prometheus.url and telemetry.prometheus.runners.label", i, k,
					quotedURL(engine))
			}
		}
		faults = append(faults, emptyModels(fmt.Sprintf("upstreams[%d]", i), u.Models))
		if !isServer(u.URL) {
			fault("upstreams[%d].url is %s, not a URL; write http://host:port", i,
				quotedURL(u.URL))
		}
	}
	return errors.Join(faults...)
}

// isServer reports whether a text is the URL of a server that speaks HTTP.
func isServer(text string) bool {
	parsed, err := url.Parse(text)
	return err == nil && parsed.Host != "" && (parsed.Scheme == "http" || parsed.Scheme == "https")
}

// emptyModels reports models without a name, which no line can ask for.
func emptyModels(path string, models []string) error {
	var faults []error
	for i, model := range models {
		if strings.TrimSpace(model) == "" {
			faults = append(faults, fmt.Errorf("%s.models[%d]: is empty; name a model, or remove "+
				"the entry", path, i))
		}
	}
	return errors.Join(faults...)
}

// validateUpstreams reports upstreams that are listed twice, alone or as an engine of a gateway.
// Each entry has an allowance of its own, so an engine with two entries would get twice the batch
// work that it may have.
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
	return errors.Join(append(faults, c.listedEngines()...)...)
}

// listedEngines reports engines of gateways that are upstreams too, by their metrics pages.
func (c Config) listedEngines() (faults []error) {
	alone := map[string]int{}
	for i, u := range c.Upstreams {
		if page, err := pageAddress(u.MetricsURL()); err == nil {
			alone[page] = i
		}
	}
	for i, u := range c.Upstreams {
		for k, engine := range u.Engines {
			page, err := pageAddress(engine)
			if err != nil {
				continue // of which others report what is wrong
			}
			if single, listed := alone[page]; listed {
				faults = append(faults, fmt.Errorf("upstreams[%d].engines[%d]: %s is the metrics "+
					"page of upstreams[%d] too, so the engine would get the lines of two; remove "+
					"upstreams[%d], or the engine from this list if the gateway doesn't lead to it",
					i, k, withoutCredentials(engine), single, single))
			}
		}
	}
	return faults
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
	return pageAddress(u.Base())
}

// pageAddress returns the same of any URL, and an error for what is no URL of a server.
func pageAddress(page string) (string, error) {
	base, err := url.Parse(page)
	if err != nil {
		return "", err
	}
	if base.Host == "" {
		return "", errors.New("no host")
	}
	defaults := map[string]string{"http": "80", "https": "443"}
	return net.JoinHostPort(strings.ToLower(base.Hostname()),
		cmp.Or(base.Port(), defaults[base.Scheme])) + strings.TrimRight(base.Path, "/"), nil
}
