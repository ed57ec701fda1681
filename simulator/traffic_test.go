package simulator

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tidefill/tidefill/simulator/scenario"
	"github.com/tidefill/tidefill/simulator/workload"
)

// shaped is a setup whose interactive traffic is bent.
func shaped(t testing.TB, rate float64, change func(*scenario.Scenario)) Setup {
	t.Helper()
	s := Setup{Scenario: scenario.Default(), Policy: daemon(), Seed: 3}
	s.Scenario.Interactive.Generator, s.Scenario.Interactive.Rate = "conversation", rate
	change(&s.Scenario)
	return s
}

// counted is the arrivals of a span and their mean prompt.
func counted(t testing.TB, s Setup, from, to time.Duration) (requests, prompt float64) {
	t.Helper()
	stream, err := s.firstClassTraffic()
	if err != nil {
		t.Fatal(err)
	}
	for a := range workload.All(stream) {
		if a.At >= from && a.At < to {
			requests++
			prompt += float64(a.Input)
		}
	}
	return requests, prompt / max(1, requests)
}

func near(t testing.TB, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got-want) > tolerance*want {
		t.Errorf("%s is %.4g, want %.4g", what, got, want)
	}
}

func TestTrafficIsTransformed(t *testing.T) {
	const m = time.Minute
	poisson := scenario.Dispersion{VarMean: 1, Window: 10 * time.Second}
	t.Run("surges", func(t *testing.T) {
		s := shaped(t, 20, func(s *scenario.Scenario) {
			s.Interactive.Surges = []scenario.Surge{{At: 20 * m, For: 10 * m, Factor: 3}}
			s.Interactive.Dispersion = poisson
		})
		calm, _ := counted(t, s, 0, 20*m)
		surge, _ := counted(t, s, 20*m, 30*m)
		near(t, "the surge's rate over that before", surge/calm*2, 3, 0.05)
		near(t, "the rate before", calm/1200, 20, 0.03)
	})
	t.Run("dispersion", func(t *testing.T) {
		s := shaped(t, 20, func(s *scenario.Scenario) {
			s.Horizon = 6 * time.Hour
			s.Interactive.Dispersion = scenario.Dispersion{VarMean: 70, Window: 10 * time.Second}
		})
		h, err := s.SummarizeTraffic()
		if err != nil {
			t.Fatal(err)
		}
		near(t, "variance over mean at 10 s", h.Result.Dispersion[1].VarMean, 70, 0.1)
		near(t, "the rate", h.Result.Rate, 20, 0.05)
	})
	t.Run("bursts", func(t *testing.T) {
		s := shaped(t, 4, func(s *scenario.Scenario) {
			s.Horizon = 10 * time.Hour
			s.Interactive.Bursts = scenario.Bursts{Factor: 12, Length: 10 * time.Second,
				Gap: 2 * time.Minute}
		})
		h, err := s.SummarizeTraffic()
		if err != nil {
			t.Fatal(err)
		}
		near(t, "the rate", h.Result.Rate, 4, 0.08)
		// The rate's own variance is share x (1 - share) of the squared difference.
		const share, between = 10. / 130, 1 / (1 + 11*10./130)
		of := 4 * share * (1 - share) * (11 * between) * (11 * between)
		near(t, "variance over mean at 1 s", h.Result.Dispersion[0].VarMean, 1+of, 0.2)
		s.Scenario.Interactive.Surges = []scenario.Surge{{At: 5 * time.Hour, For: 5 * time.Hour,
			Factor: 3}}
		s.Scenario.Interactive.Dispersion = scenario.Dispersion{VarMean: 3, Window: time.Second}
		before, _ := counted(t, s, 0, 5*time.Hour)
		surge, _ := counted(t, s, 5*time.Hour, 10*time.Hour)
		near(t, "the surge's rate over that before", surge/before, 3, 0.15)
		if again, _ := counted(t, s, 0, 5*time.Hour); again != before {
			t.Errorf("the same seed gave %v requests and %v", before, again)
		}
	})
	t.Run("bursts of a trace", func(t *testing.T) {
		s := tiny(t, "0,20,5\n1,20,5\n2,20,5\n")
		s.Scenario.Horizon = time.Hour
		s.Scenario.Interactive.Bursts = scenario.Bursts{Factor: 30, Length: 30 * time.Second,
			Gap: 5 * time.Minute}
		s = s.WithTraffic()
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		last, most := time.Duration(0), 0
		for seed := range uint64(10) { // some have many requests more than the mean
			s.Seed = seed
			stream, err := s.firstClassTraffic()
			if err != nil {
				t.Fatal(err)
			}
			count := 0
			for a := range workload.All(stream) {
				last = max(last, a.At)
				count++
			}
			most = max(most, count)
		}
		if most < 4500 || last < time.Hour-5*time.Minute {
			t.Errorf("at most %d requests, the last at %v; want more than the trace's 3600 in an "+
				"hour", most, last)
		}
	})
	t.Run("dispersion of a trace", func(t *testing.T) {
		for _, rate := range []float64{0, 1.5} {
			s := tiny(t, "0,20,5\n1,20,5\n2,20,5\n600,20,5\n")
			if rate == 0 { // played back once
				var rows strings.Builder
				for second := range 601 {
					fmt.Fprintf(&rows, "%d,20,5\n", second)
				}
				s = tiny(t, rows.String())
			}
			s.Scenario.Horizon, s.Scenario.Interactive.Rate = 10*time.Minute, rate
			s.Scenario.Interactive.Dispersion = scenario.Dispersion{VarMean: 10,
				Window: 10 * time.Second}
			if err := s.Check(); err != nil {
				t.Fatal(err)
			}
			for seed := range uint64(20) { // some need more requests than the mean
				s.Seed = seed
				stream, err := s.firstClassTraffic()
				if err != nil {
					t.Fatal(err)
				}
				last := time.Duration(0)
				for a := range workload.All(stream) {
					last = a.At
				}
				if last < 9*time.Minute {
					t.Errorf("rate %v, seed %d: the last request is at %v of 10m", rate, seed, last)
				}
			}
		}
	})
	t.Run("diurnal", func(t *testing.T) {
		s := shaped(t, 4, func(s *scenario.Scenario) {
			s.Horizon, s.Interactive.Shape = 24*time.Hour, scenario.Diurnal
		})
		night, _ := counted(t, s, 2*time.Hour, 6*time.Hour)
		evening, _ := counted(t, s, 19*time.Hour, 23*time.Hour)
		if evening < 1.5*night {
			t.Errorf("%v requests in the evening, %v at night", evening, night)
		}
		h, err := s.SummarizeTraffic()
		if err != nil {
			t.Fatal(err)
		}
		near(t, "the mean of a day", h.Rate, 4, 0.001)
	})
	t.Run("lengths and growth", func(t *testing.T) {
		s := shaped(t, 20, func(s *scenario.Scenario) {
			s.Interactive.Input, s.Interactive.Output = scenario.Length{Median: 500},
				scenario.Length{Median: 100, Max: 80}
			s.Interactive.Growth = scenario.Growth{From: 20 * m, To: 30 * m, Factor: 3}
		})
		_, before := counted(t, s, 0, 20*m)
		_, after := counted(t, s, 30*m, 60*m)
		near(t, "the prompt before", before, 500, 1e-9)
		near(t, "the prompt after", after, 1500, 1e-9)
		h, err := s.SummarizeTraffic()
		if err != nil {
			t.Fatal(err)
		}
		near(t, "the answer", h.Result.MeanOutput, 80, 1e-9)
		if len(h.Notes) != 1 || !strings.Contains(h.Notes[0], "grow") {
			t.Errorf("notes %q, want one of growth", h.Notes)
		}
	})
	t.Run("prefixes that go cold", func(t *testing.T) {
		s := shaped(t, 2, func(s *scenario.Scenario) {
			s.Interactive.Input = scenario.Length{Median: 1600}
			s.Interactive.Prefix = scenario.Prefix{Share: 0.9, Groups: 3}
			s.Interactive.ColdCache = scenario.ColdCache{From: 30 * m, To: 31 * m, Share: 1}
		})
		stream, err := s.firstClassTraffic()
		if err != nil {
			t.Fatal(err)
		}
		groups := map[uint64]bool{}
		for a := range workload.All(stream) {
			switch {
			case a.At < 30*m && (len(a.Prefix) != 1 || a.Segment != 1440):
				t.Fatalf("at %v the prefix is %d of %d tokens", a.At, a.Segment, a.Input)
			case a.At >= 31*m && len(a.Prefix) != 0:
				t.Fatalf("at %v there is still a prefix", a.At)
			case a.At < 30*m:
				groups[a.Prefix[0]] = true
			}
		}
		if len(groups) != 3 {
			t.Errorf("%d groups, want 3", len(groups))
		}
	})
}

