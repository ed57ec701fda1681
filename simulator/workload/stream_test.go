package workload

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func steady(gap time.Duration, n int, class string) Stream {
	i := 0
	return Func(func() (Arrival, bool) {
		if i == n {
			return Arrival{}, false
		}
		i++
		return Arrival{At: time.Duration(i-1) * gap, Class: class, Request: Request{
			Input: 100, Output: i}}, true
	})
}

func TestMergeIsAStableSort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var streams []Stream
		var want []Arrival
		for i := range rapid.IntRange(0, 5).Draw(t, "streams") {
			gap := time.Duration(rapid.IntRange(0, 4).Draw(t, "gap"))
			n := rapid.IntRange(0, 20).Draw(t, "arrivals")
			streams = append(streams, steady(gap, n, fmt.Sprint(i)))
			want = append(want, collect(steady(gap, n, fmt.Sprint(i)))...)
		}
		slices.SortStableFunc(want, func(a, b Arrival) int { return int(a.At - b.At) })
		merged := Merge(streams...)
		got := collect(merged)
		if !slices.EqualFunc(got, want, func(a, b Arrival) bool {
			return a.At == b.At && a.Class == b.Class && a.Output == b.Output
		}) {
			t.Fatalf("got %v, want %v", got, want)
		}
		if _, ok := merged.Next(); ok {
			t.Fatal("an ended stream went on")
		}
	})
}

func TestBlocksAreSharedAsFarAsNamesAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		segment := rapid.IntRange(1, 70).Draw(t, "segment")
		common := rapid.IntRange(0, 5).Draw(t, "common")
		request := func(own uint64) Request {
			r := Request{Input: rapid.IntRange(1, 600).Draw(t, "input"), Segment: segment}
			for i := range rapid.IntRange(0, 8).Draw(t, "names") {
				name := uint64(i)
				if i >= common {
					name += own << 20
				}
				r.Prefix = append(r.Prefix, name)
			}
			return r
		}
		a, b := request(1), request(2)
		x, y := a.Blocks(nil, 16), b.Blocks(nil, 16)
		for _, c := range []struct {
			r      Request
			blocks []uint64
		}{{a, x}, {b, y}} {
			if want := min(c.r.Input, len(c.r.Prefix)*segment) / 16; len(c.blocks) != want {
				t.Fatalf("%+v has %d blocks, want %d", c.r, len(c.blocks), want)
			}
		}
		shared := 0
		for shared < min(len(x), len(y)) && x[shared] == y[shared] {
			shared++
		}
		agree := min(common, len(a.Prefix), len(b.Prefix)) * segment
		if want := min(agree/16, len(x), len(y)); shared != want {
			t.Fatalf("%+v and %+v share %d blocks, want %d", a, b, shared, want)
		}
	})
	huge := Request{Input: 32, Prefix: []uint64{1, 2}, Segment: math.MaxInt}
	if n := len(huge.Blocks(nil, 16)); n != 2 {
		t.Errorf("a segment beyond the prompt gives %d blocks, want 2", n)
	}
}

func TestOneNameCoversDifferentLengths(t *testing.T) {
	short := Request{Input: 100, Prefix: []uint64{5}, Segment: 50}.Blocks(nil, 16)
	long := Request{Input: 200, Prefix: []uint64{5}, Segment: 150}.Blocks(nil, 16)
	if len(short) != 3 || len(long) != 9 || !slices.Equal(short, long[:3]) {
		t.Errorf("blocks %v and %v", short, long)
	}
}

func TestAddSurgesMultipliesTrafficInItsSpan(t *testing.T) {
	base := generator(t, Conversation(), 1)
	surges := []Surge{
		{From: 10 * time.Minute, Length: 20 * time.Minute, Factor: 3},
		{From: 40 * time.Minute, Length: 20 * time.Minute, Factor: 1.5},
	}
	s, err := AddSurges(Until(base.Arrivals(), time.Hour), base.Independent, dice(1), surges...)
	if err != nil {
		t.Fatal(err)
	}
	count := func(s Stream) (in [3]float64) {
		for a := range All(s) {
			switch {
			case a.At >= 10*time.Minute && a.At < 30*time.Minute:
				in[1]++
			case a.At >= 40*time.Minute:
				in[2]++
			default:
				in[0]++
			}
		}
		return in
	}
	got, plain := count(s), count(Until(base.Arrivals(), time.Hour))
	if got[0] != plain[0] {
		t.Errorf("outside the surges %v arrivals became %v", plain[0], got[0])
	}
	if more := got[1] / plain[1]; more < 2.6 || more > 3.4 {
		t.Errorf("x3 gave x%.2f", more)
	}
	if more := got[2] / plain[2]; more < 1.35 || more > 1.65 {
		t.Errorf("x1.5 gave x%.2f", more)
	}
	if _, err := AddSurges(s, base.Independent, dice(1),
		Surge{Length: 1, Factor: 0.5}); err == nil {
		t.Error("a factor below 1 was taken")
	}
}

