package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
)

// completionTime limits the time for which a shell waits for names.
const completionTime = 2 * time.Second

// completedItems limits the batches and files that a shell offers.
const completedItems = 50

// soon asks a daemon for what completes a word, within completionTime.
func soon[T any](
	ctx context.Context, r *remote, ask func(*client.Client, context.Context) (T, error),
) (answer T, err error) {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	c, err := r.client()
	if err != nil {
		return answer, err
	}
	defer c.Close()
	return ask(c, ctx)
}

// words asks a daemon for words that a shell may offer, each perhaps with a description after a
// tab.
type words func(*client.Client, context.Context) ([]string, error)

// offer returns words of a daemon; none if it does not answer soon. It leaves out what can't be
// typed as it is printed.
func offer(ctx context.Context, r *remote, ask words) []string {
	all, err := soon(ctx, r, ask)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(all, func(word string) bool {
		word = strings.Replace(word, "\t", "", 1)
		return humanize.Printable(word) != word
	})
}

// completeArguments offers words for the arguments of a command: for the first only, or for all.
func completeArguments(r *remote, all bool, ask words) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (
		[]string, cobra.ShellCompDirective) {
		if len(args) > 0 && !all {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		offered := offer(cmd.Context(), r, ask)
		return slices.DeleteFunc(offered, func(word string) bool {
			id, _, _ := strings.Cut(word, "\t")
			return slices.Contains(args, id)
		}), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFlag offers words for a flag.
func completeFlag(cmd *cobra.Command, flag string, words func(context.Context) []string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) (
		[]string, cobra.ShellCompDirective) {
		return words(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // the flag does not exist
	}
}

// completeFlags offers the values of flags to shells.
func completeFlags(cmd *cobra.Command, values map[string][]string) {
	for name, of := range values {
		completeFlag(cmd, name, func(context.Context) []string { return of })
	}
}

// completeModels offers the models of the daemon for --model.
func completeModels(cmd *cobra.Command, r *remote) {
	completeFlag(cmd, "model", func(ctx context.Context) []string {
		return offer(ctx, r, (*client.Client).Models)
	})
}

func batchIDs(c *client.Client, ctx context.Context) (ids []string, err error) {
	for b, err := range c.AllBatches(ctx, nil, completedItems) {
		if err != nil {
			return ids, err
		}
		ids = append(ids, b.ID+"\t"+shortStatus(b)+", "+
			humanize.Count(b.Counts.Total, "line")+", "+modelText(b))
	}
	return ids, nil
}

func tenantIDs(c *client.Client, ctx context.Context) (ids []string, err error) {
	tenants, err := c.Tenants(ctx)
	for _, t := range tenants {
		ids = append(ids, t.ID+"\t"+batchCount(t.Batches))
	}
	return ids, err
}

func fileIDs(c *client.Client, ctx context.Context) (ids []string, err error) {
	for f, err := range c.AllFiles(ctx, nil, completedItems) {
		if err != nil {
			return ids, err
		}
		ids = append(ids, f.ID+"\t"+f.Filename+", "+humanize.Bytes(f.Bytes))
	}
	return ids, nil
}

func poolNames(c *client.Client, ctx context.Context) (names []string, err error) {
	list, err := c.Pools(ctx)
	for i := range list.Data {
		names = append(names, list.Data[i].Name)
	}
	return names, err
}
