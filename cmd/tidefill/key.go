package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/api"
	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
)

func keyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Make API keys, and list them with their last use",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(keyCreateCommand(), keyListCommand())
	return cmd
}

func keyListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List API keys with their last use",
		Long: `List the keys that the daemon knows, the last used first. A use is shown within a minute, and kept for 400 days. HASH is the beginning of
the hash, by which the row in the keys file is found. Keys of TIDEFILL_API_KEYS have no name and no date. This needs a key of the role admin;
with --tenant it lists those of one tenant.`,
		Example: `  tidefill key list
  tidefill key list --json | jq -r 'select(.last_used_at == null) | .redacted_value'`,
		Args: cobra.NoArgs,
	}
	return new(remote).command(cmd, tableFormats, func(ctx context.Context, c *client.Client,
		r *remote, _ []string, out io.Writer) error {
		keys, err := c.Keys(ctx)
		if err != nil {
			return err
		}
		slices.SortStableFunc(keys, func(a, b client.Key) int {
			return cmp.Compare(b.LastUsedAt, a.LastUsedAt)
		})
		rows := keyRows(&r.output, time.Now())
		for _, k := range keys {
			if err := rows.add(out, k); err != nil {
				return err
			}
		}
		return errors.Join(rows.end(), r.note(cmd.ErrOrStderr(), "keys", len(keys), 0, false))
	})
}

// keyRows returns the table of keys.
func keyRows(o *output, now time.Time) *listing[client.Key] {
	type key = client.Key
	return &listing[key]{output: o, columns: []column[key]{
		{title: "NAME", cell: func(k key) string { return k.Name }},
		{title: "TENANT", cell: func(k key) string { return k.Tidefill.Tenant }},
		{title: "ROLE", cell: func(k key) string { return k.Tidefill.Role }},
		{title: "CREATED", cell: func(k key) string {
			if k.CreatedAt == 0 {
				return "-"
			}
			return time.Unix(k.CreatedAt, 0).UTC().Format(time.DateOnly) // all that is known
		}},
		{title: "LAST USED", cell: func(k key) string {
			if k.LastUsedAt == 0 {
				return "never"
			}
			return humanize.Relative(k.LastUsedAt, now)
		}},
		{title: "HASH", cell: func(k key) string {
			return strings.TrimSuffix(k.RedactedValue, "…")
		}},
		{title: "SOURCE", wide: true, cell: func(k key) string { return k.Tidefill.Source }},
		{title: "ID", wide: true, cell: func(k key) string { return k.ID }},
	}, name: func(k key) string { return k.ID }, raw: func(k key) any { return k.Raw }}
}

func keyCreateCommand() *cobra.Command {
	var o output
	var k api.NewKey
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make an API key, and the row that gives it rights",
		Long: `Make a random API key, print it, and print the row of it for the keys file of the daemon (auth.keys_file). Nothing is stored: the row
has only a hash, so keep the key. A running daemon reads the file again within seconds.`,
		Example: `  tidefill key create --name nightly-eval --tenant research
  tidefill key create --name ops --role admin -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			key := "tf-" + rand.Text() + rand.Text()
			row, err := api.KeyRow(key, k)
			if err != nil {
				return exit{exitUsage, err}
			}
			of := struct {
				Key string `json:"key"`
				Row string `json:"row"`
			}{key, row}
			return o.print(cmd.OutOrStdout(), of, func(w io.Writer) error {
				printf(w, "Key, which is shown this once:\n\n  %s\n\n", key)
				printf(w, "Row below keys: in the keys file of the daemon (auth.keys_file):\n\n")
				printf(w, "  %s\n", row)
				return nil
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&k.Name, "name", "", "a `name`, by which you recognize the row")
	flags.StringVar(&k.Tenant, "tenant", "", "the `tenant` whose objects it reaches "+
		"(default: default)")
	flags.StringVar(&k.Role, "role", "user",
		"`what` it may do: viewer (read), user, or admin (act for any tenant)")
	completeFlags(cmd, map[string][]string{"role": {"viewer", "user", "admin"}})
	o.register(cmd, objectFormats)
	return cmd
}
