package routing

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/tidefill/tidefill/simulator"
	"github.com/tidefill/tidefill/simulator/engine"
	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

var seeds = flag.Uint64("seeds", 2, "number of seeds that TestRoutersOnTraces runs each pool with")

const (
	// Noise of the mean of two seeds, between two routers that differ in nothing but the order
	// of runners: 0.05 points of attainment, and 2 % of a quantile.
	attainmentNoise = 0.0005
	quantileNoise   = 1.02
)

// traffic is a recorded trace on a pool that carries it with few requests late.
type traffic struct {
	name     string
	profile  string
	replicas []int
	horizon  time.Duration
	slo      scenario.SLO
	hits     float64 // wanted, as a multiple of those of least-requests; 0: prompts share nothing
	// open sets the interactive traffic of a setup with its seed and replicas.
	open func(*testing.T, *simulator.Setup)
}

// TestRoutersOnTraces prints the table of docs/routing.md and checks that expected-load is never
// worse than least-requests: attainment and the 95th percentile of the time to the first token are
// within noise or better, and it finds twice as many prompt tokens in caches where users return.
//
//	TIDEFILL_TRACES=DIR go test -C simulator/lab ./routing -v
func TestRoutersOnTraces(t *testing.T) {
	dir := os.Getenv("TIDEFILL_TRACES")
	if dir == "" {
		t.Skip("no recorded traffic; TIDEFILL_TRACES names the folder of traces")
	}
	azure := readTrace(t, dir, "azure_conv_2023.csv.gz", workload.Azure)
	mooncake := readTrace(t, dir, "mooncake_conversation.jsonl.gz", workload.Mooncake)
	chat := scenario.SLO{TTFT: time.Second, TPOT: 40 * time.Millisecond}
	all := []traffic{
		{name: "mooncake", profile: "llama-70b-h100", replicas: []int{4, 8, 16},
			horizon: 30 * time.Minute, hits: 2,
			slo: scenario.SLO{TTFT: 2 * time.Second, TPOT: 60 * time.Millisecond},
			open: func(t *testing.T, s *simulator.Setup) {
				s.Trace = conversations(t, mooncake, 0.05*float64(s.Scenario.Pool.Replicas), s.Seed)
				s.Scenario.Interactive.Format = workload.Mooncake
			}},
		{name: "azure", profile: "llama-8b-a100", replicas: []int{4, 8, 16},
			horizon: 15 * time.Minute, slo: chat,
			open: func(t *testing.T, s *simulator.Setup) {
				s.Trace, s.Scenario.Interactive.Format = azure, workload.Azure
				s.Scenario.Interactive.Rate = 3 * float64(s.Scenario.Pool.Replicas)
			}},
	}
	for _, column := range []string{"m_small_rps", "m_large_rps"} {
		shape := readCurve(t, dir, "servegen_rate_10min_days0-6.csv", column)
		all = append(all, traffic{name: "servegen " + column, profile: "llama-8b-a100",
			replicas: []int{8}, horizon: 40 * time.Minute, slo: chat,
			open: func(t *testing.T, s *simulator.Setup) {
				s.Trace, s.Shape = azure, shape
				in := &s.Scenario.Interactive
				in.Format, in.Shape, in.ShapeColumn = workload.Azure, "rate.csv", column
				in.Rate = 3 * float64(s.Scenario.Pool.Replicas)
			}})
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "traffic\treplicas\trouter\tattainment\tTTFT p50\tp95\tp99 ms\tTPOT p50\t"+
		"p95\tp99 ms\tprefix hits")
	for _, x := range all {
		for _, n := range x.replicas {
			compareRouters(t, w, x, n)
		}
	}
	w.Flush()
	t.Logf("means of %d seeds\n%s", *seeds, table.String())
}

