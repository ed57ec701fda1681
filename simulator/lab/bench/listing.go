package bench

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// benchListing measures pages of batches with every filter on a store with many batches.
func benchListing(ctx context.Context, l *environment) ([]figure, error) {
	data, err := l.prepareStore(ctx)
	if err != nil {
		return nil, err
	}
	up, err := l.startUpstream(ctx)
	if err != nil {
		return nil, err
	}
	defer up.kill()
	d, err := l.startDaemon(ctx, data, up.url)
	if err != nil {
		return nil, err
	}
	defer d.kill()

	// The daemon takes over the waiting batches first, which benchRestart measures.
	if _, err := d.idleLoad(ctx, l.sizes.idle); err != nil {
		return nil, err
	}
	what := fmt.Sprintf("Listing 100 of %s batches",
		grouped(l.sizes.endedBatches+l.sizes.waitingBatches))
	slowest := figure{What: what + ", p99 under the slowest filter", Unit: "ms", Goal: atMost(50)}
	plain := figure{What: what + ", p99 without a filter", Unit: "ms", Goal: atMost(50)}
	filters := listingFilters(time.Now(), l.sizes.endedBatches)
	profiled := d.profileCPU(ctx, l, "listing", 5*time.Second)
	for run := range l.runs {
		l.logf("listing: run %d of %d", run+1, l.runs)
		worst := 0.0
		for _, f := range filters {
			times, err := listTimes(ctx, d, f.query, l.sizes.listings)
			if err != nil {
				return nil, err
			}
			high := percentile(times, 0.99)
			l.logf("  %-36s median %s, p99 %s ms", f.name, number(median(times)), number(high))
			if len(f.query) == 1 {
				plain.Values = append(plain.Values, high)
			}
			if high > worst {
				worst, slowest.Detail = high, f.name
			}
		}
		slowest.Values = append(slowest.Values, worst)
	}
	return []figure{plain, slowest}, profiled()
}

type filter struct {
	name  string
	query url.Values
}

// listingFilters returns queries for the prepared store, which has kept ended batches.
func listingFilters(now time.Time, kept int) []filter {
	ago := func(d time.Duration) string { return strconv.FormatInt(now.Add(-d).Unix(), 10) }
	const month = 30 * 24 * time.Hour
	var filters []filter
	for _, f := range []struct {
		name string
		keys []string // key, value, …
	}{
		{"none", nil},
		{"a later page", []string{"after", endedID(kept / 2)}},
		{"state", []string{"status", "completed"}},
		{"rare states", []string{"status", "failed,cancelled"}},
		{"model", []string{"model", "model-3"}},
		{"metadata key", []string{"metadata[team]", ""}},
		{"metadata value", []string{"metadata[team]", "team-42"}},
		{"state, model and metadata", []string{"status", "completed", "model", "model-3",
			"metadata[team]", "team-43"}},
		{"model and metadata that never meet", []string{"model", "model-2", "metadata[kind]",
			"odd"}},
		{"created", []string{"created_after", ago(month + time.Hour), "created_before", ago(
			month)}},
		{"deadline", []string{"deadline_after", ago(month), "deadline_before", ago(
			month - time.Hour)}},
		{"sorted by deadline", []string{"sort", "deadline", "order", "asc"}},
		{"created, sorted by deadline", []string{"sort", "deadline", "created_after", ago(
			2*month + time.Hour), "created_before", ago(2 * month)}},
	} {
		query := url.Values{"limit": {"100"}}
		for i := 0; i < len(f.keys); i += 2 {
			query.Set(f.keys[i], f.keys[i+1])
		}
		filters = append(filters, filter{f.name, query})
	}
	return filters
}

// listTimes requests the same page several times and returns the milliseconds of each.
func listTimes(ctx context.Context, d *daemon, query url.Values, times int) ([]float64, error) {
	took := make([]float64, 0, times)
	for range times {
		begun := time.Now()
		if err := ask(ctx, "GET", d.url+"/v1/batches?"+query.Encode(), nil, nil); err != nil {
			return nil, err
		}
		took = append(took, milliseconds(time.Since(begun)))
	}
	return took, nil
}
