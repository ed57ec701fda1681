package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tidefill/tidefill/client"
)

// remote holds the flags of a command that calls a daemon.
type remote struct {
	output
	context string // of the name --context
	server  string
	admin   bool // server is the admin address
	options client.Options
	flags   *pflag.FlagSet
}

// register registers the flags of a command that calls the API.
func (r *remote) register(cmd *cobra.Command, formats []string) {
	cmd.Flags().StringVar(&r.server, "server", "",
		"the daemon's `URL` (TIDEFILL_SERVER; default "+client.DefaultServer+")")
	cmd.Flags().StringVar(&r.options.APIKey, "api-key", "",
		"the API `key` (TIDEFILL_API_KEY, which hides it from other users of the machine)")
	cmd.Flags().StringVar(&r.options.Tenant, "tenant", "",
		"act for this `tenant`, with a key of the role admin (TIDEFILL_TENANT)")
	r.registerConnection(cmd, formats)
}

// registerAdmin registers the flags of a command that calls the admin address of a daemon.
func (r *remote) registerAdmin(cmd *cobra.Command, formats []string) {
	r.admin = true
	cmd.Flags().StringVar(&r.server, "admin", "", "the `URL` of the daemon's admin address "+
		"(TIDEFILL_ADMIN; default "+client.DefaultAdmin+")")
	r.registerConnection(cmd, formats)
}

// registerConnection registers the flags of a command that calls any address of a daemon.
func (r *remote) registerConnection(cmd *cobra.Command, formats []string) {
	r.flags = cmd.Flags()
	r.flags.StringVar(&r.context, "context", "",
		"call the daemon of this `name` (TIDEFILL_CONTEXT; see tidefill context)")
	r.flags.StringVar(&r.options.CAFile, "ca-file", "",
		"also trust the authorities in this `file` for https (TIDEFILL_CA_FILE)")
	r.flags.StringVar(&r.options.CertFile, "cert-file", "",
		"the client `certificate` for a daemon that requires one (TIDEFILL_CERT_FILE)")
	r.flags.StringVar(&r.options.KeyFile, "key-file", "",
		"the private key `file` of that certificate (TIDEFILL_KEY_FILE)")
	r.output.register(cmd, formats)
	completeFlag(cmd, "context", func(context.Context) []string {
		all, _ := readContexts()
		return all.names()
	})
}

// connection is a daemon and the credentials for it. Empty fields are not given.
type connection struct {
	Server   string `yaml:"server"`
	Admin    string `yaml:"admin,omitempty"` // URL of the admin address
	APIKey   string `yaml:"api_key,omitempty"`
	Tenant   string `yaml:"tenant,omitempty"`
	CAFile   string `yaml:"ca_file,omitempty"`
	CertFile string `yaml:"cert_file,omitempty"`
	KeyFile  string `yaml:"key_file,omitempty"`
}

// environment returns what TIDEFILL_ variables say.
func environment() connection {
	return connection{
		Server: os.Getenv("TIDEFILL_SERVER"), Admin: os.Getenv("TIDEFILL_ADMIN"),
		APIKey: os.Getenv("TIDEFILL_API_KEY"), Tenant: os.Getenv("TIDEFILL_TENANT"),
		CAFile: os.Getenv("TIDEFILL_CA_FILE"), CertFile: os.Getenv("TIDEFILL_CERT_FILE"),
		KeyFile: os.Getenv("TIDEFILL_KEY_FILE"),
	}
}

// openAI returns what the variables of OpenAI's SDKs say, unless they mean OpenAI itself. The key
// counts only together with the URL: without one, it is most likely a key of OpenAI, which nobody
// else should get.
func openAI() connection {
	base := os.Getenv("OPENAI_BASE_URL")
	if u, err := url.Parse(base); err != nil || u.Hostname() == "api.openai.com" || base == "" {
		return connection{}
	}
	return connection{Server: base, APIKey: os.Getenv("OPENAI_API_KEY")}
}

// or returns c with what it lacks from other.
func (c connection) or(other connection) connection {
	return connection{
		Server: cmp.Or(c.Server, other.Server), Admin: cmp.Or(c.Admin, other.Admin),
		APIKey: cmp.Or(c.APIKey, other.APIKey), Tenant: cmp.Or(c.Tenant, other.Tenant),
		CAFile: cmp.Or(c.CAFile, other.CAFile), CertFile: cmp.Or(c.CertFile, other.CertFile),
		KeyFile: cmp.Or(c.KeyFile, other.KeyFile),
	}
}

