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
	// Proxies lists the addresses or prefixes (10.1.2.3, 10.0.0.0/8) of reverse proxies and ingress
	// controllers. Their connections carry the requests of many clients. Other addresses may have
	// 256 connections each.
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

	// MaxConnectionsPerAddress limits the connections of one client address; IPv6 addresses of the
	// same /64 count as one. Loopback addresses and proxies are not limited. 0: no limit. It is no
	// key: the daemon sets it to 0 for the admin address.
	MaxConnectionsPerAddress int `yaml:"-"`

	Tuning `yaml:"tuning"`
}

// Tuning holds the limits for slow clients. They must send bodies, and receive answers, at 4 KiB
// per second on average. Time that the daemon takes does not count.
type Tuning struct {
	// Grace sets for how long a transfer may make no progress, or be behind its rate in total,
	// before its connection is closed. Default: 30s.
	Grace time.Duration `yaml:"grace"`
	// BodyTimeout limits the time in which a client sends the body of a request. Uploads of files
	// have their rate alone. Default: 30s.
	BodyTimeout time.Duration `yaml:"body_timeout"`
	// MinRate is the rate in bytes per second. 0: any progress is enough. It is no key: tests set
	// it.
	MinRate int64 `yaml:"-"`
}

const (
	// perAddress is a quarter of the connections that the API has by default, so that one client
	// leaves most of them to others.
	perAddress = 256
	// minRate is below that of a slow mobile network. A client that is slower holds a connection,
	// and seldom a user.
	minRate = 4 << 10
)

// DefaultConfig returns limits that suit a daemon behind an ingress as well as one on a
// workstation.
func DefaultConfig() Config {
	return Config{
		MaxConnections:           1024,
		MaxConnectionsPerAddress: perAddress,
		Tuning: Tuning{
			MinRate:     minRate,
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
