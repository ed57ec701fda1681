package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
)

const (
	// explainEvery is the time between two explanations of --watch.
	explainEvery = 2 * time.Second
	// longestSince is the time for which a daemon keeps decisions.
	longestSince = time.Hour
)

func explainCommand() *cobra.Command {
	var watch bool
	var since time.Duration
	r := new(remote)
	cmd := &cobra.Command{
		Use:   "explain [POOL]",
		Short: "Say why batch lines start or wait",
		Long: `Say, for each pool or for one, what is protected, what was read and how old it is, how many lines each runner carries and may carry,
and what keeps them from being more. POOL is the name of a pool as it is printed: that in the configuration or, without one, the
models, separated by commas.

With --watch, wait while the daemon is unreachable, such as during a restart.

--admin or TIDEFILL_ADMIN is the URL of the daemon's admin address (admin_listen). The same is shown in a browser, with charts, at
/console of that address.`,
		Example: `  tidefill explain
  tidefill explain --watch
  tidefill explain meta-llama/Llama-3-70B --since 10m`,
		Args: cobra.MaximumNArgs(1),
	}
	flags := cmd.Flags()
	flags.BoolVar(&watch, "watch", false, "explain again every 2 s, until Ctrl-C")
	flags.DurationVar(&since, "since", 0,
		"a table of the decisions of this `time` until now, at most 1h")
	r.registerAdmin(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case since < 0 || cmd.Flags().Changed("since") && since == 0:
			return usageErrorf("--since is %v; give a time above 0, such as 10m", since)
		case since > longestSince:
			return usageErrorf("--since is %v; a daemon keeps decisions for %v, so give at most 1h",
				since, longestSince)
		case watch && since > 0:
			return usageErrorf("--watch and --since exclude each other")
		}
		c, err := r.client()
		if err != nil {
			return err
		}
		defer c.Close()
		e := &explainer{client: c, json: r.json, out: cmd.OutOrStdout(),
			errors: cmd.ErrOrStderr(), every: explainEvery, now: time.Now}
		if len(args) > 0 {
			e.pool = args[0]
		}
		return withAdminRemedy(e.run(cmd.Context(), watch, since))
	}
	return cmd
}

// registerAdmin registers the flags of a command that calls the admin address of a daemon.
func (r *remote) registerAdmin(cmd *cobra.Command) {
	r.server = cmp.Or(os.Getenv("TIDEFILL_ADMIN"), client.DefaultAdmin)
	cmd.Flags().StringVar(&r.server, "admin", r.server,
		"the `URL` of the daemon's admin address (TIDEFILL_ADMIN)")
	r.registerConnection(cmd)
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

// explainer prints decisions of one pool, or of all.
type explainer struct {
	client *client.Client
	pool   string // empty: all
	json   bool
	out    io.Writer
	errors io.Writer
	every  time.Duration // between two explanations, if they are repeated
	now    func() time.Time
}

func (e *explainer) run(ctx context.Context, watch bool, since time.Duration) error {
	if since > 0 {
		return e.history(ctx, since)
	}
	if err := e.present(ctx, watch); err != nil || !watch {
		return err
	}
	for waits := false; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(e.every):
		}
		err := e.present(ctx, watch)
		switch {
		case err == nil:
			waits = false
		case ctx.Err() != nil || !passes(err):
			return err
		case !waits:
			waits = true
			printError(e.errors, "tidefill: waiting for the daemon: ", err)
		}
	}
}

// passes reports whether what was explained before may be explained again later. A daemon that has
// just started knows no pools yet.
func passes(err error) bool {
	refused := (*client.Error)(nil)
	return client.Temporary(err) || errors.As(err, &refused) && refused.Code == "pool_not_found"
}

// present prints the present decisions.
func (e *explainer) present(ctx context.Context, watch bool) error {
	list, err := e.client.Pools(ctx)
	if err != nil {
		return err
	}
	pools, err := e.chosen(ctx, list)
	if err != nil {
		return err
	}
	if e.json {
		return e.printList(list)
	}
	scaling, err := e.scaling(ctx)
	if err != nil {
		return err
	}
	var text strings.Builder
	explainDaemon(&text, list, len(scaling.Data))
	explainScaling(&text, scaling)
	for i := range pools {
		explainPool(&text, &pools[i], list)
	}
	if watch {
		io.WriteString(e.out, "\x1b[H\x1b[2J") // the terminal's first row, and an empty screen
	}
	_, err = io.WriteString(e.out, text.String())
	return err
}

// scaling returns what was decided about replicas; nothing, if one pool of runners was asked for.
func (e *explainer) scaling(ctx context.Context) (client.ScalingList, error) {
	if e.pool != "" {
		return client.ScalingList{}, nil
	}
	return e.client.Scaling(ctx)
}

// printList prints the answer of the daemon or, of one pool, its part.
func (e *explainer) printList(list client.PoolList) error {
	if e.pool == "" {
		return printJSON(e.out, list.Raw)
	}
	var raw struct{ Data []json.RawMessage }
	if err := json.Unmarshal(list.Raw, &raw); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if i := findPool(list.Data, e.pool); i >= 0 {
		return printJSON(e.out, raw.Data[i])
	}
	return nil // chosen has returned an error
}

// chosen returns the pools to explain. For an unknown one it returns the daemon's own error, which
// lists those that there are.
func (e *explainer) chosen(ctx context.Context, list client.PoolList) ([]client.Pool, error) {
	if e.pool == "" {
		return list.Data, nil
	}
	if i := findPool(list.Data, e.pool); i >= 0 {
		return list.Data[i : i+1], nil
	}
	if _, err := e.client.Decisions(ctx, e.pool, client.DecisionQuery{Limit: 1}); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("the pool %q does not exist any more; --since 1h shows its decisions",
		e.pool)
}

// history prints a table of decisions.
func (e *explainer) history(ctx context.Context, since time.Duration) error {
	list, err := e.client.Pools(ctx)
	if err != nil {
		return err
	}
	names := []string{e.pool} // one that does not exist any more has decisions, too
	if i := findPool(list.Data, e.pool); i >= 0 {
		names[0] = list.Data[i].Name
	} else if e.pool == "" {
		names = nil
		for _, p := range list.Data {
			names = append(names, p.Name)
		}
	}
	const rows = 60
	q := client.DecisionQuery{Since: e.now().Add(-since), Step: max(time.Second, since/rows),
		Limit: 1000, Terms: e.json, Inputs: e.json}
	for _, name := range names {
		page, err := e.client.Decisions(ctx, name, q)
		if err != nil {
			return err
		}
		if e.json {
			err = printJSON(e.out, page.Raw)
		} else {
			var text strings.Builder
			historyTable(&text, name, page.Data)
			_, err = io.WriteString(e.out, text.String())
		}
		if err != nil {
			return err
		}
	}
	return nil
}
