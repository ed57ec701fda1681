package workload

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// distinctTrace is a trace of few requests with different lengths.
func distinctTrace(t rapid.TB, n int, span time.Duration) *Trace {
	tr := &Trace{name: "small", span: span}
	for i := range n {
		tr.arrivals = append(tr.arrivals, Arrival{
			At:      span * time.Duration(i) / time.Duration(n),
			Request: Request{Input: i + 1, Output: 1, Prefix: []uint64{uint64(i)}, Segment: 16},
		})
	}
	return tr
}

func TestResampledTraceIsRotatedNeverStretched(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "requests")
		tr := distinctTrace(t, n, 30*time.Second)
		copies := rapid.IntRange(1, 4).Draw(t, "copies")
		resampled, err := NewResampledTrace(ResampleConfig{Trace: tr, Rate: float64(
			copies) * tr.Rate(),
			Length: 3 * tr.Span(), Seed: Seed(rapid.Uint64().Draw(t, "seed"))})
		if err != nil || resampled.Copies() != copies {
			t.Fatalf("%d copies, want %d; %v", resampled.Copies(), copies, err)
		}
		// At a multiple of the trace's rate nothing is thinned out: each copy has
		// each request once a tile, with its own lengths.
		count := map[[3]int]int{}
		offset := map[[2]int]time.Duration{}
		last := time.Duration(0)
		for a := range All(resampled.Arrivals()) {
			if a.At < last || a.At >= 3*tr.Span() {
				t.Fatalf("at %v after %v", a.At, last)
			}
			last = a.At
			i, copy := int(a.Prefix[0]&(1<<copyBits-1)), int(a.Prefix[0]>>copyBits)
			tile := int(a.At / tr.Span())
			source := tr.arrivals[i]
			if a.Input != source.Input || a.Output != source.Output || a.Segment != source.Segment {
				t.Fatalf("request %d became %+v", i, a)
			}
			count[[3]int{copy, tile, i}]++
			turned := (a.At%tr.Span() - source.At + tr.Span()) % tr.Span()
			if first, seen := offset[[2]int{copy, tile}]; seen && first != turned {
				t.Fatalf("copy %d, tile %d is rotated by %v and by %v", copy, tile, first, turned)
			}
			offset[[2]int{copy, tile}] = turned
		}
		if len(count) != 3*copies*n {
			t.Fatalf("%d different requests, want %d", len(count), 3*copies*n)
		}
	})
}

