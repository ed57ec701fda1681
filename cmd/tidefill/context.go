package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/strictyaml"
)

// contexts are the daemons that a user has given names.
type contexts struct {
	Current  string         `yaml:"current"` // empty: none
	Contexts []namedContext `yaml:"contexts"`
}

type namedContext struct {
	Name       string `yaml:"name"`
	connection `yaml:",inline"`
}

// contextsFile returns the path of the file of contexts, below the user's configuration directory.
func contextsFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find the directory of contexts: %w; set HOME", err)
	}
	return filepath.Join(dir, "tidefill", "contexts.yaml"), nil
}

// readContexts reads the file of contexts. Without one, or without a directory for it, there are
// none.
func readContexts() (all contexts, err error) {
	file, err := contextsFile()
	if err != nil {
		return all, nil //nolint:nilerr // a user without a directory has no contexts
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return all, fmt.Errorf("read contexts: %w", err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&all); err != nil {
		return contexts{}, fmt.Errorf("read contexts: %s: %w; correct or remove the file", file,
			err)
	}
	return all, nil
}

// write replaces the file of contexts, which only the user may read: it holds keys.
func (c *contexts) write() error {
	file, err := contextsFile()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("write contexts: %w", err)
	}
	part, err := os.CreateTemp(filepath.Dir(file), "contexts.*.part") // with mode 0600
	if err != nil {
		return fmt.Errorf("write contexts: %w", err)
	}
	encoder := yaml.NewEncoder(part)
	encoder.SetIndent(2)
	err = errors.Join(encoder.Encode(c), encoder.Close(), part.Close())
	if err == nil {
		err = os.Rename(part.Name(), file)
	}
	if err != nil {
		return fmt.Errorf("write contexts: %w", errors.Join(err, os.Remove(part.Name())))
	}
	return nil
}

func (c *contexts) names() (names []string) {
	for i := range c.Contexts {
		names = append(names, c.Contexts[i].Name)
	}
	return names
}

func (c *contexts) index(name string) int { return slices.Index(c.names(), name) }

func (c *contexts) find(name string) (connection, error) {
	i := c.index(name)
	switch {
	case i >= 0:
		return c.Contexts[i].connection, nil
	case len(c.Contexts) == 0:
		return connection{}, usageErrorf("there is no context %q; there is none at all: add it "+
			"by tidefill context add %s --server URL", name, name)
	}
	return connection{}, usageErrorf("there is no context %q; %s", name,
		strictyaml.Known(name, c.names()))
}

func contextCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "context",
		Aliases: []string{"contexts"},
		Short:   "Give daemons names, and choose the one that commands call",
		Long: `Give daemons names, and choose the one that commands call: its URLs, the key, the tenant and files of certificates.

Contexts are kept in tidefill/contexts.yaml below the user's configuration directory (XDG_CONFIG_HOME), which only the user may read.
tidefill help environment says what goes first where several things name a daemon.`,
		Example: `  tidefill context add prod --server https://tidefill.example --api-key - < key
  tidefill context use prod
  tidefill batch list --context test`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(contextListCommand(), contextUseCommand(), contextAddCommand(),
		contextRemoveCommand())
	return cmd
}

func contextListCommand() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List contexts",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			all, err := readContexts()
			if err != nil {
				return err
			}
			return listContexts(cmd, &o, &all)
		},
	}
	o.register(cmd, tableFormats)
	return cmd
}

// shownContext is a context without its key.
type shownContext struct {
	Name    string `json:"name"`
	Current bool   `json:"current"`
	Server  string `json:"server"`
	Admin   string `json:"admin"`
	Tenant  string `json:"tenant"`
	HasKey  bool   `json:"has_api_key"`
	CAFile  string `json:"ca_file"`
}

