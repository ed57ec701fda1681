package httpserver

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Config bounds the connections of the API and the time that clients may take. Who may hold how
// many of the API's requests is in the section api.
type Config struct {
	// MaxConnections bounds the open connections of the API; over HTTP/2 each request under way
	// counts as one more. At the bound the connection that has been idle for longest is closed; if
	// none is idle, a new one gets 503 with Retry-After. The bound is never more than a quarter of
	// the file descriptors that the process may open. Default 1024; 0: that quarter.
	MaxConnections int `yaml:"max_connections"`
	// MaxConnectionsPerAddress bounds the connections of one client address, an IPv6 address being
	// counted by its /64. Loopback addresses and proxies are not bounded. Default 256; 0: no bound.
	MaxConnectionsPerAddress int `yaml:"max_connections_per_address"`
	// Proxies are the addresses or prefixes (10.1.2.3, 10.0.0.0/8) of reverse proxies and ingress
	// controllers. Their connections carry the requests of many clients and are bounded in all, not
	// per address.
	Proxies []string `yaml:"proxies"`

	// MinRate is how many bytes per second a client must send of a body, or take of an answer, on
	// average. Time that the daemon needs does not count. Default 4096; 0: any progress will do.
	MinRate int64 `yaml:"min_rate"`
	// Grace is how long a transfer may stand still, or fall behind MinRate in all, before the
	// connection is closed. Default 30 seconds.
	Grace time.Duration `yaml:"grace"`
	// BodyTimeout bounds the time to send a whole body, except for uploads of files, which only
	// have to keep MinRate. Default 30 seconds.
	BodyTimeout time.Duration `yaml:"body_timeout"`

	// Hosts are the host names, without a port, under which the daemon is reached where no key is
	// asked for: the API without keys, and the admin address. IP addresses and localhost are always
	// answered, other names get 421. Such a check keeps web pages from reaching the daemon by a
	// name that they point to it (DNS rebinding). A leading "*." stands for all names below.
	Hosts []string `yaml:"hosts"`
	// Origins are the origins (https://console.example.com) of web pages from which browsers may
	// send requests that change something, besides the daemon's own.
	Origins []string `yaml:"origins"`
}

// DefaultConfig returns bounds that suit a daemon behind an ingress as well as one on a
// workstation.
func DefaultConfig() Config {
	return Config{
		MaxConnections:           1024,
		MaxConnectionsPerAddress: 256,
		MinRate:                  4 << 10,
		Grace:                    30 * time.Second,
		BodyTimeout:              30 * time.Second,
	}
}

// Validate reports every field that can't be served.
func (c Config) Validate() error {
	var faults []error
	fault := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	fault(c.MaxConnections >= 0, "max_connections is %d; set it to 0 or more", c.MaxConnections)
	fault(c.MaxConnectionsPerAddress >= 0, "max_connections_per_address is %d; set it to 0 or more",
		c.MaxConnectionsPerAddress)
	fault(c.MinRate >= 0, "min_rate is %d; set it to 0 or more bytes per second", c.MinRate)
	fault(c.Grace > 0, "grace is %v; set it above 0", c.Grace)
	fault(c.BodyTimeout > 0, "body_timeout is %v; set it above 0", c.BodyTimeout)
	for i, proxy := range c.Proxies {
		_, err := parsePrefix(proxy)
		fault(err == nil, "proxies[%d] is %q; write an IP address or a prefix such as 10.0.0.0/8",
			i, proxy)
	}
	for i, host := range c.Hosts {
		fault(host != "" && !strings.ContainsAny(host, ":/ "),
			"hosts[%d] is %q; write a host name without scheme and port", i, host)
	}
	for i, origin := range c.Origins {
		u, err := url.Parse(origin)
		fault(err == nil && u.Scheme != "" && u.Host != "" && u.Scheme+"://"+u.Host == origin,
			"origins[%d] is %q; write scheme://host or scheme://host:port", i, origin)
	}
	return errors.Join(faults...)
}

// parsePrefix reads an address or a prefix.
func parsePrefix(text string) (netip.Prefix, error) {
	if address, err := netip.ParseAddr(text); err == nil {
		address = address.Unmap()
		return netip.PrefixFrom(address, address.BitLen()), nil
	}
	prefix, err := netip.ParsePrefix(text)
	return prefix.Masked(), err
}