func TestResampledTraceFollowsItsShape(t *testing.T) {
	tr, _ := azureTrace(t)
	week := curveFile(t, "m_small_rps")
	shape, err := week.cut(24*time.Hour, 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	resampled := newDay(t, ResampleConfig{Trace: tr, Shape: shape, Rate: 8, Length: 24 * time.Hour,
		Seed: 1,
		Name: "chat"})
	h := resampled.Fidelity()
	if want := int(math.Ceil(8 * shape.highest() / tr.Rate())); h.Copies != want {
		t.Errorf("%d copies, want %d", h.Copies, want)
	}
	if math.Abs(h.Requested-8) > 1e-6 || math.Abs(h.Measured/h.Requested-1) > 0.01 {
		t.Errorf("asked %v and got %v requests a second", h.Requested, h.Measured)
	}
	for i := range Windows {
		source, result := h.Source.Dispersion[i], h.Result.Dispersion[i]
		keep := h.Measured / (float64(h.Copies) * tr.Rate())
		thinned := 1 + keep*(source.VarMean-1)
		t.Logf(
			"over %-5v source %.2f, resampled %.2f, resampled around its rate %.2f, thinning "+
				"alone would leave %.2f",
			source.Window, source.VarMean, result.VarMean, result.AroundRate, thinned)
		if result.AroundRate < 1 || math.Abs(result.AroundRate/thinned-1) > 0.25 {
			t.Errorf("over %v: dispersion around the rate is %v, want about %v", source.Window,
				result.AroundRate, thinned)
		}
	}
	if math.Abs(h.Result.MeanInput/h.Source.MeanInput-1) > 0.01 ||
		math.Abs(h.Result.MeanOutput/h.Source.MeanOutput-1) > 0.01 {
		t.Errorf("mean lengths went from %v, %v to %v, %v", h.Source.MeanInput, h.Source.MeanOutput,
			h.Result.MeanInput, h.Result.MeanOutput)
	}
	hours := make([]float64, 24)
	for a := range All(resampled.Arrivals()) {
		hours[a.At/time.Hour] += 1.0 / 3600
	}
	for hour, got := range hours {
		want := 0.0
		for minute := range 60 {
			want += resampled.Rate(time.Duration(hour)*time.Hour+time.Duration(
				minute)*time.Minute) / 60
		}
		if math.Abs(got/want-1) > 0.1 {
			t.Errorf("hour %d has %.2f requests a second, want about %.2f", hour, got, want)
		}
	}
}

func TestReuseStaysWithinACopy(t *testing.T) {
	tr, _ := mooncakeTrace(t)
	resampled := newDay(t, ResampleConfig{Trace: tr, Rate: 2 * tr.Rate(), Length: 30 * time.Minute,
		Seed: 3})
	crowd := resampled.Independent(0)
	seen := map[uint64]map[uint64]bool{}
	for a := range All(Merge(resampled.Arrivals(), crowd)) {
		for _, id := range a.Prefix {
			low := id & (1<<copyBits - 1)
			if seen[low] == nil {
				seen[low] = map[uint64]bool{}
			}
			seen[low][id>>copyBits] = true
		}
	}
	if spaces := seen[0]; len(spaces) != 4 {
		t.Errorf("the common prefix stands in %d spaces, want 2 copies and 2 of the crowd",
			len(spaces))
	}
}

func TestNewResampledTraceRefuses(t *testing.T) {
	tr := distinctTrace(t, 3, time.Minute)
	read := func(rows string) *Trace {
		tr, err := Read("day.csv", CSV, strings.NewReader("t_s,input_tokens,output_tokens\n"+rows))
		if err != nil {
			t.Fatal(err)
		}
		return tr
	}
	for _, c := range []struct {
		cfg  ResampleConfig
		want string
	}{
		{ResampleConfig{Rate: 1, Length: 1}, "no source trace"},
		{ResampleConfig{Trace: tr, Rate: -1, Length: 1}, "rate is -1"},
		{ResampleConfig{Trace: tr, Rate: math.NaN(), Length: 1}, "rate is NaN"},
		{ResampleConfig{Trace: tr, Rate: 1}, "length is 0s"},
		{ResampleConfig{Trace: tr, Rate: 1e6, Length: 1}, "use a busier trace"},
		{ResampleConfig{Trace: read("7,10,10\n"), Rate: 5, Length: time.Hour},
			"trace day.csv all come within 1ns"},
		{ResampleConfig{Trace: read("7,10,10\n7,20,10\n"), Rate: 5, Length: time.Hour},
			"trace day.csv all come within 1ns"},
	} {
		if _, err := NewResampledTrace(c.cfg); err == nil || !strings.Contains(err.Error(),
			c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestCurve(t *testing.T) {
	const text = "t_s,a,b\n0,0,7\n10,4,7\n30,2,7\n"
	c, err := ReadCurve("f", strings.NewReader(text), "a")
	if err != nil {
		t.Fatal(err)
	}
	// Areas 20, 60 and, back to the first over another 20 s, 20: mean 2.
	if c.Period() != 50*time.Second || c.highest() != 2 {
		t.Errorf("period %v, maximum %v", c.Period(), c.highest())
	}
	for s, want := range map[int]float64{0: 0, 5: 1, 10: 2, 20: 1.5, 30: 1, 40: 0.5, 50: 0, 55: 1,
		-10: 0.5} {
		if got := c.At(time.Duration(s) * time.Second); math.Abs(got-want) > 1e-12 {
			t.Errorf("at %d s: %v, want %v", s, got, want)
		}
	}
	if got := c.meanUntil(60 * time.Second); math.Abs(got-1) > 1e-12 {
		t.Errorf("mean over 60 s is %v, want 1", got)
	}
	cut, err := c.cut(5*time.Second, 15*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []int{0, 3, 5, 10, 14} {
		at := time.Duration(s) * time.Second
		if got, want := cut.At(at)/cut.At(0), c.At(at+5*time.Second)/c.At(5*time.Second); math.Abs(
			got-want) > 1e-9 {
			t.Errorf("cut at %d s is %v of its beginning, want %v", s, got, want)
		}
	}
	if math.Abs(cut.meanUntil(cut.Period())-1) > 1e-9 {
		t.Errorf("cut has mean %v", cut.meanUntil(cut.Period()))
	}
}

func TestReadCurveRefusesWithNameAndLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "f:1: the file is empty",
		"t,a\n":                        `f:1: column "t_s" is missing`,
		"t_s,b,c\n":                    `f:1: no rate column "a", the file has b, c`,
		"t_s,a\n":                      "a rate curve needs at least two rows",
		"t_s,a\n1,1\n2,2\n":            `f:2: t_s is "1": want the first time to be 0`,
		"t_s,a\n0,1\n0,2\n":            `f:3: t_s is "0": want times that increase`,
		"t_s,a\n0,1\n9,-2\n":           `f:3: a is "-2": want a finite rate`,
		"t_s,a\n0,1\n9,Inf\n":          `f:3: a is "Inf": want a finite rate`,
		"t_s,a\n0,0\n9,0\n":            "all rates are 0",
		zipped("t_s,a\n0,1\n9,2\n", 9): "broken gzip",
	} {
		if _, err := ReadCurve("f", strings.NewReader(text), "a"); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestShapesFitThePublished(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(Seed) *Curve
		// deviation of the logarithm from point to point; correlation with yesterday
		step, sameTime    float64
		stepOff, timesOff float64
	}{
		{"diurnal", func(s Seed) *Curve {
			return Diurnal(7, s.Rand("shape"))
		}, 0.076, 0.76, 0.006, 0.08},
		{"wandering", func(s Seed) *Curve {
			return Wandering(7, s.Rand("shape"))
		}, 0.133, 0.02, 0.01, 0.1},
	} {
		const seeds = 10
		step, sameTime := 0.0, 0.0
		for seed := range Seed(seeds) {
			v := c.make(seed).value
			squares := 0.0
			for i := 1; i < len(v); i++ {
				squares += math.Pow(math.Log(v[i]/v[i-1]), 2)
			}
			step += math.Sqrt(squares/float64(len(v)-1)) / seeds
			sameTime += correlation(v[:len(v)-144], v[144:]) / seeds
		}
		t.Logf("%s: step %.3f, correlation with yesterday %.2f", c.name, step, sameTime)
		if math.Abs(step-c.step) > c.stepOff || math.Abs(sameTime-c.sameTime) > c.timesOff {
			t.Errorf("%s: step %.3f and correlation with yesterday %.2f, want %v and %v", c.name,
				step, sameTime, c.step, c.sameTime)
		}
	}
	mean := make([]float64, 24)
	for seed := range Seed(20) {
		c := Diurnal(1, seed.Rand("shape"))
		for h := range mean {
			mean[h] += c.At(time.Duration(h)*time.Hour+30*time.Minute) / 20
		}
	}
	if low, high := slices.Min(mean), slices.Max(mean); math.Abs(low-0.62) > 0.06 ||
		math.Abs(high-1.47) > 0.1 || mean[4] > 0.72 || mean[20] < 1.35 {
		t.Errorf("hours of the resampled: %s", fmt.Sprint(mean))
	}
}

func correlation(x, y []float64) float64 {
	mx, my := 0.0, 0.0
	for i := range x {
		mx += x[i] / float64(len(x))
		my += y[i] / float64(len(y))
	}
	xy, xx, yy := 0.0, 0.0, 0.0
	for i := range x {
		xy += (x[i] - mx) * (y[i] - my)
		xx += (x[i] - mx) * (x[i] - mx)
		yy += (y[i] - my) * (y[i] - my)
	}
	return xy / math.Sqrt(xx*yy)
}

// cut returns a part of the curve as a curve of its own, with mean 1 again: a day of a week. It may
// jump where it repeats.
func (c *Curve) cut(from, length time.Duration) (*Curve, error) {
	if from < 0 || length <= 0 || from+length > c.period {
		return nil, fmt.Errorf("cut %v from %v of a rate curve: it is %v long", length, from,
			c.period)
	}
	at, value := []time.Duration{0}, []float64{c.At(from)}
	for i, t := range c.at {
		if t > from && t < from+length {
			at, value = append(at, t-from), append(value, c.value[i])
		}
	}
	if end := length - 1; end > at[len(at)-1] {
		at, value = append(at, end), append(value, c.At(from+end))
	}
	return NewCurve(at, value, length)
}