func listContexts(cmd *cobra.Command, o *output, all *contexts) error {
	rows := listing[shownContext]{output: o, columns: []column[shownContext]{
		{title: "CURRENT", cell: func(c shownContext) string {
			return map[bool]string{true: "*", false: " "}[c.Current]
		}},
		{title: "NAME", cell: func(c shownContext) string { return c.Name }},
		{title: "SERVER", cell: func(c shownContext) string { return c.Server }},
		{title: "KEY", cell: func(c shownContext) string { return yesNo(c.HasKey) }},
		{title: "TENANT", cell: func(c shownContext) string { return c.Tenant }},
		{title: "ADMIN", wide: true, cell: func(c shownContext) string { return c.Admin }},
		{title: "CA FILE", wide: true, cell: func(c shownContext) string { return c.CAFile }},
	}, name: func(c shownContext) string { return c.Name },
		raw: func(c shownContext) any { return c }}
	for i := range all.Contexts {
		c := &all.Contexts[i]
		if err := rows.add(cmd.OutOrStdout(), shownContext{Name: c.Name,
			Current: c.Name == all.Current, Server: c.Server, Admin: c.Admin, Tenant: c.Tenant,
			HasKey: c.APIKey != "", CAFile: c.CAFile}); err != nil {
			return err
		}
	}
	if len(all.Contexts) == 0 && !o.data() {
		fmt.Fprintln(cmd.ErrOrStderr(), "No contexts. Add one: tidefill context add NAME "+
			"--server URL")
	}
	return rows.end()
}

// changeContext builds a command that changes the context of a name.
func changeContext(
	cmd *cobra.Command, change func(cmd *cobra.Command, all *contexts, name string) error,
) *cobra.Command {
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		all, err := readContexts()
		if err == nil {
			err = change(cmd, &all, args[0])
		}
		if err != nil {
			return err
		}
		return all.write()
	}
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) (
		[]string, cobra.ShellCompDirective) {
		all, _ := readContexts()
		if len(args) > 0 {
			all = contexts{}
		}
		return all.names(), cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

func contextUseCommand() *cobra.Command {
	return changeContext(&cobra.Command{
		Use:   "use NAME",
		Short: "Have commands call the daemon of a context",
	}, func(_ *cobra.Command, all *contexts, name string) error {
		_, err := all.find(name)
		all.Current = name
		return err
	})
}

func contextRemoveCommand() *cobra.Command {
	return changeContext(&cobra.Command{
		Use:     "remove NAME",
		Aliases: []string{"rm"},
		Short:   "Forget a context",
	}, func(_ *cobra.Command, all *contexts, name string) error {
		if _, err := all.find(name); err != nil {
			return err
		}
		at := all.index(name)
		all.Contexts = slices.Delete(all.Contexts, at, at+1)
		if all.Current == name {
			all.Current = ""
		}
		return nil
	})
}

func contextAddCommand() *cobra.Command {
	var of connection
	cmd := changeContext(&cobra.Command{
		Use:   "add NAME --server URL",
		Short: "Add a context, or change one",
		Long: `Add a context, or change what the flags name of one. The first context becomes the current one.

--api-key - reads the key from standard input, which hides it from other users of the machine and from the shell's history.`,
	}, func(cmd *cobra.Command, all *contexts, name string) error {
		at := all.index(name)
		if at < 0 {
			if of.Server == "" {
				return usageErrorf("the context %s needs the daemon's URL: --server URL", name)
			}
			at = len(all.Contexts)
			all.Contexts = append(all.Contexts, namedContext{Name: name})
		}
		if of.APIKey == "-" {
			row, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
			if of.APIKey = strings.TrimSpace(row); of.APIKey == "" {
				return fmt.Errorf("read the key from standard input: it is empty (%w)", err)
			}
		}
		for _, file := range []*string{&of.CAFile, &of.CertFile, &of.KeyFile} {
			if absolute, err := filepath.Abs(*file); err == nil && *file != "" {
				*file = absolute
			}
		}
		c := &all.Contexts[at]
		c.connection = of.or(c.connection)
		for _, address := range []string{c.Server, c.Admin} {
			if address == "" {
				continue
			}
			if _, err := client.New(address, client.Options{}); err != nil {
				return exit{exitUsage, err}
			}
		}
		if len(all.Contexts) == 1 {
			all.Current = name
		}
		return nil
	})
	flags := cmd.Flags()
	flags.StringVar(&of.Server, "server", "", "the daemon's `URL`")
	flags.StringVar(&of.Admin, "admin", "", "the `URL` of its admin address")
	flags.StringVar(&of.APIKey, "api-key", "", "the API `key`; -: from standard input")
	flags.StringVar(&of.Tenant, "tenant", "", "the `tenant` to act for, with a key of an admin")
	flags.StringVar(&of.CAFile, "ca-file", "", "a `file` of authorities to trust for https")
	flags.StringVar(&of.CertFile, "cert-file", "", "the client `certificate`")
	flags.StringVar(&of.KeyFile, "key-file", "", "the private key `file` of that certificate")
	return cmd
}