func TestRetimeReachesItsTarget(t *testing.T) {
	tr, _ := azureTrace(t)
	rate := func(time.Duration) float64 { return tr.Rate() }
	for _, target := range []float64{1, 4, 70} {
		got := 0.0
		const seeds = 60
		for seed := range uint64(seeds) {
			s, err := Retime(tr.Arrivals(), Timing{Rate: rate, Reference: tr.Rate(),
				Window: 10 * time.Second, VarMean: target}, dice(seed))
			if err != nil {
				t.Fatal(err)
			}
			// Not to the end, which is earlier the busier the source was.
			got += Measure(s, tr.Span()*2/3, rate).Dispersion[1].AroundRate / seeds
		}
		t.Logf("target %v: %.2f", target, got)
		if math.Abs(got/target-1) > 0.08 {
			t.Errorf("variance/mean is %.2f, want %v", got, target)
		}
	}
	whole, err := Retime(tr.Arrivals(), Timing{Rate: rate, Reference: tr.Rate(),
		Window: 10 * time.Second, VarMean: 70}, dice(1))
	if err != nil {
		t.Fatal(err)
	}
	retimed, original := collect(whole), collect(tr.Arrivals())
	if !slices.EqualFunc(retimed, original, func(a, b Arrival) bool {
		return a.Input == b.Input && a.Output == b.Output
	}) {
		t.Error("the requests, or their order, are not those of the source")
	}
	if _, err := Retime(tr.Arrivals(), Timing{Rate: rate, Reference: 1, Window: time.Second,
		VarMean: 0.5}, dice(1)); err == nil {
		t.Error("a target below 1 was taken")
	}
	none, err := Retime(tr.Arrivals(), Timing{Rate: func(time.Duration) float64 { return 0 },
		Reference: 1, Window: time.Second, VarMean: 1}, dice(1))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := none.Next(); ok {
		t.Error("an arrival came at rate 0")
	}
}

func TestScaleShareAndDropPrefixes(t *testing.T) {
	grow := Ramp{From: 10 * time.Second, To: 20 * time.Second, Before: 1, After: 2.5}
	cold := Ramp{From: 30 * time.Second, To: 30 * time.Second, Before: 0, After: 1}
	s := DropPrefixes(SharePrefixes(ScalePrompts(steady(time.Second, 40, ""), grow), 0.5, 2,
		dice(1)), cold, dice(2))
	names := map[uint64]bool{}
	for a := range All(s) {
		want := int(math.Round(100 * grow.At(a.At)))
		if a.Input != want {
			t.Errorf("at %v the prompt has %d tokens, want %d", a.At, a.Input, want)
		}
		switch {
		case a.At >= 30*time.Second:
			if a.Prefix != nil {
				t.Errorf("at %v there is still a prefix", a.At)
			}
		case a.Segment != a.Input/2 || len(a.Prefix) != 1:
			t.Errorf("at %v the prefix is %d tokens of %d", a.At, a.Segment, a.Input)
		default:
			names[a.Prefix[0]] = true
		}
	}
	if len(names) != 2 {
		t.Errorf("%d groups, want 2", len(names))
	}
	if got := grow.At(15 * time.Second); got != 1.75 {
		t.Errorf("half way the ramp is at %v", got)
	}
}

