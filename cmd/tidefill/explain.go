package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tidefill/tidefill/client"
)

const (
	// feltSince is the shortest time of which explain shows what users felt. Of less it shows
	// decisions: the daemon keeps those of an hour.
	feltSince = time.Hour
	// longestSince is the time for which what users felt is kept.
	longestSince = 90 * 24 * time.Hour
)

func explainCommand() *cobra.Command {
	var watch bool
	var period period
	r := new(remote)
	cmd := &cobra.Command{
		Use:   "explain [POOL]",
		Short: "Say why batch lines start or wait",
		Long: `Say, for each pool or for one, what is protected, what was read and how old it is, how many lines each runner carries and may carry,
and what keeps them from being more. POOL is the name of a pool as it is printed: that in the configuration or, without one, the
models, separated by commas.

With --since of less than an hour, show what was decided in that time. With more, up to 90 days, show what users felt, by hour or by day:
the share of requests that were late beside lines, the share that would have been late without lines by the policy's estimate, and what
lines took. It survives restarts, and the last minute is still missing.

With --watch, wait while the daemon is unreachable, such as during a restart.

--admin or TIDEFILL_ADMIN is the URL of the daemon's admin address (admin_listen). The same is shown in a browser, with charts, at
/console of that address.`,
		Example: `  tidefill explain
  tidefill explain --watch
  tidefill explain meta-llama/Llama-3-70B --since 10m
  tidefill explain --since 7d`,
		Args: cobra.MaximumNArgs(1),
	}
	flags := cmd.Flags()
	flags.BoolVarP(&watch, "watch", "w", false, "explain again every 2 s, until Ctrl-C")
	flags.Var(&period, "since", "a table of this `time` until now, such as 10m, 24h or 30d: of "+
		"decisions below 1h, else of what users felt")
	r.registerAdmin(cmd, objectFormats)
	cmd.ValidArgsFunction = completeArguments(r, false, poolNames)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		since := time.Duration(period)
		switch {
		case since < 0 || cmd.Flags().Changed("since") && since == 0:
			return usageErrorf("--since is %v; give a time above 0, such as 10m or 7d", since)
		case since > longestSince:
			return usageErrorf("--since is %v; what users felt is kept for 90 days, so give at "+
				"most 90d", since)
		case watch && since > 0:
			return usageErrorf("--watch and --since exclude each other")
		}
		c, err := r.client()
		if err != nil {
			return err
		}
		defer c.Close()
		e := &explainer{output: &r.output, client: c, out: cmd.OutOrStdout(),
			errors: cmd.ErrOrStderr(), every: repeatEvery, now: time.Now}
		if len(args) > 0 {
			e.pool = args[0]
		}
		return withAdminRemedy(e.run(cmd.Context(), watch, since))
	}
	return cmd
}

// explainer prints decisions of one pool, or of all.
type explainer struct {
	*output
	client *client.Client
	pool   string // empty: all
	out    io.Writer
	errors io.Writer
	every  time.Duration // between two explanations, if they are repeated
	now    func() time.Time
}

func (e *explainer) run(ctx context.Context, watch bool, since time.Duration) error {
	present := func(w io.Writer) error { return e.present(ctx, w) }
	switch {
	case since >= feltSince:
		return e.felt(ctx, since)
	case since > 0:
		return e.history(ctx, since)
	case watch:
		return repetition{e.out, e.errors, e.every, true}.run(ctx, present)
	}
	return present(e.out)
}

// present prints the present decisions.
func (e *explainer) present(ctx context.Context, out io.Writer) error {
	list, err := e.client.Pools(ctx)
	if err != nil {
		return err
	}
	pools, err := e.chosen(ctx, list)
	if err != nil {
		return err
	}
	return e.print(out, e.raw(list), func(out io.Writer) error {
		scaling, err := e.scaling(ctx)
		if err != nil {
			return err
		}
		explainDaemon(out, list, len(scaling.Data))
		explainScaling(out, scaling)
		for i := range pools {
			explainPool(out, &pools[i], list)
		}
		return nil
	})
}

// scaling returns what was decided about replicas; nothing, if one pool of runners was asked for.
func (e *explainer) scaling(ctx context.Context) (client.ScalingList, error) {
	if e.pool != "" {
		return client.ScalingList{}, nil
	}
	return e.client.Scaling(ctx)
}

// raw returns the answer of the daemon or, of one pool, its part.
func (e *explainer) raw(list client.PoolList) json.RawMessage {
	var raw struct{ Data []json.RawMessage }
	i := findPool(list.Data, e.pool)
	if e.pool == "" || i < 0 || json.Unmarshal(list.Raw, &raw) != nil {
		return list.Raw
	}
	return raw.Data[i]
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
	return nil, fmt.Errorf("the pool %q does not exist any more; --since 59m shows its decisions",
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
		Limit: 1000, Terms: e.data(), Inputs: e.data()}
	for _, name := range names {
		page, err := e.client.Decisions(ctx, name, q)
		if err != nil {
			return err
		}
		err = e.print(e.out, page.Raw, func(out io.Writer) error {
			historyTable(out, name, page.Data)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
