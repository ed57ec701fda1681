package redis

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// Config configures the connection to Redis 6.2 or later, or a server that speaks its protocol.
type Config struct {
	// URL is the address: "redis://host:6379/0" of a single server,
	// "redis+sentinel://host1:26379,host2:26379/NAME" of Sentinels that know a primary by a name,
	// or "redis+cluster://host1:6379,host2:6379" of a cluster. With rediss in the place of redis
	// connections are encrypted. A user may stand before an @. It has no password: set
	// password_env or password_file. Empty: processes share nothing for speed but the store.
	URL string `yaml:"url"`
	// PasswordEnv names the environment variable that holds the password. Empty: none.
	PasswordEnv string `yaml:"password_env"`
	// PasswordFile names a file that holds the password, in place of password_env. It is read for
	// every new connection, so the password can be rotated.
	PasswordFile string `yaml:"password_file"`
	// CAFile names a file of certificates by which the server's is checked. Empty: those of the
	// system.
	CAFile string `yaml:"ca_file"`
	// Prefix begins all keys, so that several installations can share a server. Default: tidefill.
	Prefix string `yaml:"prefix"`

	Tuning `yaml:"tuning"`
}

// Tuning holds the constants of the connection to Redis.
type Tuning struct {
	// Timeout limits how long a call waits for Redis. After it, processes do without it until it
	// answers again. From 10ms to 5s. Default: 250ms.
	Timeout time.Duration `yaml:"timeout"`
}

// DefaultConfig returns the settings without an address.
func DefaultConfig() Config {
	return Config{Prefix: "tidefill", Tuning: Tuning{Timeout: 250 * time.Millisecond}}
}

// Validate reports every value that is missing or out of range. It never repeats the URL, which may
// hold a password.
func (c Config) Validate() error {
	var faults []error
	refuse := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf(format, args...))
	}
	if _, err := parseURL(c.URL); c.URL != "" && err != nil {
		refuse("url: %w", err)
	}
	if c.PasswordEnv != "" && c.PasswordFile != "" {
		refuse("password_file: is %q and password_env %q; give one of them", c.PasswordFile,
			c.PasswordEnv)
	}
	if c.Prefix == "" || strings.ContainsAny(c.Prefix, "{}: \t\r\n") {
		refuse("prefix: is %q; give a word without braces, colons and spaces", c.Prefix)
	}
	if c.Timeout < 10*time.Millisecond || c.Timeout > 5*time.Second {
		refuse("tuning.timeout: is %v, must be from 10ms to 5s", c.Timeout)
	}
	return errors.Join(faults...)
}

// address is what a URL says.
type address struct {
	mode   string // single, sentinel or cluster
	secure bool
	hosts  []string
	user   string
	name   string // of the primary, for Sentinels
	db     int
}

const urlForms = "write redis://host:6379/0, redis+sentinel://host1:26379,host2:26379/NAME or " +
	"redis+cluster://host1:6379,host2:6379, with rediss for TLS"

// parseURL reads a URL. Its errors never repeat it.
func parseURL(text string) (a address, err error) {
	scheme, rest, found := strings.Cut(text, "://")
	if !found {
		return a, errors.New("it has no scheme; " + urlForms)
	}
	security, mode, _ := strings.Cut(scheme, "+")
	a.mode = mode
	if mode == "" {
		a.mode = "single"
	}
	a.secure = security == "rediss"
	if security != "redis" && security != "rediss" ||
		a.mode != "single" && a.mode != "sentinel" && a.mode != "cluster" {
		return a, errors.New("its scheme is unknown; " + urlForms)
	}
	if strings.ContainsAny(rest, "?#") {
		return a, errors.New("parameters are not known in it; use the keys beside it")
	}
	rest, path, _ := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		user, password, has := strings.Cut(rest[:i], ":")
		if has && password != "" {
			return a, errors.New("it holds a password; set password_env or password_file instead")
		}
		if a.user, err = url.PathUnescape(user); err != nil {
			return a, errors.New("the user in it is not escaped as in URLs")
		}
		rest = rest[i+1:]
	}
	standard := "6379"
	if a.mode == "sentinel" {
		standard = "26379"
	}
	for host := range strings.SplitSeq(rest, ",") {
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), standard)
		}
		if strings.HasPrefix(host, ":") {
			return a, errors.New("a host in it is empty; " + urlForms)
		}
		a.hosts = append(a.hosts, host)
	}
	err = a.setPath(path)
	return a, err
}

func (a *address) setPath(path string) (err error) {
	switch a.mode {
	case "sentinel":
		if a.name = path; path == "" || strings.Contains(path, "/") {
			return errors.New("it must end with /NAME, by which the Sentinels know the primary")
		}
	case "cluster":
		if path != "" {
			return errors.New("a cluster has no databases; leave out what follows the hosts")
		}
	default:
		if len(a.hosts) > 1 {
			return errors.New("it names several hosts; write redis+sentinel or redis+cluster")
		}
		if path == "" {
			return nil
		}
		if a.db, err = strconv.Atoi(path); err != nil || a.db < 0 {
			return errors.New("what follows the host is not the number of a database")
		}
	}
	return nil
}

// password returns the password; empty: there is none.
func (c Config) password() (string, error) {
	switch {
	case c.PasswordEnv != "":
		value := os.Getenv(c.PasswordEnv)
		if value == "" {
			return "", fmt.Errorf("the environment variable %s, which password_env names, is "+
				"empty; set it to the password of Redis", c.PasswordEnv)
		}
		return value, nil
	case c.PasswordFile != "":
		value, err := os.ReadFile(c.PasswordFile)
		if err != nil {
			return "", fmt.Errorf("read the password of Redis: %w", err)
		}
		return strings.TrimRight(string(value), "\r\n"), nil
	}
	return "", nil
}

// encryption returns how connections are encrypted; nil: they are not.
func (c Config) encryption(a address) (*tls.Config, error) {
	if !a.secure {
		return nil, nil
	}
	of := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile == "" {
		return of, nil
	}
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read the certificates of Redis: %w", err)
	}
	of.RootCAs = x509.NewCertPool()
	if !of.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read the certificates of Redis: %s contains none in PEM", c.CAFile)
	}
	return of, nil
}
