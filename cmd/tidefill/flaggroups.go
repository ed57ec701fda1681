package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// flagGroup is a part of the flags of a command under a title of its own.
type flagGroup struct {
	title string
	flags []string
}

// groupFlags has the help of a command list its flags in groups, in the given order; the flags of
// no group come last.
func groupFlags(cmd *cobra.Command, groups []flagGroup) {
	cmd.SetUsageFunc(func(cmd *cobra.Command) error {
		var b strings.Builder
		fmt.Fprintf(&b, "Usage:\n  %s\n", cmd.UseLine())
		if cmd.HasExample() {
			fmt.Fprintf(&b, "\nExamples:\n%s\n", cmd.Example)
		}
		grouped := map[string]bool{}
		for _, g := range groups {
			list := new(cobra.Command).Flags()
			list.SortFlags = false
			for _, name := range g.flags {
				list.AddFlag(cmd.Flags().Lookup(name))
				grouped[name] = true
			}
			fmt.Fprintf(&b, "\n%s:\n%s", g.title, list.FlagUsages())
		}
		rest := new(cobra.Command).Flags()
		all := cmd.Flags()
		all.AddFlagSet(cmd.InheritedFlags())
		rest.AddFlagSet(all)
		for name := range grouped {
			rest.Lookup(name).Hidden = true
		}
		fmt.Fprintf(&b, "\nOther flags:\n%s", rest.FlagUsages())
		for name := range grouped {
			rest.Lookup(name).Hidden = false
		}
		_, err := fmt.Fprint(cmd.OutOrStderr(), b.String())
		return err
	})
}
