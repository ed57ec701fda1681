package bench

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	for _, tc := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{3}, 3},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		if got := median(tc.values); got != tc.want {
			t.Errorf("median(%v) = %v, want %v", tc.values, got, tc.want)
		}
	}
	if got := median(nil); !math.IsNaN(got) {
		t.Errorf("median of nothing = %v, want NaN", got)
	}
}

func TestPercentile(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for p, want := range map[float64]float64{0.5: 50, 0.99: 99, 1: 100, 0: 1} {
		if got := percentile(hundred, p); got != want {
			t.Errorf("percentile(1..100, %v) = %v, want %v", p, got, want)
		}
	}
	if got := percentile([]float64{7}, 0.99); got != 7 {
		t.Errorf("percentile of one value = %v, want 7", got)
	}
}

func TestGoalsAreJudgedByTheMedian(t *testing.T) {
	for _, tc := range []struct {
		name   string
		values []float64
		goal   *goal
		want   bool
	}{
		{"low enough", []float64{1.5}, atMost(1.5), false},
		{"too high", []float64{1.51}, atMost(1.5), true},
		{"high enough", []float64{0.8}, atLeast(0.8), false},
		{"too low", []float64{0.79}, atLeast(0.8), true},
		{"one bad run of three", []float64{1, 9, 1}, atMost(1.5), false},
		{"two bad runs of three", []float64{9, 1, 9}, atMost(1.5), true},
		{"without a goal", []float64{9}, nil, false},
	} {
		if got := (figure{Values: tc.values, Goal: tc.goal}).missed(); got != tc.want {
			t.Errorf("%s: missed is %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	err := writeTable(&b, []figure{
		{What: "Rate", Values: []float64{0.8, 0.9, 0.7}, Goal: atLeast(0.8),
			Detail: "8 against 10"},
		{What: "Time", Unit: "ms", Values: []float64{123.4}, Goal: atMost(100)},
		{What: "Share", Unit: "%", Values: []float64{12.34}},
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `| What  | Figure | Range       | Goal     | Met | Detail       |
| ----- | ------ | ----------- | -------- | --- | ------------ |
| Rate  | 0.80   | 0.70 - 0.90 | ≥ 0.8    | yes | 8 against 10 |
| Time  | 123 ms | 123 - 123   | ≤ 100 ms | NO  |              |
| Share | 12.3 % | 12.3 - 12.3 |          |     |              |
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int]string{7: "7", 999: "999", 1000: "1,000", 50_000: "50,000",
		1_234_567: "1,234,567"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestParseCPUTime(t *testing.T) {
	const stat = "4242 (a (nasty) name) S 1 2 3 4 5 6 7 8 9 10 250 75 0 0 20 0 8 0 12345 0 0"
	got, err := parseCPUTime([]byte(stat))
	if want := 3250 * time.Millisecond; err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, stat := range []string{"", "1 (x) S 1", "1 (x) S 1 2 3 4 5 6 7 8 9 10 a b 0"} {
		if _, err := parseCPUTime([]byte(stat)); err == nil {
			t.Errorf("%q is no error", stat)
		}
	}
}

func TestParsePeakMemory(t *testing.T) {
	got, err := parsePeakMemory(
		[]byte("Name:\tx\nVmPeak:\t  2021652 kB\nVmHWM:\t   41000 kB\nVmRSS:\t   30000 kB\n"))
	if want := int64(41000 << 10); err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if _, err := parsePeakMemory([]byte("Name:\tx\n")); err == nil {
		t.Error("a status without VmHWM is no error")
	}
}

func TestLinesAreJSONOfTheirLength(t *testing.T) {
	prompt := strings.Repeat(`a\nb\"c\\`, 1000)
	for length := 250; length < 300; length++ {
		line := chatLine(12345, length, prompt)
		if len(line) != length {
			t.Errorf("a line of %d bytes has %d", length, len(line))
		}
		if !json.Valid([]byte(line)) {
			t.Errorf("%s is no JSON", line)
		}
	}
}
