package main

import (
	"crypto/rand"
	"io"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/api"
)

func keyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Make API keys",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(keyCreateCommand())
	return cmd
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