// connection returns the daemon to call. Flags go first, then the context of --context, then
// TIDEFILL_ variables, then the current context. The current context and the variables of OpenAI's
// SDKs count only where nothing else names a server, so no key reaches another one than its own.
func (r *remote) connection() (connection, error) {
	given := connection{Server: r.server, APIKey: r.options.APIKey, Tenant: r.options.Tenant,
		CAFile: r.options.CAFile, CertFile: r.options.CertFile, KeyFile: r.options.KeyFile}
	if r.admin {
		given.Server, given.Admin = "", r.server
	}
	variables := environment()
	address := func(c connection) string {
		if r.admin {
			return c.Admin
		}
		return c.Server
	}
	name := cmp.Or(r.context, os.Getenv("TIDEFILL_CONTEXT"))
	if name == "" && address(given.or(variables)) != "" {
		return given.or(variables), nil
	}
	all, err := readContexts()
	if err != nil {
		return connection{}, err
	}
	of := variables
	switch {
	case name != "":
		chosen, err := all.find(name)
		if err != nil {
			return connection{}, err
		}
		of = chosen.or(variables)
	case r.admin && variables.Server != "": // a daemon whose admin address is the usual one
	case all.Current != "":
		name = all.Current
		chosen, err := all.find(name)
		if err != nil {
			return connection{}, err
		}
		of = variables.or(chosen)
	case !r.admin:
		of = variables.or(openAI())
	}
	given = given.or(of)
	if r.admin && given.Admin == "" && name != "" {
		return connection{}, fmt.Errorf("the context %s has no admin address; give --admin URL, "+
			"or run tidefill context add %s --admin URL", name, name)
	}
	return given.or(connection{Server: client.DefaultServer, Admin: client.DefaultAdmin}), nil
}

// client returns a client of the daemon to call, and settles the output.
func (r *remote) client() (*client.Client, error) {
	if err := r.output.check(); err != nil {
		return nil, err
	}
	of, err := r.connection()
	if err != nil {
		return nil, exit{exitUsage, err}
	}
	r.server = of.Server
	if r.admin {
		r.server = of.Admin
	}
	r.options = client.Options{APIKey: of.APIKey, Tenant: of.Tenant, CAFile: of.CAFile,
		CertFile: of.CertFile, KeyFile: of.KeyFile}
	c, err := client.New(r.server, r.options)
	if err != nil {
		return nil, exit{exitUsage, err}
	}
	return c, nil
}

// call is what a command does with a client of the API.
type call func(ctx context.Context, c *client.Client, r *remote, args []string,
	out io.Writer) error

// command adds to a command the flags of the API's address, and calls do with its client.
func (r *remote) command(cmd *cobra.Command, formats []string, do call) *cobra.Command {
	r.register(cmd, formats)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		c, err := r.client()
		if err != nil {
			return err
		}
		defer c.Close()
		return withRemedy(do(cmd.Context(), c, r, args, cmd.OutOrStdout()))
	}
	return cmd
}

// withRemedy adds to an error the flag or variable that may remedy it.
func withRemedy(err error) error {
	if refused := (*client.Error)(nil); errors.As(err, &refused) &&
		refused.Status == http.StatusUnauthorized {
		return fmt.Errorf("%w; set TIDEFILL_API_KEY to a key of this daemon", err)
	}
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		return fmt.Errorf("%w (see --server)", err)
	}
	if unknown := (*tls.CertificateVerificationError)(nil); errors.As(err, &unknown) {
		return fmt.Errorf("%w; give the authority of the daemon's certificate by --ca-file or "+
			"TIDEFILL_CA_FILE", err)
	}
	return err
}

// withAdminRemedy adds to an error of a connection what may remedy it.
func withAdminRemedy(err error) error {
	refused := (*client.Error)(nil)
	switch dial := (*net.OpError)(nil); {
	case errors.As(err, &dial) && dial.Op == "dial":
		return fmt.Errorf("%w (see --admin: the URL of admin_listen)", err)
	case errors.As(err, &refused) && refused.Status == 404 && refused.Code != "pool_not_found":
		return fmt.Errorf("%w; give the URL of the admin address by --admin, not that of the API",
			err)
	}
	return withRemedy(err)
}