func TestUntilDoesNotPullBeyond(t *testing.T) {
	pulled := 0
	s := Until(Func(func() (Arrival, bool) {
		pulled++
		return Arrival{At: time.Duration(pulled)}, true
	}), 3)
	if n := len(collect(s)); n != 2 || pulled != 3 {
		t.Errorf("%d arrivals of %d pulled", n, pulled)
	}
	if _, ok := s.Next(); ok || pulled != 3 {
		t.Errorf("an ended stream was pulled: %d", pulled)
	}
}

func TestOffsetsOfPrefixesLeaveTheSourceAlone(t *testing.T) {
	tr := distinctTrace(t, 4, time.Minute)
	a, b := collect(tr.Arrivals()), collect(offsetPrefixes(tr.Arrivals(), 7<<copyBits))
	for i := range a {
		if a[i].Prefix[0] != uint64(i) || b[i].Prefix[0] != uint64(i)+7<<copyBits {
			t.Errorf("names %v and %v", a[i].Prefix, b[i].Prefix)
		}
	}
}

// The same bytes on any machine: sums over everything in a stream.
func TestStreamsAreTheSameEverywhere(t *testing.T) {
	until := 20 * time.Minute
	shape := Diurnal(1, dice(5))
	chat, err := NewGenerator(GeneratorConfig{Population: Conversation(), Shape: shape, Rate: 9,
		Seed: 7, Name: "chat"})
	if err != nil {
		t.Fatal(err)
	}
	tr := trace(t, "hour", Until(generator(t, LongConversation(), 3).Arrivals(), until))
	day := newDay(t, ResampleConfig{Trace: tr, Shape: shape, Rate: 5, Length: until, Seed: 8})
	retimed, err := Retime(chat.Arrivals(), Timing{Rate: chat.Rate, Reference: 9,
		Window: 10 * time.Second, VarMean: 70}, dice(6))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		s    Stream
		want uint64
	}{
		{"generator", chat.Arrivals(), 0x9e46b71451917d67},
		{"long conversation", tr.Arrivals(), 0x33774c2c05e5a65d},
		{"day", day.Arrivals(), 0xa6368f75eecb79e5},
		{"retimed", retimed, 0xebcde7671df10eee},
		{"wandering", Func(func() func() (Arrival, bool) {
			c, i := Wandering(7, dice(9)), -1
			return func() (Arrival, bool) {
				i++
				return Arrival{Request: Request{
					Input: int(math.Float64bits(c.value[i%len(c.value)]))}}, i < len(c.value)
			}
		}()), 0x3f68cccee9e2398d},
	} {
		if got := digest(Until(c.s, until)); got != c.want {
			t.Errorf("%s: digest is %#x, want %#x", c.name, got, c.want)
		}
	}
}

func digest(s Stream) uint64 {
	h := fnv.New64a()
	for a := range All(s) {
		io.WriteString(h, a.Class)
		for _, x := range append([]uint64{uint64(a.At), uint64(a.Input), uint64(a.Output),
			uint64(a.Segment)}, a.Prefix...) {
			h.Write(binary.BigEndian.AppendUint64(nil, x))
		}
	}
	return h.Sum64()
}

func TestStreamsRepeat(t *testing.T) {
	g := generator(t, LongConversation(), 1)
	other := generator(t, LongConversation(), 2)
	hour := func(s Stream) uint64 { return digest(Until(s, time.Hour)) }
	if first, again := hour(g.Arrivals()), hour(g.Arrivals()); first != again {
		t.Error("the same generator gave two results")
	}
	if hour(g.Arrivals()) == hour(other.Arrivals()) ||
		hour(g.Arrivals()) == hour(g.Independent(0)) ||
		hour(g.Independent(0)) == hour(g.Independent(1)) {
		t.Error("two generators gave the same result")
	}
}

func BenchmarkGenerator(b *testing.B) {
	for _, p := range Populations {
		b.Run(p().Name, func(b *testing.B) {
			s := generator(b, p(), 1).Arrivals()
			b.ReportAllocs()
			for b.Loop() {
				s.Next()
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "arrivals/s")
		})
	}
}

func BenchmarkDay(b *testing.B) {
	tr, _ := azureTrace(b)
	day := newDay(b, ResampleConfig{Trace: tr, Shape: curveFile(b, "m_small_rps"), Rate: 30,
		Length: 1 << 60, Seed: 1})
	s := day.Arrivals()
	b.ReportAllocs()
	for b.Loop() {
		s.Next()
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "arrivals/s")
}