func compareRouters(t *testing.T, w *tabwriter.Writer, x traffic, replicas int) {
	mean := map[scenario.Router]simulator.Interactive{}
	for _, router := range []scenario.Router{scenario.RoundRobin, scenario.LeastRequests,
		scenario.ExpectedLoad} {
		var sum simulator.Interactive
		for seed := range *seeds {
			add(&sum, run(t, x, replicas, router, seed+1))
		}
		m := divide(sum, float64(*seeds))
		mean[router] = m
		fmt.Fprintf(w, "%s\t%d\t%s\t%.2f %%\t%.0f\t%.0f\t%.0f\t%.1f\t%.1f\t%.1f\t%.1f %%\n", x.name,
			replicas, router, 100*m.Attainment, m.TTFT.P50, m.TTFT.P95, m.TTFT.P99, m.TPOT.P50,
			m.TPOT.P95, m.TPOT.P99, 100*m.PrefixHitRate)
	}
	got, other := mean[scenario.ExpectedLoad], mean[scenario.LeastRequests]
	if got.Attainment < other.Attainment-attainmentNoise {
		t.Errorf("%s, %d replicas: attainment is %.4f, of least-requests %.4f", x.name, replicas,
			got.Attainment, other.Attainment)
	}
	if got.TTFT.P95 > quantileNoise*other.TTFT.P95 || got.TPOT.P95 > quantileNoise*other.TPOT.P95 {
		t.Errorf("%s, %d replicas: the 95th percentiles of TTFT and TPOT are %.0f and %.1f ms, of "+
			"least-requests %.0f and %.1f", x.name, replicas, got.TTFT.P95, got.TPOT.P95,
			other.TTFT.P95, other.TPOT.P95)
	}
	if got.PrefixHitRate < x.hits*other.PrefixHitRate {
		t.Errorf("%s, %d replicas: %.3f of prompts are in caches, of least-requests %.3f; want %v "+
			"times as much", x.name, replicas, got.PrefixHitRate, other.PrefixHitRate, x.hits)
	}
}

func run(
	t *testing.T, x traffic, replicas int, router scenario.Router, seed uint64,
) simulator.Interactive {
	t.Helper()
	s := simulator.Setup{Scenario: scenario.Default(), Seed: seed}
	s.Profile, _ = engine.ProfileNamed(x.profile)
	s.Scenario.Name, s.Scenario.Horizon = x.name, x.horizon
	s.Scenario.Pool.Profile, s.Scenario.Pool.Replicas = x.profile, replicas
	s.Scenario.Pool.Router = router
	in := &s.Scenario.Interactive
	in.Trace, in.SLO.TTFT, in.SLO.TPOT = x.name, x.slo.TTFT, x.slo.TPOT
	in.SLO.Attainment = 0.8 // the lowest that is allowed
	x.open(t, &s)
	q, err := simulator.RunNoBatch(s, func(float64) error { return nil })
	if unfit := (*simulator.UnfitError)(nil); errors.As(err, &unfit) {
		return unfit.Got
	} else if err != nil {
		t.Fatal(err)
	}
	return q.Interactive
}

// conversations returns a share of a trace's conversations, with all of their requests. Without all
// turns, fewer prompts would begin like earlier ones. The first block does not tell conversations
// apart, since it is the same in all of the trace.
func conversations(t *testing.T, trace *workload.Trace, share float64, seed uint64,
) *workload.Trace {
	t.Helper()
	var kept []workload.Arrival
	for a := range workload.All(trace.Arrivals()) {
		// A place's weight is a hash of the second block and the place.
		if weight, ok := a.Affinity(int(seed)); ok && float64(weight>>11)/(1<<53) < share {
			kept = append(kept, a)
		}
	}
	thinned, err := workload.NewTrace(trace.Name(), kept, trace.Span())
	if err != nil {
		t.Fatal(err)
	}
	return thinned
}

func add(sum *simulator.Interactive, x simulator.Interactive) {
	sum.Attainment += x.Attainment
	sum.PrefixHitRate += x.PrefixHitRate
	addQuantiles(&sum.TTFT, x.TTFT)
	addQuantiles(&sum.TPOT, x.TPOT)
}

func addQuantiles(sum *simulator.Quantiles, x simulator.Quantiles) {
	sum.P50, sum.P95, sum.P99 = sum.P50+x.P50, sum.P95+x.P95, sum.P99+x.P99
}

func divide(x simulator.Interactive, n float64) simulator.Interactive {
	x.Attainment, x.PrefixHitRate = x.Attainment/n, x.PrefixHitRate/n
	for _, q := range []*simulator.Quantiles{&x.TTFT, &x.TPOT} {
		q.P50, q.P95, q.P99 = q.P50/n, q.P95/n, q.P99/n
	}
	return x
}

func readTrace(t *testing.T, dir, name string, format workload.Format) *workload.Trace {
	t.Helper()
	in, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	trace, err := workload.Read(name, format, in)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func readCurve(t *testing.T, dir, name, column string) *workload.Curve {
	t.Helper()
	in, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	curve, err := workload.ReadCurve(name, in, column)
	if err != nil {
		t.Fatal(err)
	}
	return curve
}
