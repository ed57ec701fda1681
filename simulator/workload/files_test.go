package workload

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// traceFile reads a recorded trace from the folder TIDEFILL_TRACES, or else what a fixture writes,
// which has the same columns and much the same statistics. It reports which.
func traceFile(t testing.TB, name string, fixture func() []byte) (data []byte, recorded bool) {
	t.Helper()
	folder := os.Getenv("TIDEFILL_TRACES")
	if folder == "" {
		t.Logf("TIDEFILL_TRACES is not set; a fixture takes the place of %s", name)
		return fixture(), false
	}
	data, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return data, true
}

func azureTrace(t testing.TB) (*Trace, bool) {
	t.Helper()
	data, recorded := traceFile(t, "azure_conv_2023.csv.gz", func() []byte {
		var b bytes.Buffer
		fmt.Fprintln(&b, "t_s,input_tokens,output_tokens")
		for a := range All(Until(generator(t, Conversation(), 99).Arrivals(), time.Hour)) {
			fmt.Fprintf(&b, "%.4f,%d,%d\n", a.At.Seconds(), a.Input, a.Output)
		}
		return b.Bytes()
	})
	return read(t, Azure, data), recorded
}

func mooncakeTrace(t testing.TB) (*Trace, bool) {
	t.Helper()
	data, recorded := traceFile(t, "mooncake_conversation.jsonl.gz", func() []byte {
		var b bytes.Buffer
		for a := range All(Until(generator(t, LongConversation(), 99).Arrivals(), time.Hour)) {
			tick := a.At.Truncate(mooncakeTick).Milliseconds()
			fmt.Fprintf(
				&b, `{"timestamp": %d, "input_length": %d, "output_length": %d, "hash_ids": [`,
				tick, a.Input, a.Output)
			for i, id := range a.Prefix {
				if i > 0 {
					b.WriteString(", ")
				}
				fmt.Fprint(&b, id)
			}
			fmt.Fprintln(&b, "]}")
		}
		return b.Bytes()
	})
	return read(t, Mooncake, data), recorded
}

func curveFile(t testing.TB, column string) *Curve {
	t.Helper()
	data, _ := traceFile(t, "servegen_rate_10min_days0-6.csv", func() []byte {
		var b bytes.Buffer
		fmt.Fprintln(&b, "t_s,m_small_rps,m_large_rps")
		small, large := Diurnal(7, Seed(1).Rand("small")), Wandering(7, Seed(1).Rand("large"))
		for s := time.Duration(0); s < small.Period(); s += shapeStep {
			fmt.Fprintf(&b, "%d,%.3f,%.3f\n", int(s.Seconds()), 1063*small.At(s), 210*large.At(s))
		}
		return b.Bytes()
	})
	c, err := ReadCurve("curve.csv", bytes.NewReader(data), column)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func read(t testing.TB, format Format, data []byte) *Trace {
	t.Helper()
	trace, err := Read(string(format), format, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func generator(t testing.TB, p Population, seed Seed) *Generator {
	t.Helper()
	g, err := NewGenerator(GeneratorConfig{Population: p, Seed: seed, Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func newDay(t testing.TB, cfg ResampleConfig) *ResampledTrace {
	t.Helper()
	d, err := NewResampledTrace(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func trace(t testing.TB, name string, s Stream) *Trace {
	t.Helper()
	tr, err := Collect(name, func(yield func(Arrival, error) bool) {
		for a := range All(s) {
			if !yield(a, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func dice(seed uint64) *rand.Rand { return Seed(seed).Rand("test") }

func collect(s Stream) []Arrival {
	var list []Arrival
	for a := range All(s) {
		list = append(list, a)
	}
	return list
}
