package postgres

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
)

// Config configures the connection to PostgreSQL 15 or later.
type Config struct {
	// URL is the address of the database, such as
	// "postgres://tidefill@db1,db2/tidefill?sslmode=verify-full&sslrootcert=/etc/ca.pem", with the
	// parameters of libpq. All hosts are tried, and the one that accepts writes is used. It has no
	// password: set password_env or password_file. The user must own the database, or be allowed to
	// create tables in it.
	URL string `yaml:"url"`
	// DirectURL is the address of PostgreSQL itself, if url leads to PgBouncer. Each process keeps
	// one connection to it, by which it notices changes of other processes at once, since PgBouncer
	// passes on no notifications. Empty: url.
	DirectURL string `yaml:"direct_url"`
	// PasswordEnv names the environment variable that holds the password. Empty: none.
	PasswordEnv string `yaml:"password_env"`
	// PasswordFile names a file that holds the password, in place of password_env. It is read for
	// every new connection, so the password can be rotated.
	PasswordFile string `yaml:"password_file"`
	// MaxConnections limits the connections of this process, besides the one for notifications. All
	// processes together must stay below the server's max_connections. At least 2. Default: 10.
	MaxConnections int `yaml:"max_connections"`

	Tuning `yaml:"tuning"`
}

// Tuning holds the constants of the connection to PostgreSQL.
type Tuning struct {
	// Timeout limits how long a call waits for a connection and an answer. After it, requests are
	// answered 503 and dispatching waits. At least 100ms. Default: 10s.
	Timeout time.Duration `yaml:"timeout"`
	// Statements says whether connections keep prepared statements: prepared, unnamed, or auto,
	// which is unnamed behind PgBouncer and prepared otherwise. Default: auto.
	Statements string `yaml:"statements"`
}

// Values of Tuning.Statements.
const (
	statementsAuto     = "auto"
	statementsPrepared = "prepared"
	statementsUnnamed  = "unnamed"
)

// DefaultConfig returns the settings for a server without an address.
func DefaultConfig() Config {
	return Config{MaxConnections: 10, Tuning: Tuning{Timeout: 10 * time.Second,
		Statements: statementsAuto}}
}

// Validate reports every value that is missing or out of range. It never repeats the URL, which may
// hold a password.
func (c Config) Validate() error {
	var faults []error
	refuse := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf(format, args...))
	}
	if fault := checkURL(c.URL); fault != "" {
		refuse("url: %s", fault)
	}
	if fault := checkURL(c.DirectURL); c.DirectURL != "" && fault != "" {
		refuse("direct_url: %s", fault)
	}
	if c.PasswordEnv != "" && c.PasswordFile != "" {
		refuse("password_file: is %q and password_env %q; give one of them", c.PasswordFile,
			c.PasswordEnv)
	}
	if c.MaxConnections < 2 {
		refuse("max_connections: is %d, must be 2 or more", c.MaxConnections)
	}
	if c.Timeout < 100*time.Millisecond {
		refuse("tuning.timeout: is %v, must be 100ms or more", c.Timeout)
	}
	switch c.Statements {
	case statementsAuto, statementsPrepared, statementsUnnamed:
	default:
		refuse("tuning.statements: is %q, must be auto, prepared or unnamed", c.Statements)
	}
	return errors.Join(faults...)
}

// checkURL returns what is wrong with the address; empty: nothing.
func checkURL(address string) string {
	const example = "such as postgres://tidefill@db.example/tidefill?sslmode=verify-full"
	if address == "" {
		return "is empty; set it to the address of a database, " + example
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return "is not an address of PostgreSQL; write one " + example
	}
	if _, has := u.User.Password(); has {
		return "has a password, which logs would show; use password_env or password_file"
	}
	for _, key := range []string{"password", "sslpassword", "passfile"} {
		if u.Query().Has(key) {
			return "has the parameter " + key + "; use password_env or password_file"
		}
	}
	if _, err := pgx.ParseConfig(address); err != nil {
		return "can't be used: " + parseFault(err)
	}
	return ""
}

// parseFault returns the cause of an error of pgx.ParseConfig without the address.
func parseFault(err error) string {
	if cause := errors.Unwrap(err); cause != nil {
		return cause.Error()
	}
	return "check its parameters"
}
