package workload

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func backlog(t testing.TB, kind string, seed Seed) *Job {
	t.Helper()
	k, err := LookupKind(kind)
	if err != nil {
		t.Fatal(err)
	}
	list, err := List(seed, Job{Name: kind, Lines: Backlog, Kind: k})
	if err != nil {
		t.Fatal(err)
	}
	job, _ := list.Next()
	return job
}

func TestKindsHaveTheirStatistics(t *testing.T) {
	for _, c := range []struct {
		kind                string
		inMedian, outMedian int
		inMean, outMean     float64
		maxInput, maxOutput int
		minInput, minOutput int
	}{
		{"gen", 55, 1500, 59.6, 2186, 0, 6144, 0, 0},
		{"score", 707, 5, 707, 5, 707, 5, 707, 5},
		{"bal", 700, 200, 940, 252, 8000, 2000, 0, 0},
	} {
		job := backlog(t, c.kind, 1)
		var in, out []int
		inSum, outSum := 0, 0
		const n = 100_000
		for i := range n {
			r := job.Line(i)
			in, out = append(in, r.Input), append(out, r.Output)
			inSum += r.Input
			outSum += r.Output
		}
		slices.Sort(in)
		slices.Sort(out)
		near := func(what string, got, want float64) {
			if math.Abs(got/want-1) > 0.03 {
				t.Errorf("%s: %s is %v, want %v", c.kind, what, got, want)
			}
		}
		near("median input", float64(in[n/2]), float64(c.inMedian))
		near("median output", float64(out[n/2]), float64(c.outMedian))
		near("mean input", float64(inSum)/n, c.inMean)
		near("mean output", float64(outSum)/n, c.outMean)
		if in[0] < max(1, c.minInput) || out[0] < max(1, c.minOutput) ||
			c.maxInput > 0 && in[n-1] != c.maxInput || c.maxOutput > 0 &&
			out[n-1] != c.maxOutput {
			t.Errorf("%s: input from %d to %d, output from %d to %d", c.kind, in[0], in[n-1],
				out[0], out[n-1])
		}
	}
}

func TestMixIsAQuarterAQuarterAHalf(t *testing.T) {
	job := backlog(t, "mix", 1)
	const n = 40_000
	scores := 0
	for i := range n {
		if r := job.Line(i); r.Input == 707 && r.Output == 5 {
			scores++
		}
	}
	if share := float64(scores) / n; math.Abs(share-0.25) > 0.01 {
		t.Errorf("%.3f of the lines score, want a quarter", share)
	}
}

func TestLinesDependOnJobAndNumberAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(Kinds()).Draw(t, "kind")
		seed := Seed(rapid.Uint64().Draw(t, "seed"))
		get := func(jobs ...Job) *Job {
			list, err := List(seed, jobs...)
			if err != nil {
				t.Fatal(err)
			}
			for {
				if j, ok := list.Next(); !ok || j.Name == "x" {
					return j
				}
			}
		}
		x := Job{Name: "x", At: time.Hour, Lines: 100, Kind: kind}
		alone, among := get(x), get(Job{Name: "y", At: 2 * time.Hour, Lines: 3, Kind: kind}, x)
		for range 10 {
			i := rapid.IntRange(0, 99).Draw(t, "line")
			a, b := alone.Line(i), among.Line(i)
			if a.Input != b.Input || a.Output != b.Output || !slices.Equal(a.Blocks(nil, 16),
				b.Blocks(nil, 16)) {
				t.Fatalf("line %d is %+v and %+v", i, a, b)
			}
		}
	})
}

func TestSharedScoringSharesWithinAJob(t *testing.T) {
	kind, _ := LookupKind("score-shared")
	list, err := List(1, Job{Name: "a", Lines: 2, Kind: kind}, Job{Name: "b", Lines: 2, Kind: kind})
	if err != nil {
		t.Fatal(err)
	}
	a, _ := list.Next()
	b, _ := list.Next()
	first, second, other := a.Line(0).Blocks(nil, 16), a.Line(1).Blocks(nil, 16),
		b.Line(0).Blocks(nil, 16)
	if len(first) != 671/16 || !slices.Equal(first, second) || first[0] == other[0] {
		t.Errorf("blocks %v, %v and of the other job %v", first, second, other)
	}
}

