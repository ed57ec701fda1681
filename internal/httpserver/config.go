package httpserver

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"
)

// Config limits the connections of the API and the time that clients may take. The section api
// limits how many requests are handled at once. Start from DefaultConfig.
type Config struct {
	// MaxConnections limits the open connections of the API; over HTTP/2 each request in progress
	// counts as one more. At the limit, the connection that has been idle for longest is closed; if
	// none is idle, a new one is answered 503 with Retry-After. The limit is never more than a
	// quarter of the file descriptors that the process may open. 0: that quarter. Default: 1024.
	MaxConnections int `yaml:"max_connections"`
	// MaxConnectionsPerAddress limits the connections of one client address; IPv6 addresses of the
	// same /64 count as one. Loopback addresses and proxies are not limited. 0: no limit. Default:
	// 256.
	MaxConnectionsPerAddress int `yaml:"max_connections_per_address"`
	// Proxies lists the addresses or prefixes (10.1.2.3, 10.0.0.0/8) of reverse proxies and ingress
	// controllers. Their connections carry the requests of many clients, so max_connections limits
	// them and max_connections_per_address does not.
	Proxies []string `yaml:"proxies"`
	// Hosts lists the host names, without a port, under which clients reach the addresses that
	// require no key: the API without keys, and the admin address. Requests for IP addresses and
	// localhost are always accepted; those for other names are refused with 421, so that a web page
	// cannot reach the daemon through a name of its own (DNS rebinding). A leading "*." matches all
	// names below.
	Hosts []string `yaml:"hosts"`
	// Origins lists the origins (https://console.example.com) of web pages that may send requests
	// that change something. The daemon's own pages always may.
	Origins []string `yaml:"origins"`

	Tuning `yaml:"tuning"`
}

// Tuning holds the limits for slow clients.
type Tuning struct {
	// MinRate sets how many bytes per second a client must send of a body, or receive of an answer,
	// on average; slower connections are closed. Time that the daemon takes does not count. 0: any
	// progress is enough. Default: 4096.
	MinRate int64 `yaml:"min_rate"`
	// Grace sets for how long a transfer may make no progress, or be behind MinRate in total,
	// before its connection is closed. Default: 30s.
	Grace time.Duration `yaml:"grace"`
	// BodyTimeout limits the time in which a client sends the body of a request. Uploads of files
	// are not limited; MinRate applies to them. Default: 30s.
	BodyTimeout time.Duration `yaml:"body_timeout"`
}

// DefaultConfig returns limits that suit a daemon behind an ingress as well as one on a
// workstation.
func DefaultConfig() Config {
	return Config{
		MaxConnections:           1024,
		MaxConnectionsPerAddress: 256,
		Tuning: Tuning{
			MinRate:     4 << 10,
			Grace:       30 * time.Second,
			BodyTimeout: 30 * time.Second,
		},
	}
}

// Validate reports every value that is out of range.
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
	fault(c.MinRate >= 0, "tuning.min_rate is %d; set it to 0 or more bytes per second", c.MinRate)
	fault(c.Grace > 0, "tuning.grace is %v; set it above 0", c.Grace)
	fault(c.BodyTimeout > 0, "tuning.body_timeout is %v; set it above 0", c.BodyTimeout)
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
