package fit

import (
	"bytes"
	"compress/gzip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const head = "experiment,step,start_us,prefill_tokens,decode_tokens,gap_steps,gap_us\n"

func TestReadStepsReportsErrors(t *testing.T) {
	tests := []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", []string{"f.csv: empty; the first line names the columns"}},
		{"a header alone", head, []string{"f.csv: no steps below the header"}},
		{"missing columns", "experiment,step,start_us,prefill_tokens\n", []string{
			"f.csv:1: missing column decode_tokens, gap_steps, gap_us"}},
		{"an unknown column", "speed," + head,
			[]string{`f.csv:1: unknown column "speed"; known are experiment, step,`}},
		{"a column twice", "step," + head, []string{"f.csv:1: column step occurs twice"}},
		{"a negative number", head + "a,1,0,0,-3,1,5\n", []string{
			`f.csv:2: decode_tokens "-3" is negative`}},
		{"no number", head + "a,1,0,0,many,1,5\na,2,,0,1,1,5\n", []string{
			`f.csv:2: decode_tokens "many" is not a number`,
			`f.csv:3: start_us "" is not a number`}},
		{"no whole number", head + "a,1,0,0.5,3,1,5\n", []string{
			`f.csv:2: prefill_tokens "0.5" is not a whole number`}},
		{"not a number at all", head + "a,1,NaN,0,3,1,5\na,2,0,Inf,3,1,5\n", []string{
			`"NaN" is not a number`, `f.csv:3: prefill_tokens "Inf" is too large`}},
		{"too large", head + "a,1,0,2000000000,3,1,5\n", []string{
			`f.csv:2: prefill_tokens "2000000000" is too large`}},
		{"a short row", head + "a,1,0\na,2,0,0,1,,\n", []string{"f.csv:2: wrong number of fields"}},
		{"time going backwards", head + "a,1,50,0,3,1,5\na,2,40,0,3,,\n", []string{
			"f.csv:3: the time decreases: step 2 starts at 40, step 1 (line 2) at 50"}},
		{"a step twice", head + "a,1,50,0,3,,\na,1,60,0,3,,\n", []string{
			"f.csv:3: step 1 of a is already on line 2"}},
		{"a gap that isn't", head + "a,1,50,0,3,1,30\na,2,90,0,3,,\n", []string{
			"f.csv:2: gap_us is 30, yet the next step (line 3) starts 40 later"}},
		{"a step within a gap", head + "a,1,50,0,3,4,30\na,2,90,0,3,,\n", []string{
			"f.csv:2: gap_steps is 4, yet step 2 follows step 1 (line 3)"}},
		{"half a gap", head + "a,1,50,0,3,,30\na,2,90,0,3,1,\n", []string{
			"f.csv:2: gap_us is 30 and there are no gap_steps",
			"f.csv:3: gap_us is 0 or missing for gap_steps 1"}},
		{"a broken archive", "\x1f\x8bnonsense", []string{"f.csv: unpack: "}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := ReadSteps("f.csv", strings.NewReader(test.in))
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error lacks %q:\n%v", want, err)
				}
			}
		})
	}
}

func TestManyFaultsAreNotAllReported(t *testing.T) {
	_, err := ReadSteps("f.csv", strings.NewReader(head+strings.Repeat("a,1,0,0,-3,1,5\n", 1000)))
	if n := strings.Count(err.Error(), "\n") + 1; n != maxFaults {
		t.Errorf("%d errors reported, want %d", n, maxFaults)
	}
}

func TestReadStepsReadsBack(t *testing.T) {
	want := rich(func(d *syntheticTrace) { d.steps = 50 }).record()
	plain := asCSV(want)
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	w.Write(plain)
	w.Close()
	lines := strings.SplitAfter(string(plain), "\n")
	slices.Reverse(lines[1 : len(lines)-1])
	for name, in := range map[string]string{
		"plain": string(plain), "gzipped": zipped.String(),
		"with a byte order mark":  "\xEF\xBB\xBF" + string(plain),
		"with Windows' line ends": strings.ReplaceAll(string(plain), "\n", "\r\n"),
		"in another order":        strings.Join(lines, ""),
	} {
		got, err := ReadSteps("trace", strings.NewReader(in))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i := range got {
			got[i].Line = want[i].Line
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

// Whatever is read can be observed and fitted, or is refused with an error.
func FuzzReadSteps(f *testing.F) {
	f.Add([]byte(head + "a,1,0,0,3,1,5\na,2,5,0,4,,\n"))
	f.Add([]byte(head + "a,1.0,0,70,3,2,5\nb,2,5,0,4,0,0\n"))
	f.Add([]byte("\x1f\x8b"))
	f.Add([]byte("experiment,\"step\n"))
	f.Add(asCSV(rich(func(d *syntheticTrace) { d.steps = 60 }).record()))
	f.Fuzz(func(t *testing.T, content []byte) {
		steps, err := ReadSteps("f.csv", bytes.NewReader(content))
		if err != nil {
			return
		}
		obs, err := Observe(steps, 0, AheadUnknown)
		if err != nil {
			return
		}
		r, err := Fit(obs, Options{Resamples: 1})
		if err != nil {
			return
		}
		if l := r.CostModel; !(l.C0 >= 0 && l.C1 >= 0 && l.C1+l.C2 >= -1e-12 && l.KV >= 0 &&
			l.P1 >= 0 &&
			l.P2 >= 0) {
			t.Fatalf("cost model %+v", l)
		}
	})
}