// A trace is played back once or resampled, and the summary says which.
func TestTraceOrResampled(t *testing.T) {
	s := tiny(t, "0,10,10\n100,20,10\n200,30,10\n300,40,10\n400,50,10\n")
	h, err := s.SummarizeTraffic()
	if err != nil {
		t.Fatal(err)
	}
	if h.Copies != 0 || len(h.Notes) != 0 || h.Source == nil || h.Result.Requests != 3 {
		t.Errorf("a trace as it was: %+v", h)
	}
	s.Scenario.Horizon = time.Hour
	if err := s.Check(); err == nil || !strings.Contains(err.Error(),
		"or give interactive.rate (the trace's is 0.01 a second)") {
		t.Errorf("a trace that is too short: %v", err)
	}
	s = s.WithTraffic()
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	if h, err = s.SummarizeTraffic(); err != nil {
		t.Fatal(err)
	}
	if h.Copies != 1 || len(h.Notes) != len(workload.ResampleNotes) {
		t.Errorf("a trace that is repeated: %+v", h)
	}
	near(t, "the rate", h.Result.Rate, 0.01, 0.05)
	s.Scenario.Interactive.Rate = 1
	if h, err = s.SummarizeTraffic(); err != nil {
		t.Fatal(err)
	}
	if h.Copies != 100 {
		t.Errorf("a hundred times the rate takes %d copies", h.Copies)
	}
	near(t, "the rate", h.Result.Rate, 1, 0.1)
}

