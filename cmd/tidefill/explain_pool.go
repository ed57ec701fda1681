package main

import (
	"slices"
	"strings"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
	"github.com/tidefill/tidefill/internal/shellword"
)

// poolArgument returns the name of a pool so that it can be copied from a terminal into a command.
func poolArgument(name string) string { return shellword.Of(humanize.Printable(name)) }

// findPool returns the index of the pool that an argument names: as the daemon does, as
// poolArgument prints it, or as the console lists its models; -1: there is none.
func findPool(pools []client.Pool, argument string) int {
	exact := func(p client.Pool) bool { return p.Name == argument }
	if i := slices.IndexFunc(pools, exact); i >= 0 {
		return i
	}
	return slices.IndexFunc(pools, func(p client.Pool) bool {
		return humanize.Printable(p.Name) == argument ||
			humanize.Printable(strings.Join(p.Models, ", ")) == argument
	})
}
