package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
	"github.com/tidefill/tidefill/internal/humanize"
)

func tenantCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tenant",
		Short: "Delete what tenants have stored",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(tenantPurgeCommand())
	return cmd
}

func tenantPurgeCommand() *cobra.Command {
	var yes bool
	r := new(remote)
	cmd := &cobra.Command{
		Use:   "purge TENANT",
		Short: "Cancel and delete all batches and files of a tenant",
		Long: `Cancel all batches of a tenant, wait until they have ended, and delete them with all files of the tenant, inputs and results. This
needs a key of the role admin, or the tenant's own. Revoke its keys before, or it goes on creating batches. Uploads in parts that are
not complete expire after an hour.`,
		Example: `  tidefill tenant purge research --yes`,
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "don't ask")
	return r.command(cmd, objectFormats, func(ctx context.Context, _ *client.Client, r *remote,
		args []string, out io.Writer) error {
		r.options.Tenant = args[0]
		c, err := client.New(r.server, r.options)
		if err != nil {
			return err
		}
		defer c.Close()
		p, err := findPurge(ctx, c)
		if err != nil {
			return err
		}
		if !yes {
			if err := confirm(cmd.InOrStdin(), cmd.ErrOrStderr(), fmt.Sprintf("delete %s and %s "+
				"of the tenant %s", batchCount(len(p.batches)),
				humanize.Count(len(p.files), "file"), args[0])); err != nil {
				return err
			}
		}
		err = p.run(ctx, c)
		return errors.Join(err, r.print(out, p.Purged, func(w io.Writer) error {
			printf(w, "%s  deleted %s and %s\n", args[0], batchCount(p.Purged.Batches),
				humanize.Count(p.Purged.Files, "file"))
			return nil
		}))
	})
}

// purge deletes what a tenant has.
type purge struct {
	batches []client.Batch
	files   []string // ids

	Purged struct {
		Batches int `json:"batches"`
		Files   int `json:"files"`
	}
}

// findPurge lists what the tenant of a client has.
func findPurge(ctx context.Context, c *client.Client) (*purge, error) {
	p := new(purge)
	for b, err := range c.AllBatches(ctx, nil, 0) {
		if err != nil {
			return nil, err
		}
		p.batches = append(p.batches, client.Batch{ID: b.ID, Status: b.Status})
	}
	return p, p.findFiles(ctx, c)
}

func (p *purge) findFiles(ctx context.Context, c *client.Client) error {
	p.files = nil
	for f, err := range c.AllFiles(ctx, nil, 0) {
		if err != nil {
			return err
		}
		p.files = append(p.files, f.ID)
	}
	return nil
}

// run deletes batches and then files, those of results that came meanwhile included. It goes on
// after an error.
func (p *purge) run(ctx context.Context, c *client.Client) error {
	var errs []error
	for _, b := range p.batches {
		if b.Ended() {
			continue
		}
		if _, err := c.Cancel(ctx, b.ID); err != nil && !wrongStatus(err) {
			errs = append(errs, err)
		}
	}
	for _, b := range p.batches {
		_, err := c.Watch(ctx, b.ID, nil)
		if err == nil {
			_, err = c.DeleteBatch(ctx, b.ID)
		}
		if err == nil {
			p.Purged.Batches++
		}
		errs = append(errs, err)
	}
	if err := p.findFiles(ctx, c); err != nil {
		return errors.Join(append(errs, err)...)
	}
	for _, id := range p.files {
		_, err := c.DeleteFile(ctx, id)
		if err == nil {
			p.Purged.Files++
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// wrongStatus reports whether a batch was not changed since it has ended meanwhile.
func wrongStatus(err error) bool {
	refused := (*client.Error)(nil)
	return errors.As(err, &refused) && refused.Code == "invalid_batch_status"
}