func TestListOrdersAndRefuses(t *testing.T) {
	kind := Kinds()[0]
	list, err := List(1, Job{Name: "late", At: 2, Lines: 1, Kind: kind},
		Job{Name: "early", At: 1, Window: 5, Lines: 1, Kind: kind},
		Job{Name: "too", At: 1, Lines: 1, Kind: kind})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for {
		j, ok := list.Next()
		if !ok {
			break
		}
		names = append(names, j.Name)
		if deadline, has := j.Deadline(); has != (j.Name == "early") || has && deadline != 6 {
			t.Errorf("%s: deadline %v, %v", j.Name, deadline, has)
		}
	}
	if !slices.Equal(names, []string{"early", "too", "late"}) {
		t.Errorf("order %v", names)
	}
	for want, jobs := range map[string][]Job{
		"job 1 has no name": {{Lines: 1, Kind: kind}},
		`two jobs are named "a"`: {{Name: "a", Lines: 1, Kind: kind},
			{Name: "a", Lines: 1, Kind: kind}},
		"want 0 or more":       {{Name: "a", At: -1, Lines: 1, Kind: kind}},
		"0 lines":              {{Name: "a", Kind: kind}},
		"no part has a weight": {{Name: "a", Lines: 1}},
		"want a median from 1": {{Name: "a", Lines: 1, Kind: Kind{"k", []Part{{Weight: 1}}}}},
		"a share from 0 to 1": {{Name: "a", Lines: 1,
			Kind: Kind{"k", []Part{{1, Length{Median: 1}, Length{Median: 1}, 2}}}}},
		"a sigma from 0 to 10": {{Name: "a", Lines: 1,
			Kind: Kind{"k", []Part{{1, Length{1, math.NaN(), 0}, Length{Median: 1}, 0}}}}},
		"window of 2562047h47m1": {{Name: "a", At: 1, Window: math.MaxInt64, Lines: 1, Kind: kind}},
	} {
		if _, err := List(1, jobs...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestGeneratedJobs(t *testing.T) {
	jobs, err := Generate(DefaultJobs(1, 60))
	if err != nil {
		t.Fatal(err)
	}
	const n = 20_000
	var last time.Duration
	kinds, windows := map[string]float64{}, map[time.Duration]float64{}
	var lines []int
	for range n {
		j, _ := jobs.Next()
		if j.At < last {
			t.Fatalf("job %s at %v after %v", j.Name, j.At, last)
		}
		last = j.At
		kinds[j.Kind.Name] += 1.0 / n
		windows[j.Window] += 1.0 / n
		lines = append(lines, j.Lines)
	}
	slices.Sort(lines)
	near := func(what string, got, want float64) {
		if math.Abs(got/want-1) > 0.06 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	near("jobs an hour", n/last.Hours(), 60)
	near("gen", kinds["gen"], 0.25)
	near("score", kinds["score"], 0.25)
	near("bal", kinds["bal"], 0.5)
	near("a day", windows[24*time.Hour], 0.6)
	near("four hours", windows[4*time.Hour], 0.25)
	near("an hour", windows[time.Hour], 0.15)
	near("median lines", float64(lines[n/2]), 5000)
	near("longest", float64(lines[n-1]), 50_000)
	if lines[0] < 1 {
		t.Errorf("a job has %d lines", lines[0])
	}

	for want, change := range map[string]func(*JobsConfig){
		"-1 an hour":        func(c *JobsConfig) { c.PerHour = -1 },
		"at least one kind": func(c *JobsConfig) { c.Kinds = nil },
		"window of -1s":     func(c *JobsConfig) { c.Windows[0].Value = -time.Second },
		"median and bounds": func(c *JobsConfig) { c.Max = 0 },
		"no negative weight": func(c *JobsConfig) {
			c.Kinds[0].Value.Parts = []Part{{Weight: -1, Input: Length{Median: 1}, Output: Length{
				Median: 1}}}
		},
	} {
		cfg := DefaultJobs(1, 60)
		change(&cfg)
		if _, err := Generate(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func BenchmarkLine(b *testing.B) {
	list, err := List(1, Job{Name: "a", Lines: Backlog, Kind: Kinds()[4]})
	if err != nil {
		b.Fatal(err)
	}
	job, _ := list.Next()
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		job.Line(i)
		i++
	}
}
