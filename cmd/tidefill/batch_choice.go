package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
)

// batchChoice is the batches that a command is about: ids or beginnings of them, the latest one
// or, for commands about several, all that a filter selects. With a filter, the latest one is that
// of the selection.
type batchChoice struct {
	latest bool
	filter batchFilter
	yes    bool
	one    bool // the command is about one batch only

	// action is the command's name, and may whether it can be done to a batch. Nil: to every one.
	// It leaves named batches to the daemon's answer.
	action string
	may    func(client.Batch) bool
}

// register registers the flags of a command, and has shells complete ids.
func (b *batchChoice) register(cmd *cobra.Command, r *remote) {
	b.action = cmd.Name()
	latest := "the batch that was created last"
	if b.may != nil {
		latest += ", of those to which this can be done"
	}
	cmd.Flags().BoolVarP(&b.latest, "latest", "l", false, latest)
	cmd.Args = func(_ *cobra.Command, args []string) error { return b.check(args) }
	cmd.ValidArgsFunction = completeArguments(r, !b.one, batchIDs)
}

// registerMany registers also the flags that select batches without their ids.
func (b *batchChoice) registerMany(cmd *cobra.Command, r *remote) {
	cmd.Flags().BoolVarP(&b.yes, "yes", "y", false,
		"don't ask before batches are changed that --status, --model and the like select")
	b.registerFilter(cmd, r)
}

// registerFilter registers the flags that select batches, of a command that changes none.
func (b *batchChoice) registerFilter(cmd *cobra.Command, r *remote) {
	b.filter.register(cmd)
	b.register(cmd, r)
	completeModels(cmd, r)
}

func (b *batchChoice) check(args []string) error {
	filtered := b.filter.flags != nil && b.filter.given()
	none := len(args) == 0 && !b.latest && !filtered
	switch {
	case none && b.filter.flags != nil:
		return errors.New("name batches, or select them by --latest, --status, --model, --meta " +
			"or their times")
	case none:
		return errors.New("name a batch, or give --latest")
	case len(args) > 0 && (b.latest || filtered):
		return errors.New("ids exclude --latest, and a selection by --status, --model and " +
			"the like")
	case b.one && len(args) > 1:
		return fmt.Errorf("%s takes one batch, and %d are named", b.action, len(args))
	}
	return nil
}

// ids returns the ids of the batches. in and errs are for the question whether a selection is
// meant.
func (b *batchChoice) ids(
	ctx context.Context, c *client.Client, args []string, in io.Reader, errs io.Writer,
) (ids []string, err error) {
	switch {
	case b.latest:
		for batch, err := range c.AllBatches(ctx, b.filter.query(), 0) {
			if err != nil {
				return nil, err
			}
			if b.may == nil || b.may(batch) {
				return []string{batch.ID}, nil
			}
		}
		return nil, fmt.Errorf("there is no such batch to %s, so none is the latest", b.action)
	case len(args) == 0:
		return b.selected(ctx, c, in, errs)
	}
	for _, arg := range args {
		id, err := completeID(ctx, c, arg)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// id returns the id of the one batch.
func (b *batchChoice) id(ctx context.Context, c *client.Client, args []string) (string, error) {
	ids, err := b.ids(ctx, c, args, nil, nil)
	if err != nil {
		return "", err
	}
	return ids[0], nil
}

// selected returns the batches of the filter to which the action can be done.
func (b *batchChoice) selected(
	ctx context.Context, c *client.Client, in io.Reader, errs io.Writer,
) (ids []string, err error) {
	for batch, err := range c.AllBatches(ctx, b.filter.query(), 0) {
		if err != nil {
			return nil, err
		}
		if b.may == nil || b.may(batch) {
			ids = append(ids, batch.ID)
		}
	}
	if len(ids) == 0 {
		fmt.Fprintf(errs, "No such batches to %s.\n", b.action)
		return nil, nil
	}
	if b.yes || b.filter.flags.Lookup("yes") == nil {
		return ids, nil
	}
	return ids, confirm(in, errs, b.action+" "+batchCount(len(ids)))
}

func batchCount(n int) string {
	if n == 1 {
		return "1 batch"
	}
	return humanize.Thousands(int64(n)) + " batches"
}

// confirm asks on a terminal whether something shall be done. Its error says that it shall not, or
// that nobody can be asked.
func confirm(in io.Reader, errs io.Writer, what string) error {
	file, ok := in.(*os.File)
	if !ok || !screenOf(file).terminal {
		return usageErrorf("this would %s; nobody can be asked here, so add --yes", what)
	}
	printf(errs, "%s? [y/N] ", what)
	answer, _ := bufio.NewReader(file).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errors.New("nothing was changed")
	}
	return nil
}

// completeID returns the id of the batch that an argument is the id of or, as in lists, the
// beginning of the id, with or without batch_.
func completeID(ctx context.Context, c *client.Client, arg string) (string, error) {
	b, err := c.Batch(ctx, arg)
	missing := (*client.Error)(nil)
	switch {
	case err == nil:
		return b.ID, nil
	case !errors.As(err, &missing) || missing.Status != http.StatusNotFound:
		return "", err
	}
	prefix := "batch_" + strings.TrimPrefix(arg, "batch_")
	var found []string
	if prefix != "batch_" {
		for b, listErr := range c.AllBatches(ctx, nil, 0) {
			if listErr != nil {
				return "", listErr
			}
			if strings.HasPrefix(b.ID, prefix) {
				found = append(found, b.ID)
			}
		}
	}
	switch len(found) {
	case 0:
		return "", err
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%s is the beginning of %d ids, %s and %s among them; give more of it",
		arg, len(found), found[0], found[1])
}

// each calls do for all batches, and goes on after an error.
func each(ids []string, do func(id string) error) error {
	var errs []error
	for _, id := range ids {
		errs = append(errs, do(id))
	}
	return errors.Join(errs...)
}