// Another trace takes the place of any scenario's traffic.
func TestWithTraffic(t *testing.T) {
	s := bundled(t, "s15-drift.yaml")
	rate := s.Scenario.Interactive.Rate
	own := tiny(t, "0,10,10\n1,20,10\n2,30,10\n")
	s.Trace = own.Trace
	in := &s.Scenario.Interactive
	in.Generator, in.Trace, in.Format = "", "other.csv", workload.CSV
	s = s.WithTraffic()
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	h, err := s.SummarizeTraffic()
	if err != nil {
		t.Fatal(err)
	}
	near(t, "the scenario's rate", h.Result.Rate, rate, 0.1)
	s = bundled(t, "s17-closed-loop.yaml")
	s.Trace = own.Trace
	in = &s.Scenario.Interactive
	in.Generator, in.Trace, in.Format = "", "other.csv", workload.CSV
	if err := s.WithTraffic().Check(); err != nil {
		t.Errorf("a closed loop makes way for a trace: %v", err)
	}
}

func TestShapeThatWasNotRead(t *testing.T) {
	s := shaped(t, 4, func(s *scenario.Scenario) { s.Interactive.Shape = "rates.csv" })
	if _, err := s.firstClassTraffic(); err == nil || !strings.Contains(err.Error(),
		"interactive.shape names the file rates.csv") {
		t.Errorf("a shape without its file: %v", err)
	}
	curve, err := workload.NewCurve([]time.Duration{0, 30 * time.Minute}, []float64{1, 3},
		time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	s.Shape = curve
	early, _ := counted(t, s, 0, 10*time.Minute)
	late, _ := counted(t, s, 25*time.Minute, 35*time.Minute)
	if late < 1.5*early {
		t.Errorf("%v requests where the curve is low, %v where it is high", early, late)
	}
}

// Jobs of a stream are in order, within the horizon, and the same each time.
func TestJobStream(t *testing.T) {
	s := shaped(t, 1, func(s *scenario.Scenario) {
		s.Horizon = 24 * time.Hour
		s.Jobs = []scenario.Job{{Name: "own", Kind: "bal", At: 12 * time.Hour, Lines: 3}}
		s.JobStream.PerHour, s.JobStream.Until = 3, 20*time.Hour
	})
	list := func() (names []string) {
		jobs, err := s.Jobs()
		if err != nil {
			t.Fatal(err)
		}
		last := time.Duration(0)
		for {
			j, ok := jobs.Next()
			if !ok {
				return names
			}
			if j.At < last || j.At >= 20*time.Hour {
				t.Fatalf("job %s comes at %v, after %v", j.Name, j.At, last)
			}
			last = j.At
			names = append(names, j.Name)
		}
	}
	names := list()
	if n := len(names); n < 40 || n > 85 {
		t.Errorf("%d jobs in 20 hours, want about 61", n)
	}
	if strings.Join(names, " ") != strings.Join(list(), " ") ||
		!strings.Contains(strings.Join(names, " "), "own") {
		t.Errorf("jobs are %v", names)
	}
}
