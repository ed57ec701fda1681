package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidefill/tidefill/simulator/lab/live"
)

// count counts transactions and requests while a large batch runs at a rate that the upstream sets.
func (c *cluster) count(ctx context.Context) ([]figure, error) {
	lines := c.sizes.sharedSteady
	path, err := c.writeBatchFile("steady.jsonl", lines, dispatchLineBytes)
	if err != nil {
		return nil, err
	}
	up, err := c.startSlowUpstream(ctx, c.sizes.sharedSlow)
	if err != nil {
		return nil, err
	}
	defer up.kill()
	d, err := c.startBusy(ctx, "counted", up, append(c.settings(), unlimited...)...)
	if err != nil {
		return nil, err
	}
	defer d.kill()
	file, err := d.upload(ctx, path)
	if err != nil {
		return nil, err
	}
	rate := figure{What: "PostgreSQL transactions of one pool", Unit: "/s", Goal: atMost(5)}
	perLines := figure{What: "Requests to the bucket for 1,000 lines"}
	price := figure{What: "Price of the bucket's requests for 1,000,000 lines", Unit: "cents",
		Detail: "at 0.5 cents for 1,000 writes and 0.04 for 1,000 reads"}
	for i := range c.runs {
		c.logf("transactions: run %d of %d", i+1, c.runs)
		before, err := c.requests()
		if err != nil {
			return nil, err
		}
		perSecond, sending, err := c.steady(ctx, up, d, file)
		if err != nil {
			return nil, err
		}
		rate.Values = append(rate.Values, perSecond)
		rate.Detail = fmt.Sprintf("%.0f lines/s", sending)
		after, err := c.requests()
		if err != nil {
			return nil, err
		}
		requests, cents, detail := priced(before, after)
		perLines.Values = append(perLines.Values, float64(requests)*1000/float64(lines))
		perLines.Detail = detail
		price.Values = append(price.Values, cents*1_000_000/float64(lines))
	}
	return []figure{rate, perLines, price}, nil
}

// steady runs a batch and returns the rates of transactions and lines between its first tenth and
// its last. The daemon counts its transactions: the server notes those of a connection up to 10 s
// late, and its own beside them.
func (c *cluster) steady(
	ctx context.Context, up *upstream, d *daemon, file string,
) (perSecond, sending float64, err error) {
	if err := up.clear(ctx); err != nil {
		return 0, 0, err
	}
	id, err := d.create(ctx, file)
	if err != nil {
		return 0, 0, err
	}
	lines := int64(c.sizes.sharedSteady)
	if err := up.awaitCount(ctx, lines/10); err != nil {
		return 0, 0, err
	}
	begun := time.Now()
	before, err := live.Transactions(ctx, d.admin)
	if err != nil {
		return 0, 0, err
	}
	if err := up.awaitCount(ctx, lines*9/10); err != nil {
		return 0, 0, err
	}
	span := time.Since(begun).Seconds()
	after, err := live.Transactions(ctx, d.admin)
	if err != nil {
		return 0, 0, err
	}
	seen, err := up.ledger(ctx)
	if err == nil {
		err = d.await(ctx, id, "completed")
	}
	return float64(after-before) / span, seen.perSecond(), err
}

// unlimited lets batches have a million lines.
var unlimited = []string{"api.max_batch_lines=1000000", "api.max_batch_file_bytes=1073741824"}

// large measures the peak memory of daemons while batches of several sizes run. It does not repeat
// for runs, because it takes minutes.
func (c *cluster) large(ctx context.Context) ([]figure, error) {
	up, err := c.startUpstream(ctx)
	if err != nil {
		return nil, err
	}
	defer up.kill()
	var peaks []float64
	for _, lines := range c.sizes.sharedLarge {
		c.logf("memory with a batch of %s lines", grouped(lines))
		peak, err := c.peakOf(ctx, up, lines)
		if err != nil {
			return nil, err
		}
		peaks = append(peaks, peak)
	}
	least, most := c.sizes.sharedLarge[0], c.sizes.sharedLarge[len(peaks)-1]
	return []figure{
		{What: "Peak memory on the cluster store, batch of " + grouped(most) + " lines",
			Unit: "MiB", Values: peaks[len(peaks)-1:]},
		{What: "Peak memory on the cluster store, largest batch against smallest",
			Goal: atMost(1.5), Values: []float64{peaks[len(peaks)-1] / peaks[0]},
			Detail: fmt.Sprintf("%s against %s lines, %s against %s MiB", grouped(most),
				grouped(least), number(peaks[len(peaks)-1]), number(peaks[0]))},
	}, nil
}

func (c *cluster) peakOf(ctx context.Context, up *upstream, lines int) (float64, error) {
	path, err := c.writeBatchFile("large.jsonl", lines, dispatchLineBytes)
	if err != nil {
		return 0, err
	}
	d, err := c.startBusy(ctx, "large", up, append(c.settings(), unlimited...)...)
	if err != nil {
		return 0, err
	}
	defer d.kill()
	file, err := d.upload(ctx, path)
	if err != nil {
		return 0, err
	}
	if err := d.complete(ctx, file); err != nil {
		return 0, err
	}
	peak, err := d.peakMemory()
	if err == nil {
		err = d.profileHeap(ctx, c.environment, fmt.Sprintf("cluster-%d", lines))
	}
	return mebibytes(peak), err
}

// Prices of Amazon S3 Standard in us-east-1, in cents for each request.
const (
	priceOfWrite = 0.5 / 1000 // PUT, POST, COPY and LIST
	priceOfRead  = 0.04 / 1000
)

// priced returns the number of requests that came between two counts, and their price. Deletions
// are free.
func priced(before, after map[string]int) (requests int, cents float64, detail string) {
	var parts []string
	for _, operation := range slices.Sorted(maps.Keys(after)) {
		n := after[operation] - before[operation]
		if n == 0 {
			continue
		}
		requests += n
		switch {
		case strings.HasPrefix(operation, "Delete"), strings.HasPrefix(operation, "Abort"):
		case operation == "GetObject", operation == "HeadObject":
			cents += float64(n) * priceOfRead
		default:
			cents += float64(n) * priceOfWrite
		}
		parts = append(parts, fmt.Sprintf("%d %s", n, operation))
	}
	return requests, cents, strings.Join(parts, ", ")
}
