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
		Short: "List tenants, and delete what they have stored",
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(tenantListCommand(), tenantPurgeCommand())
	return cmd
}

func tenantListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List tenants with what they have stored",
		Long:    `List the tenants that have stored anything. Where keys are configured, this needs one of the role admin.`,
		Args:    cobra.NoArgs,
	}
	return new(remote).command(cmd, tableFormats, func(ctx context.Context, c *client.Client,
		r *remote, _ []string, out io.Writer) error {
		tenants, err := c.Tenants(ctx)
		if err != nil {
			return err
		}
		rows := tenantRows(&r.output)
		for _, t := range tenants {
			if err := rows.add(out, t); err != nil {
				return err
			}
		}
		return errors.Join(rows.end(), r.note(cmd.ErrOrStderr(), "tenants", len(tenants), 0, false))
	})
}

// tenantRows returns the table of tenants.
func tenantRows(o *output) *listing[client.Tenant] {
	type tenant = client.Tenant
	number := func(n int) string { return humanize.Thousands(int64(n)) }
	return &listing[tenant]{output: o, columns: []column[tenant]{
		{title: "TENANT", cell: func(t tenant) string { return t.ID }},
		{title: "ACTIVE", cell: func(t tenant) string { return number(t.ActiveBatches) }},
		{title: "BATCHES", cell: func(t tenant) string { return number(t.Batches) }},
		{title: "FILES", cell: func(t tenant) string { return number(t.Files) }},
		{title: "SIZE", cell: func(t tenant) string { return humanize.Bytes(t.Bytes) }},
		{title: "QUOTA", cell: func(t tenant) string {
			if t.QuotaBytes == 0 {
				return ""
			}
			return humanize.Bytes(t.QuotaBytes)
		}},
	}, name: func(t tenant) string { return t.ID }, raw: func(t tenant) any { return t.Raw }}
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

		ValidArgsFunction: completeArguments(r, false, tenantIDs),
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "don't ask")
	return r.command(cmd, objectFormats, func(ctx context.Context, c *client.Client, r *remote,
		args []string, out io.Writer) error {
		if args[0] == "" {
			return usageErrorf("the name of the tenant is empty")
		}
		c = c.For(args[0])
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
